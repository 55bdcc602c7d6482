"""What the outer loop asks about the samples.

The loop itself knows prototypes only. Whether n×n arrays, sparse shards in this process or shards on a cluster stand
behind an answer is not its business: answers are of the prototypes' size, or hold a few numbers a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.embedding.dependence_target import TargetForm
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.mapping.landmarks import Memory


@dataclass(frozen=True)
class Coupled:
    """A plan T (n, m) and the input affinity that it carries to the prototypes, TᵀCT (m, m), symmetric."""

    plan: sparse.csr_array
    transported: Array


class SampleSide(Protocol):
    """Samples with their affinity C, targets and out-of-sample map."""

    @property
    def balanced(self) -> bool:
        """Whether both marginals of the plan are given (m = n)."""
        ...

    def structure_constant(self, loss: InnerLoss) -> float:
        """The part of GW that no coupling changes."""
        ...

    def transported(self, plan: sparse.csr_array) -> Array:
        """TᵀCT of any plan."""
        ...

    def supervision(self, plan: sparse.csr_array) -> float:
        """Σ_ij L_s(y_i, g_j*(T)) T_ij; zero without targets."""
        ...

    def dependence_target(
        self, plan: sparse.csr_array, form: TargetForm, dependence: Dependence
    ) -> tuple[Array | None, Array | None]:
        """B (m, m) and ω (m,) of the dependence (see :mod:`distreduce.embedding.dependence_target`), or None twice."""
        ...

    def map_quadratic(self, plan: sparse.csr_array) -> Array | None:
        """R (m, m), what is left of the out-of-sample map after its elimination; None without a map."""
        ...

    def map_fitted(self, plan: sparse.csr_array, embedding: Array) -> Array | None:
        """Where the map that fits this plan and embedding best puts the samples, KL (n, p); None without a map."""
        ...

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
        """The T-step from `plan`, with the cost (μ/2)|z_k − fitted_i|² if there is a map."""
        ...

    def memory(self) -> Memory | None:
        """All that answers depend on besides the arguments; None if there is no such thing."""
        ...

    def recall(self, memory: Memory | None) -> None:
        """Go on from a memory of an earlier process."""
        ...
