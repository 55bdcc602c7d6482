"""Samples in shards: sparse affinity, map on landmarks, sums of targets; time and memory are linear in the samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.affinity.neighbours import keep_neighbours
from distreduce.affinity.sparse import ON_A_GRAPH, keep_sparse_affinity, neighbour_affinity
from distreduce.coupling.initial_sharded import initial_plan_on_shards
from distreduce.coupling.problem import column_mass, plan_from_array
from distreduce.coupling.sharded import (
    ShardedCoupling,
    solve_on_shards,
    structure_constant_on_shards,
    supervision_on_shards,
    transported_on_shards,
)
from distreduce.dependence import TargetFeatures, dependence_target_of_sums, nystrom_features, prototype_means
from distreduce.embedding.optimize import prototypes_from_means
from distreduce.losses import CrossEntropyLoss, InnerLoss, supervised_rows
from distreduce.mapping import LeftOut, barycentres
from distreduce.mapping.folds import Folds
from distreduce.mapping.landmarks import LandmarkRegression, join_features, spread_landmarks
from distreduce.sharding.sample import ShardedSample
from distreduce.sharding.shards import PlanPass, Shard, ShardPass, Shards, Slice
from distreduce.solver import medoids
from distreduce.solver.problem import Coupled, Draw, ReductionProblem, Refine, SampleOracle, Settings

# Landmarks of the out-of-sample map: fit and model grow with their number, not with that of the samples. New samples
# of a mixture in 50 dimensions landed in their class in 0.30 of the cases with 500 of 4000 samples, in 0.41 with 2000.
# With predictions among its features the map is simpler, and a quarter as many do as well.
LANDMARKS, LANDMARKS_BESIDE_PREDICTIONS = 2000, 500


@dataclass(frozen=True, kw_only=True)
class ShardedOracle(SampleOracle):
    """The answers for samples in shards, of which there must be more than prototypes.

    The shards have the parts "features", "affinity", "targets", "kernel_targets" (these two None without targets) and
    "shares" (None unless the map has predictions).
    """

    shards: Shards
    weights: Array
    projection: LandmarkRegression
    target_features: TargetFeatures | None  # where the form "transport" would need the n×n matrix of the target kernel
    folds: Folds | None = None  # in which samples of equal features are left out; None if there are none

    def structure_constant(self, loss: InnerLoss) -> float:
        return structure_constant_on_shards(self.shards, self.weights, loss)

    def transported(self, plan: Plan) -> Array:
        return transported_on_shards(self.shards, plan)

    def supervision(self, plan: Plan) -> float:
        return 0.0 if self.target_kernel is None else supervision_on_shards(self.shards, plan, self.target_loss)

    def dependence_target(self, plan: Plan, settings: Settings) -> tuple[Array | None, Array | None]:
        if self.target_kernel is None:
            return None, None
        form = settings.target_form
        # "transport" sums features of K_Y, the other forms the targets themselves.
        features, kernel = (self.target_features, None) if form == "transport" else (None, self.target_kernel)
        table = self.shards.total(_KernelTargetSums(plan, features))
        return dependence_target_of_sums(table[:, :-1], table[:, -1], kernel, form, settings.dependence)

    def couple(
        self, plan: Plan, f2: Array, h2: Array, prototypes: Array, fitted: Array | None, *, alpha: float, tol: float
    ) -> Coupled:
        # Without a fitted map its cost gets the weight zero.
        mu = 0.0 if fitted is None else self.projection.mu
        places = np.zeros((len(self.weights), prototypes.shape[1])) if fitted is None else fitted
        problem = ShardedCoupling(self.shards, self.weights, f2, h2, prototypes, places, mu, self.target_loss, alpha)
        return Coupled(*solve_on_shards(problem, plan, tol=tol))

    def project(self, directions: Array) -> Array:
        return np.concatenate(self.shards.collect(_Products(directions)))

    def left_out(self, plan: Plan, prototypes: Array, refine: Refine, draw: Draw) -> LeftOut | None:
        F = barycentres(plan, self.weights) @ prototypes
        return LeftOut(self.projection.left_out(draw(F, np.arange(len(F))), self.folds))

    def medoids(self, plan: Plan) -> Index:
        distances = self.shards.collect(medoids.DistancesToMeans(plan, _means(self.shards, plan)))
        targets = None
        if self.target_kernel is not None:
            targets = np.concatenate(self.shards.collect_part("kernel_targets")).astype(np.float64)
        return medoids.nearest_members(plan, np.concatenate(distances), medoids.target_distances(plan, targets))


def prepare_sharded(
    problem: ReductionProblem, workers: Workers, random_state: np.random.RandomState, stage: Callable[[str], object]
) -> ShardedOracle:
    """Compute neighbours, sparse affinity, initial coupling, initial prototypes and the map on landmarks."""
    sample = problem.sample
    assert isinstance(sample, ShardedSample)
    shards, weights, subsample = sample.shards, sample.weights, sample.subsample
    stage("neighbours")
    # Three times the perplexity: affinities beyond that are negligible.
    k = math.ceil(3 * problem.perplexity) if problem.n_neighbors is None else problem.n_neighbors
    keep_neighbours(shards, min(len(weights) - 1, k), sample.probes)
    stage("affinity")
    keep_sparse_affinity(shards, weights, problem.perplexity, **ON_A_GRAPH)
    shards.drop("graph")  # only the affinity needed it
    stage("start")
    plan = _initial_plan(sample, problem, random_state)
    start = prototypes_from_means(_means(shards, plan), column_mass(plan), problem.n_components, random_state)
    stage("map")
    landmarks = subsample.features[:LANDMARKS]  # rows in random order
    if subsample.shares is not None:
        features = join_features(subsample.features, subsample.shares)
        landmarks = spread_landmarks(features, LANDMARKS_BESIDE_PREDICTIONS)
    projection = LandmarkRegression(shards, landmarks, problem.input_kernel, weights, problem.mu, problem.map_reg)
    if problem.expects_targets:
        shares = isinstance(problem.target_loss, CrossEntropyLoss)
        Y = np.concatenate(shards.collect_part("targets")).astype(np.float64)
        shards.keep("targets", Slice(projection.expect(Y, problem.folds, shares=shares)))
    # TᵀK_YT would need all n² entries of K_Y; with features, K_Y ≈ ΦΦᵀ, n rows are enough.
    features, targets = None, subsample.kernel_targets
    if problem.target_kernel is not None and targets is not None and problem.settings.target_form == "transport":
        features = nystrom_features(targets, problem.target_kernel)
    return ShardedOracle(
        shards=shards,
        weights=weights,
        plan=plan,
        prototypes=start,
        target_loss=problem.target_loss,
        target_kernel=problem.target_kernel,
        target_features=features,
        projection=projection,
        map_inputs=landmarks,
        folds=problem.folds,
        workers=workers,
    )


def _initial_plan(sample: ShardedSample, problem: ReductionProblem, random_state: np.random.RandomState) -> Plan:
    assert problem.n_prototypes is not None
    if not isinstance(problem.init, str):
        return plan_from_array(problem.init, sample.weights)
    affinity_of = partial(neighbour_affinity, perplexity=problem.perplexity)
    return initial_plan_on_shards(
        problem.init, problem.n_prototypes, sample, problem.target_kernel, affinity_of, random_state
    )


def _means(shards: Shards, plan: Plan) -> Array:
    """Return the mean features (m, d) of the prototypes."""
    return prototype_means(shards.total(medoids.PrototypeSums(plan)), column_mass(plan))


@dataclass(frozen=True)
class _Products(ShardPass[Array]):
    """The products of a shard's features with some directions."""

    reads = ("features",)
    directions: Array

    def __call__(self, shard: Shard) -> Array:
        return np.asarray(shard.features @ self.directions)


@dataclass(frozen=True)
class _KernelTargetSums(PlanPass[Array]):
    """A shard's part of Tᵀφ(Y) over samples with known targets, with their mass in the last column."""

    reads = ("kernel_targets",)
    features: TargetFeatures | None

    def __call__(self, shard: Shard) -> Array:
        Y = np.asarray(shard.kernel_targets)
        known = supervised_rows(Y)
        values = np.asarray(Y[known], dtype=np.float64)
        statistic = values if self.features is None else self.features(values)
        # In one array, since the results of shards are added.
        return np.column_stack([self.own[known].T @ statistic, self.own.T @ known.astype(float)])
