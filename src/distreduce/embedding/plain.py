"""The Z-step's objective and gradient, written as in the equations; the reference for the fused version."""

from __future__ import annotations

import numpy as np

from distreduce._utils.typing import Array
from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.kernels import Linear


def squared_distances(Z: Array) -> Array:
    """|z_k − z_l|², by differences: exact zeros on the diagonal."""
    return np.asarray(((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def gromov_wasserstein(problem: EmbeddingProblem, sq_distances: Array) -> tuple[float, Array]:
    r"""GW(Z; T) without the part that depends on the inputs alone, and its derivative by the squared distances.

    With :math:`w_{kl} = 1/(1+|z_k-z_l|^2)`, :math:`S = r^\top w\, r` and :math:`\bar C = w/S`,

    .. math::
        GW_{KL} = \frac{q^\top w q}{S} - \sum_{kl} A_{kl}\log w_{kl} + \Big(\sum A\Big)\log S, \qquad
        GW_{sq} = \frac{q^\top w^2 q}{S^2} - \frac{2}{S}\sum_{kl} A_{kl} w_{kl}.
    """
    w = 1.0 / (1.0 + sq_distances)
    A, qq, rr = (
        problem.transported,
        np.outer(problem.mass, problem.mass),
        np.outer(problem.reference, problem.reference),
    )
    S = float((rr * w).sum())
    if problem.loss == "kl":
        carried, total = float((qq * w).sum()), float(A.sum())
        value = carried / S - float((A * np.log(w)).sum()) + total * np.log(S)
        by_w = qq / S - A / w + rr * (total / S - carried / S**2)
    else:
        carried, total = float((qq * w**2).sum()), float((A * w).sum())
        value = carried / S**2 - 2 * total / S
        by_w = 2 * qq * w / S**2 - 2 * A / S + rr * (2 * total / S**2 - 2 * carried / S**3)
    return value, -(w**2) * by_w  # dw/d|z_k − z_l|² = −w²


def dependence(problem: EmbeddingProblem, K: Array) -> tuple[float, Array]:
    r"""Dependence of the embedding's kernel matrix on the targets, and its derivative by that matrix.

    CKA is :math:`\langle K, B\rangle / \|HKH\|_\omega` with :math:`\|M\|_\omega^2 = \sum \omega_k\omega_l M_{kl}^2` and
    :math:`d\|HKH\|/dK = \omega\omega^\top\circ HKH/\|HKH\|`; the uncentred form drops H; HSIC drops the norm.
    """
    B, omega = problem.target, problem.target_weights
    assert B is not None and omega is not None  # for the type checker: only called on supervised problems
    numerator = float((K * B).sum())
    if problem.dependence == "hsic":
        return numerator, B
    ww = np.outer(omega, omega)
    if problem.dependence == "cka":  # B is centred already, so only the norm needs HKH
        row = K @ omega / omega.sum()
        K = K - row[:, None] - row[None, :] + float(omega @ row) / omega.sum()
    norm = float(np.sqrt((ww * K**2).sum()))
    if norm <= 1e-14 * omega.sum():  # all prototypes in one place: nothing depends on anything
        return 0.0, np.zeros_like(B)
    return numerator / norm, B / norm - (numerator / norm**3) * ww * K


def value_and_gradient(problem: EmbeddingProblem, Z: Array) -> tuple[Terms, Array]:
    """The terms of F(Z) and dF/dZ; for symmetric G = dF/d|z_k − z_l|² the chain rule is 4 Σ_l G_kl (z_k − z_l)."""
    sq_distances = squared_distances(Z)
    structure, by_distance = gromov_wasserstein(problem, sq_distances)
    by_distance = problem.alpha * by_distance
    gradient, aligned, projected = np.zeros_like(Z), 0.0, 0.0
    if problem.supervised:
        # A linear kernel depends on places, not on distances: its gradient is direct.
        K = problem.kernel(Z) if isinstance(problem.kernel, Linear) else problem.kernel.of_sq_distance(sq_distances)
        aligned, by_kernel = dependence(problem, K)
        if isinstance(problem.kernel, Linear):
            gradient -= 2 * problem.eta * by_kernel @ Z
        else:
            by_distance = by_distance - problem.eta * by_kernel * problem.kernel.derivative(sq_distances)
    # Σ_l G_kl (z_k − z_l) by one matrix product.
    gradient += 4 * (by_distance.sum(axis=1)[:, None] * Z - by_distance @ Z)
    if problem.quadratic is not None:
        RZ = problem.quadratic @ Z
        projected = 0.5 * float((Z * RZ).sum())
        gradient += RZ
    return Terms(structure, aligned, projected), gradient
