"""The questions that the solver asks about the samples.

The outer loop itself knows only prototypes. Whether n×n arrays, shards in this process or shards on a cluster stand
behind an answer does not matter to it: answers have the size of the prototypes, or a few numbers per sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.embedding.dependence_target import TargetForm
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.mapping import LeftOut
from distreduce.mapping.landmarks import Memory


@dataclass(frozen=True)
class Coupled:
    """A coupling T (n, m) with the transported affinity TᵀCT (m, m), symmetric."""

    plan: Plan
    transported: Array


class SampleOracle(Protocol):
    """Samples with their affinity C, targets and out-of-sample map."""

    @property
    def workers(self) -> Workers:
        """Threads."""
        ...

    @property
    def plan(self) -> Plan:
        """Initial coupling T (n, m)."""
        ...

    @property
    def prototypes(self) -> Array:
        """Initial prototypes Z (m, p)."""
        ...

    def structure_constant(self, loss: InnerLoss) -> float:
        """Return the part of GW that depends on neither T nor Z."""
        ...

    def transported(self, plan: Plan) -> Array:
        """Return TᵀCT (m, m)."""
        ...

    def supervision(self, plan: Plan) -> float:
        """Return Σ_ij L_s(y_i, g_j*(T)) T_ij, zero without targets."""
        ...

    def dependence_target(
        self, plan: Plan, form: TargetForm, dependence: Dependence
    ) -> tuple[Array | None, Array | None]:
        """Return B (m, m) and ω (m,) of :mod:`distreduce.embedding.dependence_target`; None twice without targets."""
        ...

    def map_quadratic(self, plan: Plan) -> Array | None:
        """Return R (m, m), which is left of the map after its elimination; None without a map."""
        ...

    def map_fitted(self, plan: Plan, prototypes: Array) -> Array | None:
        """Return the values KL (n, p) at the samples of the best map for T and Z; None without a map."""
        ...

    def couple(
        self,
        plan: Plan,
        f2: Array,
        h2: Array,
        prototypes: Array,
        fitted: Array | None,
        *,
        alpha: float,
        tol: float,
    ) -> Coupled:
        """Solve the T-step from `plan`, with the cost (μ/2)|z_k − fitted_i|² if there is a map."""
        ...

    def memory(self) -> Memory | None:
        """Return the state that answers depend on besides their arguments, or None."""
        ...

    def restore(self, memory: Memory | None) -> None:
        """Restore such a state from a checkpoint."""
        ...

    # Asked after the loop.
    @property
    def map_inputs(self) -> Any:
        """Inputs of the fitted map: training samples or landmarks; None if samples are given by their distances."""
        ...

    def map_coefficients(self, plan: Plan, prototypes: Array) -> Array:
        """Return the coefficients L of the best map for T and Z."""
        ...

    def left_out(self, plan: Plan, prototypes: Array) -> LeftOut | None:
        """Return where the samples would lie had the map not seen them; None if it was not said how to leave out."""
        ...

    def medoids(self, plan: Plan) -> Index:
        """Return the sample that represents each prototype, −1 for unused ones; see `distreduce.solver.medoids`."""
        ...
