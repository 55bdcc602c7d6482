"""The Z-step: minimize over the prototypes for a fixed coupling. Nothing in it has the size of the samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from distreduce.dependence import Dependence
from distreduce.kernels import DistanceKernel, Linear, RationalQuadratic

InnerLoss = Literal["kl", "square"]


@dataclass(frozen=True)
class EmbeddingProblem:
    r"""The objective of the Z-step for a fixed coupling.

    .. math::
        F(Z) = \alpha\,GW(Z; T) \;-\; \eta\,D(Z, Y) \;+\; \tfrac12 \mathrm{Tr}(Z^\top R Z)

    Attributes
    ----------
    mass : (m,) array
        :math:`q = T^\top 1`, the mass of each prototype.
    transported : (m, m) array
        :math:`A = T^\top C T`, the transported affinity; symmetric.
    reference : (m,) array
        Weights :math:`r` in the normaliser :math:`S = \sum_{kl} r_k r_l w_{kl}` of the Student-t affinity: for m < n
        all equal (ones, or more where n > m²), for m = n the sample weights (so that a sample of weight two is that
        sample twice).
    target : (m, m) array
        :math:`B`, the target kernel as the dependence sees it: centred, multiplied by the weights of the two
        prototypes and divided by its own norm, so that the numerator of the CKA is :math:`\langle K_Z, B\rangle`.
    target_weights : (m,) array
        Weights :math:`\omega` of the prototypes in the dependence.
    quadratic : (m, m) array or None
        :math:`R`, which the elimination of the out-of-sample map leaves; None without a map.
    """

    mass: NDArray[np.float64]
    transported: NDArray[np.float64]
    reference: NDArray[np.float64]
    target: NDArray[np.float64] | None = None
    target_weights: NDArray[np.float64] | None = None
    quadratic: NDArray[np.float64] | None = None
    alpha: float = 0.2
    eta: float = 1000.0
    loss: InnerLoss = "kl"
    dependence: Dependence = "cka"
    kernel: DistanceKernel | Linear = field(default_factory=RationalQuadratic)

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
