"""The sample side in shards: sparse affinity, landmarks for the map, targets through sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.coupling.sharded import (
    ShardedCoupling,
    solve_on_shards,
    structure_constant_on_shards,
    supervision_on_shards,
    transported_on_shards,
)
from distreduce.embedding.dependence_target import TargetForm, dependence_target_of_sums
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.embedding.target_features import TargetFeatures
from distreduce.exceptions import CheckpointError
from distreduce.kernels import Kernel
from distreduce.losses import BregmanLoss, supervised_rows
from distreduce.mapping.landmarks import LandmarkRegression, Memory
from distreduce.sharding.shards import Shard, ShardPass, Shards
from distreduce.solver.checkpoint import ADVICE
from distreduce.solver.oracle import Coupled


@dataclass(frozen=True)
class ShardedSide:
    """:class:`distreduce.solver.oracle.SampleSide` over shards, for fewer prototypes than samples.

    Shards hold the parts "features", "affinity", "targets" and "kernel_targets" (the last two None without targets).
    `target_features` stand for the target kernel where a whole matrix of it would be needed (the form "transport").
    """

    shards: Shards
    weights: Array
    projection: LandmarkRegression
    loss: BregmanLoss
    target_kernel: Kernel | None
    target_features: TargetFeatures | None
    balanced: bool = False

    def structure_constant(self, loss: InnerLoss) -> float:
        """The part of GW that no coupling changes."""
        return structure_constant_on_shards(self.shards, self.weights, loss)

    def transported(self, plan: sparse.csr_array) -> Array:
        """TᵀCT."""
        return transported_on_shards(self.shards, plan)

    def supervision(self, plan: sparse.csr_array) -> float:
        """Σ_ij L_s(y_i, g_j*(T)) T_ij."""
        return 0.0 if self.target_kernel is None else supervision_on_shards(self.shards, plan, self.loss)

    def dependence_target(
        self, plan: sparse.csr_array, form: TargetForm, dependence: Dependence
    ) -> tuple[Array | None, Array | None]:
        """B and ω of the dependence."""
        if self.target_kernel is None:
            return None, None
        features, kernel = (self.target_features, None) if form == "transport" else (None, self.target_kernel)
        table = self.shards.total(_KernelTargetSums(plan, features))
        return dependence_target_of_sums(table[:, :-1], table[:, -1], kernel, form, dependence)

    def map_quadratic(self, plan: sparse.csr_array) -> Array | None:
        """R, what is left of the map after its elimination."""
        return self.projection.quadratic(plan)

    def map_fitted(self, plan: sparse.csr_array, embedding: Array) -> Array | None:
        """(KL)_i, where the map puts the samples."""
        return self.projection.fitted(plan, embedding)

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

    def memory(self) -> Memory | None:
        """Of the map: what it transported of the latest plan."""
        return self.projection.memory

    def recall(self, memory: Memory | None) -> None:
        """Let the map go on from there."""
        if memory is not None and len(memory.transported) != self.projection.n_landmarks:
            raise CheckpointError(
                f"The checkpoint is of a map with {len(memory.transported)} landmarks, and this one has "
                f"{self.projection.n_landmarks}. {ADVICE}"
            )
        self.projection.memory = memory


@dataclass(frozen=True)
class _KernelTargetSums(ShardPass[Array]):
    """A shard's share of Tᵀφ(Y) over the samples with known targets and, in the last column, of their mass."""

    reads = ("kernel_targets",)
    per_sample = ("own",)
    own: sparse.csr_array
    features: TargetFeatures | None

    def __call__(self, shard: Shard) -> Array:
        Y = np.asarray(shard.kernel_targets)
        known = supervised_rows(Y)
        values = np.asarray(Y[known], dtype=np.float64)
        statistic = values if self.features is None else self.features(values)
        return np.column_stack([self.own[known].T @ statistic, self.own.T @ known.astype(float)])
