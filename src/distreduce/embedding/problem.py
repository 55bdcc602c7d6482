"""The Z-step: minimize over the prototypes for a fixed coupling. Nothing in it has the size of the samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distreduce._utils.typing import Array
from distreduce.dependence import Dependence
from distreduce.kernels import DistanceKernel, Linear, RationalQuadratic
from distreduce.losses import InnerLoss


@dataclass(frozen=True)
class EmbeddingProblem:
    r"""The objective of the Z-step for a fixed coupling.

    .. math::
        F(Z) = \alpha\,GW(Z; T) \;-\; \eta\,D(Z, Y) \;+\; \tfrac12 \mathrm{Tr}(Z^\top R Z)
    """

    mass: Array  # q = Tᵀ1 (m,), the mass of each prototype
    transported: Array  # A = TᵀCT (m, m), the transported affinity, symmetric
    # r (m,) in the normaliser S = Σ_kl r_k r_l w_kl of the Student-t affinity: for m < n all equal (ones, or more where
    # n > m²), for m = n the sample weights, so that a sample of weight two is that sample twice.
    reference: Array
    # B (m, m), the target kernel as the dependence sees it: centred, multiplied by the weights of the two prototypes
    # and divided by its own norm, so that the numerator of the CKA is ⟨K_Z, B⟩.
    target: Array | None = None
    target_weights: Array | None = None  # ω (m,), weights of the prototypes in the dependence
    quadratic: Array | None = None  # R (m, m), which the elimination of the map leaves; None without a map
    alpha: float = 0.2
    eta: float = 1000.0
    loss: InnerLoss = "kl"
    dependence: Dependence = "cka"
    kernel: DistanceKernel | Linear = field(default_factory=RationalQuadratic)

    @cached_property
    def outer_products(self) -> tuple[Array, Array]:
        """q qᵀ and r rᵀ."""
        return np.outer(self.mass, self.mass), np.outer(self.reference, self.reference)

    @property
    def supervised(self) -> bool:
        return self.eta != 0.0 and self.target is not None


@dataclass(frozen=True)
class Terms:
    """The three terms of F, not yet multiplied by α and η."""

    gromov_wasserstein: float
    dependence: float
    projection: float

    def total(self, problem: EmbeddingProblem) -> float:
        """F(Z)."""
        return problem.alpha * self.gromov_wasserstein - problem.eta * self.dependence + self.projection
