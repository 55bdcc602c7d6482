"""The questions that the solver asks about the samples.

The outer loop itself knows only prototypes. Whether n×n arrays, shards in this process or shards on a cluster stand
behind an answer does not matter to it: answers have the size of the prototypes, or a few numbers per sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.embedding.problem import InnerLoss
from distreduce.kernels import Kernel
from distreduce.losses import BregmanLoss, SquaredLoss
from distreduce.mapping import LeftOut
from distreduce.mapping.landmarks import Memory
from distreduce.solver.problem import Settings


@dataclass(frozen=True)
class Coupled:
    """A coupling T (n, m) with the transported affinity TᵀCT (m, m), symmetric."""

    plan: Plan
    transported: Array


@dataclass(frozen=True, kw_only=True)
class SampleOracle(ABC):
    """Samples with their affinity C, targets and out-of-sample map; from `plan` and `prototypes` the loop starts."""

    plan: Plan
    prototypes: Array
    target_loss: BregmanLoss = field(default_factory=SquaredLoss)
    target_kernel: Kernel | None = None  # None leaves the dependence out
    map_inputs: Any = None  # training samples or landmarks; None if samples are given by their distances
    workers: Workers = SERIAL

    @abstractmethod
    def structure_constant(self, loss: InnerLoss) -> float:
        """Return the part of GW that depends on neither T nor Z."""

    @abstractmethod
    def transported(self, plan: Plan) -> Array:
        """Return TᵀCT (m, m)."""

    @abstractmethod
    def supervision(self, plan: Plan) -> float:
        """Return Σ_ij L_s(y_i, g_j*(T)) T_ij, zero without targets."""

    @abstractmethod
    def dependence_target(self, plan: Plan, settings: Settings) -> tuple[Array | None, Array | None]:
        """Return B (m, m) and ω (m,) of :mod:`distreduce.embedding.dependence_target`; None twice without targets."""

    @abstractmethod
    def map_quadratic(self, plan: Plan) -> Array | None:
        """Return R (m, m), which is left of the map after its elimination; None without a map."""

    @abstractmethod
    def map_fitted(self, plan: Plan, prototypes: Array) -> Array | None:
        """Return the values KL (n, p) at the samples of the best map for T and Z; None without a map."""

    @abstractmethod
    def couple(
        self, plan: Plan, f2: Array, h2: Array, prototypes: Array, fitted: Array | None, *, alpha: float, tol: float
    ) -> Coupled:
        """Solve the T-step from `plan`, with the cost (μ/2)|z_k − fitted_i|² if there is a map."""

    def memory(self) -> Memory | None:
        """Return the state that answers depend on besides their arguments, or None."""
        return None

    def restore(self, memory: Memory | None) -> None:  # noqa: B027  (nothing to do without a state)
        """Restore such a state from a checkpoint."""

    # Asked after the loop.
    @abstractmethod
    def map_coefficients(self, plan: Plan, prototypes: Array) -> Array:
        """Return the coefficients L of the best map for T and Z."""

    @abstractmethod
    def left_out(self, plan: Plan, prototypes: Array, refine: Refine) -> LeftOut | None:
        """Return where the samples would lie had the map not seen them; None if it was not said how to leave out.

        Where the coupling has seen the targets of others' predictions, `refine` repeats its last step without them.
        """

    @abstractmethod
    def medoids(self, plan: Plan) -> Index:
        """Return the sample that represents each prototype, −1 for unused ones; see `distreduce.solver.medoids`."""


# One T-step and one Z-step from the coupling and the prototypes of an oracle.
Refine = Callable[[SampleOracle], tuple[Plan, Array]]
