"""HSIC and CKA: the dependence between two kernels on the same weighted points (the paper's CKA term).

Points may carry weights w. Every quantity is that of the probability measure Σ_i p_i δ_i, p = w / Σ w: a point of
weight two counts as that point given twice, and multiplying all weights by a number changes nothing. For prototypes
the targets enter as a matrix B and weights ω; for large samples as few features with K_Y ≈ Φ Φᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import solve_triangular

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import Delta, Kernel, Linear, diagonal
from distreduce.losses import supervised_rows

# A kernel counts as constant when centring leaves less than this share of its norm: what remains is then rounding.
CONSTANT_SHARE = 1e-13


def center(K: Array, weights: ArrayLike | None = None) -> Array:
    """Centred kernel H K Hᵀ with H = I − 1 pᵀ: features have weighted mean zero.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    weights : array-like of shape (n,), optional
        Non-negative weights of the points; uniform by default.

    Returns
    -------
    ndarray of shape (n, n)
    """
    if np.shape(K) != (len(K), len(K)):
        raise InvalidInputError(f"This is not a kernel matrix (n, n): {np.shape(K)}; compute one from the samples.")
    p = _probabilities(len(K), weights)
    rows, columns = K @ p, p @ K  # H K Hᵀ without forming H: O(n²) instead of two matrix products
    return K - rows[:, None] - columns[None, :] + p @ rows


def hsic(K: Array, L: Array, weights: ArrayLike | None = None) -> float:
    """Hilbert–Schmidt independence criterion Σ_ij p_i p_j (HKHᵀ)_ij (HLHᵀ)_ij, the biased (V-statistic) estimator.

    With uniform weights this is tr(K H L H) / n².
    """
    return _inner(center(K, weights), center(L, weights), _probabilities(len(K), weights))


def cka(K: Array, L: Array, weights: ArrayLike | None = None, centered: bool = True) -> float:
    """Kernel alignment ⟨K, L⟩ / (‖K‖ ‖L‖) under ⟨K, L⟩ = Σ_ij p_i p_j K_ij L_ij, of the centred kernels.

    Parameters
    ----------
    K, L : ndarray of shape (n, n)
        Kernel matrices on the same n points.
    weights : array-like of shape (n,), optional
        Non-negative weights of the points; uniform by default.
    centered : bool
        False gives the formula as the paper prints it, (CKA) without centring.

    Returns
    -------
    float
        Between 0 and 1 for positive semi-definite kernels; 0 if either kernel is constant (zero, if not centred).

    Examples
    --------
    >>> import numpy as np
    >>> K = np.outer([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    >>> round(cka(K, 3 * K + 5), 12)
    1.0
    """
    p = _probabilities(len(K), weights)
    K_used, L_used = (center(K, p), center(L, p)) if centered else (K, L)
    norm_K, norm_L = _norm(K_used, p), _norm(L_used, p)
    # A constant kernel depends on nothing; the formula would divide rounding by rounding.
    if norm_K <= CONSTANT_SHARE * _norm(K, p) or norm_L <= CONSTANT_SHARE * _norm(L, p):
        return 0.0
    return _inner(K_used, L_used, p) / (norm_K * norm_L)


def _inner(K: Array, L: Array, p: Array) -> float:
    if K.shape != L.shape:
        raise InvalidInputError(f"K and L must be kernels on the same points; got shapes {K.shape} and {L.shape}.")
    return float(p @ (K * L) @ p)


def _norm(K: Array, p: Array) -> float:
    return float(np.sqrt(_inner(K, K, p)))


def _probabilities(n: int, weights: ArrayLike | None) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise InvalidInputError(f"weights must be {n} finite numbers ≥ 0, not all zero; got shape {w.shape}.")
    return np.asarray(w / w.sum())


Dependence = Literal["cka", "cka_uncentered", "hsic"]
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
        K = kernel(prototype_means(np.asarray(T.T @ Y), carried))
    return _as_direction(K, omega, dependence), omega


def dependence_target_of_sums(
    sums: Array, carried: Array, kernel: Kernel | None, form: TargetForm, dependence: Dependence
) -> tuple[Array, Array]:
    """Return the same for fewer prototypes than samples, from sums Tᵀφ(Y) and the supervised mass (m,).

    φ(y) is y itself, or, with ``kernel=None`` for the form ``"transport"``, features with K_Y = ΦΦᵀ.
    """
    omega = carried if form == "mass" else (carried > 0).astype(float)
    K = sums @ sums.T if kernel is None else kernel(prototype_means(sums, carried))
    return _as_direction(K, omega, dependence), omega


def prototype_means(sums: Array, mass: Array) -> Array:
    """Return means (m, d) from the sums over the samples of each prototype and their mass; zero where it is empty."""
    return sums / np.where(mass > 0, mass, 1.0)[:, None]


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


RESIDUAL = 1e-6  # no landmark is added once the error of the kernel is below this everywhere in the sample


@dataclass(frozen=True)
class TargetFeatures:
    r"""Nyström features :math:`\varphi(y) = F^{-1} k(Y_r, y)` with :math:`K(Y_r, Y_r) = F F^\top`, F lower triangular.

    `error` is the largest k(y, y) − |φ(y)|² in the sample. K − Φ Φᵀ is positive semi-definite, so by Cauchy-Schwarz no
    entry between two targets of the sample is larger.
    """

    kernel: Kernel
    landmarks: Array | None  # Y_r (D, c); None where k is an inner product and y is its own feature
    factor: Array | None  # F (D, D); None likewise
    error: float

    def __call__(self, Y: Array) -> Array:
        """Φ (rows, D) of known targets Y (rows, c)."""
        if self.landmarks is None:
            return Y
        return np.asarray(solve_triangular(self.factor, self.kernel(self.landmarks, Y), lower=True)).T


def nystrom_features(sample_targets: Array, kernel: Kernel, n_features: int = 256) -> TargetFeatures:
    """Compute features from a sample of the targets; exact for class shares and for the linear kernel.

    Each landmark is the target that the earlier ones explain worst (the pivots of an incomplete Cholesky
    factorization): the farthest point in the kernel's distance.
    """
    if isinstance(kernel, Delta | Linear):  # K_Y = YYᵀ: y is its own feature
        return TargetFeatures(kernel, None, None, 0.0)
    Y = sample_targets[supervised_rows(sample_targets)]
    residual = diagonal(kernel, Y)  # k(y, y) − |φ(y)|², before there are features
    columns = np.zeros((len(Y), min(n_features, len(Y))))
    pivots: list[int] = []
    # Incomplete Cholesky factorization, one column per landmark.
    while len(pivots) < columns.shape[1] and residual.max() > RESIDUAL:
        pivot, known = int(residual.argmax()), len(pivots)
        column = kernel(Y, Y[[pivot]])[:, 0] - columns[:, :known] @ columns[pivot, :known]
        columns[:, known] = column / np.sqrt(residual[pivot])
        residual = residual - columns[:, known] ** 2
        pivots.append(pivot)
    # Row i of the columns is φ(y_i), so those of the landmarks are the triangular F itself.
    return TargetFeatures(kernel, Y[pivots], columns[pivots, : len(pivots)], float(max(0.0, residual.max())))
