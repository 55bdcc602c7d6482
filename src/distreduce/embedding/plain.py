"""The Z-step: its problem for a fixed coupling, with objective and gradient written as in the equations.

Nothing in it has the size of the samples. The reference for the fused version, and what fits with few prototypes use:
nothing of it has to be compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from distreduce._utils.typing import Array
from distreduce.dependence import Dependence
from distreduce.kernels import RBF, DistanceKernel, Linear, RationalQuadratic
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


def gromov_wasserstein(problem: EmbeddingProblem, sq_distances: Array) -> tuple[float, Array]:
    r"""GW(Z; T) without the part that depends on the inputs alone, and its derivative by the squared distances.

    With :math:`w_{kl} = 1/(1+|z_k-z_l|^2)`, :math:`S = r^\top w\, r` and :math:`\bar C = w/S`,

    .. math::
        GW_{KL} = \frac{q^\top w q}{S} - \sum_{kl} A_{kl}\log w_{kl} + \Big(\sum A\Big)\log S, \qquad
        GW_{sq} = \frac{q^\top w^2 q}{S^2} - \frac{2}{S}\sum_{kl} A_{kl} w_{kl}.
    """
    A, q, r, qq, rr = problem.transported, problem.mass, problem.reference, *problem.outer_products
    w = 1.0 + sq_distances
    # In place, here and below: of m×m arrays, new memory takes longer than arithmetic.
    np.reciprocal(w, out=w)
    S = float(r @ w @ r)
    # The derivative by w, with opposite sign and multiplied by w: dw/d|z_k − z_l|² = −w².
    if problem.loss == "kl":
        carried, total = float(q @ w @ q), float(A.sum())
        value = carried / S - float(np.vdot(A, np.log(w))) + total * np.log(S)
        slope = (1 / S) * qq
        slope += (total / S - carried / S**2) * rr
        slope *= w
        np.subtract(A, slope, out=slope)
    else:
        carried, total = float(q @ w**2 @ q), float(np.vdot(A, w))
        value = carried / S**2 - 2 * total / S
        slope = w * (2 * A / S - 2 * qq * w / S**2 - rr * (2 * total / S**2 - 2 * carried / S**3))
    slope *= w
    return value, slope


def dependence(problem: EmbeddingProblem, K: Array) -> tuple[float, Array]:
    r"""Dependence of the embedding's kernel matrix on the targets, and its derivative by that matrix.

    CKA is :math:`\langle K, B\rangle / \|HKH\|_\omega` with :math:`\|M\|_\omega^2 = \sum \omega_k\omega_l M_{kl}^2` and
    :math:`d\|HKH\|/dK = \omega\omega^\top\circ HKH/\|HKH\|`; the uncentred form drops H; HSIC drops the norm.
    """
    B, omega = problem.target, problem.target_weights
    assert B is not None and omega is not None  # for the type checker: only called on supervised problems
    numerator = float(np.vdot(K, B))
    if problem.dependence == "hsic":
        return numerator, B
    if problem.dependence == "cka":  # B is centred already, so only the norm needs HKH
        row = K @ omega / omega.sum()
        K = K - row
        K -= (row - float(omega @ row) / omega.sum())[:, None]
    weighted = omega * K
    weighted *= omega[:, None]
    norm = float(np.sqrt(np.vdot(weighted, K)))
    if norm <= 1e-14 * omega.sum():  # all prototypes in one place: nothing depends on anything
        return 0.0, np.zeros_like(B)
    weighted *= -numerator / norm**3
    weighted += (1 / norm) * B
    return numerator / norm, weighted


def value_and_gradient(problem: EmbeddingProblem, Z: Array) -> tuple[Terms, Array]:
    """The terms of F(Z) and dF/dZ; for symmetric G = dF/d|z_k − z_l|² the chain rule is 4 Σ_l G_kl (z_k − z_l)."""
    sq_distances = cdist(Z, Z, "sqeuclidean")  # by differences: exact zeros on the diagonal
    structure, by_distance = gromov_wasserstein(problem, sq_distances)
    by_distance *= problem.alpha
    gradient, aligned, projected = np.zeros_like(Z), 0.0, 0.0
    if problem.supervised:
        if isinstance(problem.kernel, Linear):
            # A linear kernel depends on places, not on distances: its gradient is direct.
            aligned, by_kernel = dependence(problem, problem.kernel(Z))
            gradient -= 2 * problem.eta * by_kernel @ Z
        else:
            # K − 1 where centring removes the constant: with prototypes close together K is one to all its digits.
            kernel = problem.kernel
            if isinstance(kernel, RationalQuadratic | RBF) and problem.dependence != "cka_uncentered":
                K = kernel.minus_one(sq_distances)
            else:
                K = kernel.of_sq_distance(sq_distances)
            aligned, by_kernel = dependence(problem, K)
            by_distance -= problem.eta * by_kernel * problem.kernel.derivative(sq_distances)
    # Σ_l G_kl (z_k − z_l) by one matrix product.
    gradient += 4 * (by_distance.sum(axis=1)[:, None] * Z - by_distance @ Z)
    if problem.quadratic is not None:
        RZ = problem.quadratic @ Z
        projected = 0.5 * float((Z * RZ).sum())
        gradient += RZ
    return Terms(structure, aligned, projected), gradient
