"""Samples in memory, with n×n arrays for affinity and map: for up to about ten thousand samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from distreduce._utils.numerics import divide_columns, evenly_spaced, sq_distances
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.affinity.graph import graph_affinity
from distreduce.coupling.descent import solve_balanced, solve_semirelaxed
from distreduce.coupling.initial import initial_plan
from distreduce.coupling.problem import CouplingProblem, affinity_times_plan, plan_from_array, structure_constant
from distreduce.dependence import dependence_target
from distreduce.embedding.optimize import initial_prototypes
from distreduce.exceptions import NumericalError
from distreduce.kernels import Kernel
from distreduce.losses import InnerLoss, supervised_rows
from distreduce.mapping import LeftOut, MapRegression, barycentres
from distreduce.mapping.folds import Folds
from distreduce.mapping.kernel_map import kernel_matrix, kernel_rows, ridge_for_steps
from distreduce.mapping.left_out import align, cross_fitted, lay_over
from distreduce.sharding.sample import Sample
from distreduce.solver.medoids import medoids
from distreduce.solver.problem import Coupled, Draw, ReductionProblem, Refine, SampleOracle, Settings

# From here on the n×n affinity is kept in single precision: 10,000 samples then take 0.4 GB instead of 0.8.
SINGLE_PRECISION_FROM = 4000
# Above, samples are left out of the map alone, in closed form: five more n×n arrays would not fit into the memory.
MOST_CROSS_FITTED = 3000
RIDGE_SAMPLES = 400  # that choose the ridge for few prototypes


@dataclass(frozen=True, kw_only=True)
class DenseOracle(SampleOracle):
    """The answers for a sample in memory."""

    sample: Sample
    affinity: Array  # C (n, n)
    projection: MapRegression | None = None
    map_kernel: Kernel | None = None  # K of the map, needed only to leave samples out
    folds: Folds | None = None  # in which samples are left out; None without targets
    fold_divisors: Sequence[Array] | None = None  # of the features, for the metric that has not seen each fold
    fold_targets: Mapping[int, Array] | None = None  # that the coupling sees without each fold; None: those of the fit
    fold_predictions: Mapping[int, Array] | None = None  # the last features of the map without each fold

    def structure_constant(self, loss: InnerLoss) -> float:
        return structure_constant(self.affinity, self.sample.weights, loss)

    def transported(self, plan: Plan) -> Array:
        transported = plan.T @ affinity_times_plan(self.affinity, plan, self.workers)
        return np.asarray(0.5 * (transported + transported.T))  # the Z-step's compiled loops read only one half

    def supervision(self, plan: Plan) -> float:
        targets, loss = self.sample.targets, self.target_loss
        if targets is None:
            return 0.0
        return float(plan.multiply(loss.cost(targets, loss.prototype_targets(plan, targets))).sum())

    def dependence_target(self, plan: Plan, settings: Settings) -> tuple[Array | None, Array | None]:
        targets = self.sample.kernel_targets
        if targets is None or self.target_kernel is None:
            return None, None
        return dependence_target(plan, targets, self.target_kernel, settings.target_form, settings.dependence)

    def couple(
        self, plan: Plan, f2: Array, h2: Array, prototypes: Array, fitted: Array | None, *, alpha: float, tol: float
    ) -> Coupled:
        """Balanced with one prototype per sample, else semi-relaxed."""
        # The map's distance to the prototypes as a linear cost; see Steps.t_step.
        linear = None
        if fitted is not None and self.projection is not None:
            linear = 0.5 * self.projection.mu * sq_distances(fitted, prototypes)
        sample = self.sample
        problem = CouplingProblem(
            self.affinity, sample.weights, f2, h2, sample.targets, self.target_loss, alpha=alpha, linear=linear
        )
        solver = solve_balanced if plan.shape[0] == plan.shape[1] else solve_semirelaxed
        found = solver(problem, plan, tol=tol, workers=self.workers)
        # Afresh, without the roundings of all the steps: a fit that resumes from a checkpoint has the same bits.
        return Coupled(found.plan, self.transported(found.plan))

    def project(self, directions: Array) -> Array:
        return np.asarray(self.sample.features @ directions)

    def left_out(self, plan: Plan, prototypes: Array, refine: Refine, draw: Draw) -> LeftOut | None:
        """Where the samples would lie had neither map nor metric seen their fold; None without folds."""
        sample, projection = self.sample, self.projection
        if self.folds is None:
            return None
        assert projection is not None and sample.kernel_targets is not None
        F = draw(barycentres(plan, sample.weights) @ prototypes, np.arange(len(sample.weights)))
        if len(F) > MOST_CROSS_FITTED:
            return LeftOut(projection.left_out(F, self.folds))

        def refit(fold: int, rest: Index, weights: Array, K: Array) -> tuple[Array, MapRegression]:
            """Where the fit puts the other samples: its last steps are repeated with targets that know no fold."""
            regression = MapRegression(K, weights, projection.mu, projection.map_reg)
            if self.fold_targets is None:
                return F[rest], regression
            others = replace(sample.take(rest), weights=weights, targets=self.fold_targets[fold][rest])
            affinity = self.affinity[np.ix_(rest, rest)]
            stays = sparse.diags_array(weights / sample.weights[rest])  # one where no part of a sample leaves
            start = {"plan": sparse.csr_array(stays @ plan[rest]), "prototypes": prototypes}
            found, Z = refine(replace(self, sample=others, affinity=affinity, projection=regression, **start))
            return draw(barycentres(found, others.weights) @ Z, rest), regression

        known = supervised_rows(sample.kernel_targets)
        fitted = projection.values(F, projection.coefficients(F))
        # Where only the map is fitted again, its picture turns, shifts or shrinks, but no part moves by itself.
        lay = align if self.fold_targets is None else lay_over
        return cross_fitted(self._similarity_without, refit, self.folds, known, fitted, lay)

    def _similarity_without(self, fold: int, rest: Index, out: Index) -> tuple[Array, Array]:
        """Return the kernel matrices of `rest`, and of `out` and `rest`, in the metric that has not seen a fold."""
        inputs, kernel, D = self.map_inputs, self.map_kernel, self.sample.features
        assert kernel is not None
        if inputs is None:  # samples are given by their distances
            K = kernel_matrix(D[np.ix_(rest, rest)], kernel, self.workers, precomputed=True)
            return K, kernel_rows(kernel, D[np.ix_(out, rest)], None)
        if self.fold_predictions is not None:
            predictions = self.fold_predictions[fold]
            inputs = np.hstack([inputs[:, : -predictions.shape[1]], predictions])
        if self.fold_divisors is not None:
            inputs = divide_columns(inputs, self.fold_divisors[fold])
        return kernel_matrix(inputs[rest], kernel, self.workers), kernel_rows(kernel, inputs[out], inputs[rest])

    def medoids(self, plan: Plan) -> Index:
        sample = self.sample
        return medoids(sample.features, plan, sample.kernel_targets, precomputed=sample.precomputed)


def prepare_dense(
    problem: ReductionProblem, workers: Workers, random_state: np.random.RandomState, stage: Callable[[str], object]
) -> DenseOracle:
    """Compute affinity, initial coupling, initial prototypes and the factorized map of a sample in memory."""
    sample = problem.sample
    assert isinstance(sample, Sample)
    stage("affinity")
    if problem.graph is None:
        affinity = _affinity(sample, problem.perplexity, workers)
    else:
        affinity = graph_affinity(problem.graph, sample.weights)
    stage("start")
    plan = _initial_plan(sample, problem, affinity, random_state)
    start = initial_prototypes(
        sample.features, plan, problem.n_components, random_state, precomputed=sample.precomputed
    )
    stage("map")
    inputs = sample.features if problem.map_features is None else problem.map_features
    K = kernel_matrix(inputs, problem.input_kernel, workers, precomputed=sample.precomputed)
    map_reg = _raise_map_reg(problem, plan, K) if problem.raises_map_reg else problem.map_reg
    projection = MapRegression(K, sample.weights, problem.mu, map_reg)
    # Metric and predictions that have not seen a fold, in the units of the map's features.
    divisors, predictions = None, problem.fold_predictions
    if problem.scales is not None and problem.fold_scales is not None:  # features are divided by `scales` already
        divisors = [scales / problem.scales for scales in problem.fold_scales]
    if problem.scales is not None and predictions is not None:
        predictions = {fold: P / problem.scales[-P.shape[1] :] for fold, P in predictions.items()}
    return DenseOracle(
        sample=sample,
        affinity=affinity,
        plan=plan,
        prototypes=start,
        target_loss=problem.target_loss,
        target_kernel=problem.target_kernel,
        projection=projection,
        map_kernel=problem.input_kernel,
        folds=problem.folds,
        fold_divisors=divisors,
        fold_targets=problem.fold_targets,
        fold_predictions=predictions,
        map_inputs=None if sample.precomputed else inputs,
        workers=workers,
    )


def _raise_map_reg(problem: ReductionProblem, plan: Plan, K: Array) -> float:
    """Return λ for a map that is fitted to one place per prototype; some samples with different features decide."""
    sample, folds = problem.sample, problem.folds
    assert isinstance(sample, Sample) and sample.targets is not None and folds is not None
    steps = barycentres(plan, sample.weights) @ problem.target_loss.prototype_targets(plan, sample.targets)
    known = np.flatnonzero(supervised_rows(sample.targets))
    known = known[np.sort(np.unique(folds.sites[known], return_index=True)[1])]
    rows = known[evenly_spaced(len(known), RIDGE_SAMPLES)]
    values, ridge = sample.targets[rows], problem.map_reg / problem.mu
    return problem.mu * ridge_for_steps(K[np.ix_(rows, rows)], sample.weights[rows], ridge, steps[rows], values)


def _affinity(sample: Sample, perplexity: float, workers: Workers) -> Array:
    """Return C, for many samples in single precision, or in double where that overflows."""
    single = len(sample.weights) >= SINGLE_PRECISION_FROM
    for dtype in (np.float32, np.float64) if single else (np.float64,):
        if sample.precomputed:
            D = np.square(sample.features, dtype=dtype)
        else:
            D = squared_distances(sample.features, dtype=dtype, workers=workers)
        matrix = symmetric_entropic_affinity(D, perplexity, sample.weights, overwrite=True, workers=workers).matrix
        if math.isfinite(matrix.sum()):  # any NaN or infinite entry shows in the sum
            return matrix
    raise NumericalError("The input affinity is not finite; look for very large values in X, or scale it.")


def _initial_plan(
    sample: Sample, problem: ReductionProblem, affinity: Array, random_state: np.random.RandomState
) -> Plan:
    if not isinstance(problem.init, str):
        return plan_from_array(problem.init, sample.weights)
    n, weights = len(sample.weights), sample.weights
    m = n if problem.n_prototypes is None else problem.n_prototypes
    # With one prototype per sample, each carries the weight of its sample: for unequal weights only the identity does.
    uneven = m == n and bool(np.ptp(weights) > 0)
    return initial_plan(
        "identity" if uneven else problem.init,
        m,
        weights=weights,
        affinity=affinity,
        features=sample.features,
        targets=sample.kernel_targets,
        target_kernel=problem.target_kernel,
        random_state=random_state,
    )
