"""Targets of the prototypes in the dependence term: the matrix B and the weights ω of the CKA."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.dependence import CONSTANT_SHARE, center
from distreduce.embedding.problem import Dependence
from distreduce.kernels import Delta, Kernel, Linear
from distreduce.losses import supervised_rows

TargetForm = Literal["barycentric", "mass", "transport"]
BLOCK_ROWS = 1024  # columns of the target kernel that are held at once


def dependence_target(
    plan: sparse.csr_array, targets: Array, kernel: Kernel, form: TargetForm, dependence: Dependence
) -> tuple[Array, Array]:
    r"""Return B (m, m) and ω (m,) such that the dependence is :math:`\langle K_Z, B\rangle / \|HK_ZH\|_\omega`.

    ``"barycentric"``
        :math:`K(\bar y_k, \bar y_l)` of the prototypes' mean targets; all prototypes with a target count alike.
    ``"mass"``
        The same, with prototypes weighted by their mass: the CKA of two weighted measures.
    ``"transport"``
        The paper's :math:`T^\top K_Y T`, unweighted, in which heavy prototypes dominate.

    Samples without a target are ignored. With one prototype per sample the weights are the samples' in all forms.
    """
    # The supervised mass of each prototype, from samples with a known target only.
    known = supervised_rows(targets)
    T, Y = plan[known], targets[known]
    carried = np.asarray(T.sum(axis=0)).ravel()
    one_to_one = plan.shape[0] == plan.shape[1]
    # Weights: with one prototype per sample a weight of two must act like that sample twice (decision 1).
    omega = carried if form == "mass" or one_to_one else (carried > 0).astype(float)
    # The target kernel between prototypes.
    if form == "transport" and not one_to_one:
        K = _transported_kernel(T, Y, kernel)
    else:
        K = kernel(_means(np.asarray(T.T @ Y), carried))
    return _as_direction(K, omega, dependence), omega


def dependence_target_of_sums(
    sums: Array, carried: Array, kernel: Kernel | None, form: TargetForm, dependence: Dependence
) -> tuple[Array, Array]:
    """Return the same for fewer prototypes than samples, from sums Tᵀφ(Y) and the supervised mass (m,).

    φ(y) is y itself, or, with ``kernel=None`` for the form ``"transport"``, features with K_Y = ΦΦᵀ.
    """
    omega = carried if form == "mass" else (carried > 0).astype(float)
    K = sums @ sums.T if kernel is None else kernel(_means(sums, carried))
    return _as_direction(K, omega, dependence), omega


def _means(sums: Array, carried: Array) -> Array:
    """Return the mean target of every prototype; any finite number where it has none, since its weight is zero."""
    return sums / np.where(carried > 0, carried, 1.0)[:, None]


def _transported_kernel(T: sparse.csr_array, Y: Array, kernel: Kernel) -> Array:
    """Tᵀ K_Y T, through class sums where the kernel is an inner product, else in blocks of rows."""
    if isinstance(kernel, Delta | Linear):
        sums = np.asarray(T.T @ Y)
        return sums @ sums.T
    total = np.zeros((T.shape[1], T.shape[1]))
    for start in range(0, len(Y), BLOCK_ROWS):  # never all of the n×n matrix K_Y
        rows = slice(start, start + BLOCK_ROWS)
        total += T[rows].T @ (T.T @ kernel(Y, Y[rows])).T
    return total


def _as_direction(K: Array, omega: Array, dependence: Dependence) -> Array:
    """Centred, weighted by both prototypes, and divided by its norm (for HSIC by the squared mass)."""
    weights = np.outer(omega, omega)
    whole = float(np.sqrt((weights * K**2).sum()))
    if dependence != "cka_uncentered":
        K = center(K, omega)  # then ⟨HK_ZH, B⟩ = ⟨K_Z, B⟩, and the numerator needs no centring
    left = float(np.sqrt((weights * K**2).sum()))
    if left <= max(CONSTANT_SHARE * whole, 1e-300):  # all targets are equal: only rounding is left
        return np.zeros_like(K)
    return weights * K / (float(weights.sum()) if dependence == "hsic" else left)
