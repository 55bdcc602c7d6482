"""The sample side in shards: sparse affinity, landmarks for the map, targets through sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce.affinity.sparse import structure_constant_sparse
from distreduce.coupling.on_shards import (
    ShardedCoupling,
    solve_on_shards,
    supervision,
    target_sums,
    transported,
)
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.kernels import Kernel
from distreduce.large.shards import Shards
from distreduce.losses import BregmanLoss, SquaredLoss, supervised_rows
from distreduce.projection.landmarks import LandmarkProjection
from distreduce.sample_side import Coupled
from distreduce.target_features import TargetFeatures
from distreduce.targets import TargetForm, dependence_target_of_sums

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ShardedSide:
    """:class:`distreduce.sample_side.SampleSide` over shards, for fewer prototypes than samples.

    Shards hold the parts "features", "affinity", "targets" and "kernel_targets" (the last two None without targets).
    `target_features` stand for the target kernel where a whole matrix of it would be needed (the form "transport").
    """

    shards: Shards
    weights: Array
    projection: LandmarkProjection
    loss: BregmanLoss
    target_kernel: Kernel | None
    target_features: TargetFeatures | None
    balanced: bool = False

    def structure_constant(self, loss: InnerLoss) -> float:
        """The part of GW that no coupling changes."""
        return structure_constant_sparse(self.shards, self.weights, loss)

    def transported(self, plan: sparse.csr_array) -> Array:
        """TᵀCT."""
        return transported(self.shards, plan)

    def supervision(self, plan: sparse.csr_array) -> float:
        """Σ_ij L_s(y_i, g_j*(T)) T_ij."""
        return 0.0 if self.target_kernel is None else supervision(self.shards, plan, self.loss)

    def dependence_target(
        self, plan: sparse.csr_array, form: TargetForm, dependence: Dependence
    ) -> tuple[Array | None, Array | None]:
        """B and ω of the dependence."""
        if self.target_kernel is None:
            return None, None
        if form == "transport":
            parts = self.shards.collect(_feature_sums, ["kernel_targets"], self.target_features, rows=[plan])
            sums, carried = sum(part[0] for part in parts), sum(part[1] for part in parts)
            return dependence_target_of_sums(sums, carried, None, form, dependence)
        sums, carried = target_sums(self.shards, plan, SquaredLoss(), "kernel_targets")
        return dependence_target_of_sums(sums, carried, self.target_kernel, form, dependence)

    def map_quadratic(self, plan: sparse.csr_array) -> Array | None:
        """R, what is left of the map after its elimination."""
        return self.projection.quadratic(plan)

    def map_fitted(self, plan: sparse.csr_array, embedding: Array) -> Array | None:
        """(KL)_i, where the map puts the samples."""
        return self.projection.fitted(self.projection.coefficients(plan, embedding))

    def couple(
        self,
        plan: sparse.csr_array,
        f2: Array,
        h2: Array,
        embedding: Array,
        fitted: Array | None,
        *,
        alpha: float,
        tol: float,
    ) -> Coupled:
        """The T-step from `plan`."""
        mu = 0.0 if fitted is None else self.projection.mu
        places = np.zeros((len(self.weights), embedding.shape[1])) if fitted is None else fitted
        problem = ShardedCoupling(self.shards, self.weights, f2, h2, embedding, places, mu, self.loss, alpha)
        return Coupled(*solve_on_shards(problem, plan, tol=tol))


def _feature_sums(Y: Array, own: sparse.csr_array, features: TargetFeatures) -> tuple[Array, Array]:
    """The shard's share of Tᵀφ(Y) over the samples with known targets, and of their mass."""
    values = np.asarray(Y, dtype=np.float64)
    known = supervised_rows(values)
    return np.asarray(own[known].T @ features(values[known])), np.asarray(own.T @ known.astype(float))
