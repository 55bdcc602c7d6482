"""The out-of-sample map on a few landmarks, z(x) = K(x, X_r) L (Nyström), over samples that lie in shards of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, solve_triangular

from distreduce._utils.typing import Array
from distreduce.kernels import RBF, Kernel
from distreduce.mapping._axes import orthonormal_axes
from distreduce.mapping._information import information
from distreduce.mapping.kernel_map import _cholesky_with_jitter, barycentres
from distreduce.sharding.shards import Shards

BLOCK_ROWS = 512
# A plan that differs in more rows is transported afresh, and so is every tenth, lest roundings add up.
MOST_CHANGED = 1 / 3
MOST_UPDATES = 9


@dataclass(frozen=True)
class Memory:
    """State of a map on landmarks between two steps.

    The matrix is updated by adding changes, so that its last bits depend on the plans before.

    Attributes
    ----------
    plan : (n, m) sparse array
        The latest plan T.
    transported : (r, m) array
        The kernel between landmarks and samples times that plan.
    updates : int
        How many changes were added since it was computed in full.
    """

    plan: sparse.csr_array
    transported: Array
    updates: int


@dataclass(frozen=True)
class LandmarkKernel:
    """K(x, X_r) for blocks of rows; to about 1e-12 the `kernel` itself, and several times faster where it is an RBF."""

    kernel: Kernel
    landmarks: Any

    def __call__(self, X: Any) -> Array:
        """Similarities (rows, r)."""
        if self._expanded is None:
            return self.kernel(X.astype(np.float64, copy=False), self.landmarks.astype(np.float64, copy=False))
        origin, scale, right = self._expanded
        left = np.empty((X.shape[0], X.shape[1] + 2))
        A = left[:, :-2]
        np.subtract(X, origin, out=A)
        A *= scale
        left[:, -2], left[:, -1] = 1.0, np.einsum("ik,ik->i", A, A)
        K: Array = left @ right
        np.minimum(K, 0.0, out=K)  # a row that is a landmark: rounding may leave a distance below zero
        return np.exp(K, out=K)

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """The same for blocks of rows, one after another."""
        for start in range(0, X.shape[0], BLOCK_ROWS):
            rows = slice(start, min(X.shape[0], start + BLOCK_ROWS))
            yield rows, self(X[rows])

    @cached_property
    def _expanded(self) -> tuple[Array, Array, Array] | None:
        r"""Origin, scale and the right factor of :math:`-|a - b|^2 = (a, 1, |a|^2) \cdot (2b, -|b|^2, -1)`.

        With a = (x − origin)/(√2 l) one matrix product gives the exponents of an RBF. None for other kernels and for
        sparse rows, which have no origin but zero.
        """
        if not isinstance(self.kernel, RBF) or sparse.issparse(self.landmarks):
            return None
        scale = np.sqrt(0.5) / np.asarray(self.kernel.length_scale, dtype=np.float64)
        points = np.asarray(self.landmarks, dtype=np.float64)
        origin = points.mean(axis=0)
        B = (points - origin) * scale
        return origin, scale, np.vstack([2.0 * B.T, -np.einsum("ik,ik->i", B, B), -np.ones(len(B))])


class LandmarkProjection:
    r"""Everything about the map for r landmarks: closed form, fitted values, and what elimination leaves.

    The kernel K is replaced by what the landmarks explain of it plus the diagonal of the rest (the "fully independent"
    approximation of sparse Gaussian processes):

    .. math:: \tilde K = Q + D, \quad Q = K_{nr} K_{rr}^{-1} K_{rn}, \quad D = \mathrm{diag}(K - Q)

    Without D a sample that the landmarks explain badly would pull the whole embedding to where the map can follow; the
    map of all samples follows each of them nearly everywhere. In :class:`Projection`'s formulas with
    :math:`\tilde K`, D is no more than a change of weights:

    .. math::
        \tfrac{\mu\lambda}{2}\mathrm{Tr}\big(F^\top(\mu\tilde K + \lambda W^{-1})^{-1}F\big)
        = \min_L \tfrac{\mu}{2}\sum_i v_i |f_i - k_i L|^2 + \tfrac{\lambda}{2}\mathrm{Tr}(L^\top K_{rr} L),
        \quad v_i = \frac{h_i}{1 + \mu h_i D_{ii}/\lambda}

    with k_i = K(x_i, X_r), h the sample weights, W = diag(h), and f_i the barycentres of the plan T, F = W⁻¹TZ. So

    .. math::
        R = \mu T^\top W^{-1} V W^{-1} T - \mu^2 M^\top G^{-1} M, \quad
        G = \mu K_{rn} V K_{nr} + \lambda K_{rr}, \quad M = K_{rn} V W^{-1} T, \quad L^* = \mu G^{-1} M Z .

    G is worse conditioned than K_rr, which is singular as soon as landmarks are many and the kernel smooth. All is
    therefore done in coordinates φ(x) = K(x, X_r) A with AᵀK_rrA = I, A (r, q) from a factor of K_rr:
    :math:`A^\top G A = \mu \sum_i v_i \varphi_i \varphi_i^\top + \lambda I` needs no repair.

    Parameters
    ----------
    shards : Shards
        Hold the part "features".
    landmarks : (r, d) array or sparse matrix
        X_r, in the units of the features.
    """

    def __init__(
        self, shards: Shards, landmarks: Any, kernel: Kernel, weights: Array, mu: float, regularisation: float
    ) -> None:
        """One pass over the samples, of about 3 n q r multiplications."""
        self.mu, self.regularisation, self.weights = mu, regularisation, weights
        self._shards, self._similarity = shards, LandmarkKernel(kernel, landmarks)
        self._axes = orthonormal_axes(self._similarity(landmarks))
        of = (self._similarity, self._axes, mu / regularisation)
        self._information = shards.total(information, ["features"], *of, rows=[weights])
        self._factor = _ridge_factor(self._information.shared, mu, regularisation)
        self._shares = np.concatenate(self._information.shares)
        self.memory: Memory | None = None  # M of the latest plan

    @property
    def n_landmarks(self) -> int:
        """Their number r."""
        return len(self._axes)

    def quadratic(self, plan: sparse.csr_array) -> Array:
        """R (m, m), symmetric."""
        explained = solve_triangular(self._factor[0], self._axes.T @ self._transported(plan), lower=True)
        gram = (plan.T @ self._weighted(barycentres(plan, self.weights))).toarray()
        R = self.mu * gram - self.mu**2 * explained.T @ explained
        return np.asarray(0.5 * (R + R.T))

    def coefficients(self, plan: sparse.csr_array, Z: Array) -> Array:
        """L (r, p) of the landmarks' map that is nearest to the samples' places, all samples counting fully.

        For new samples D says nothing. With the weights v, which leave to D what the landmarks cannot follow, fewer of
        them find their place (mixtures of Gaussians, 2000 landmarks: 0.39 in their class against 0.41).
        """
        MZ = self._axes.T @ (self._pass(plan) @ Z)
        factor = _ridge_factor(self._information.plain, self.mu, self.regularisation)
        return np.asarray(self._axes @ cho_solve(factor, self.mu * MZ))

    def fitted(self, plan: sparse.csr_array, Z: Array) -> Array:
        """Values (n, p) of the map of K̃ at the samples, (v_i/h_i) k_i L* + (1 − v_i/h_i) f_i: one pass."""
        MZ = self._axes.T @ (self._transported(plan) @ Z)
        best = self._axes @ cho_solve(self._factor, self.mu * MZ)
        mapped = self._shards.collect(_mapped, ["features"], self._similarity, best)
        F, share = barycentres(plan, self.weights) @ Z, self._shares[:, None]
        return np.asarray(share * np.concatenate(mapped) + (1.0 - share) * F)

    def _weighted(self, plan: sparse.csr_array) -> sparse.csr_array:
        """VW⁻¹T."""
        return sparse.csr_array(sparse.diags_array(self._shares) @ plan)

    def _transported(self, plan: sparse.csr_array) -> Array:
        """M (r, m): one pass, over the rows in which the plan is not the latest one where these are few."""
        latest = self.memory or Memory(plan, self._pass(self._weighted(plan)), 0)
        change = sparse.csr_array(plan - latest.plan)
        n_changed = np.count_nonzero(np.diff(change.indptr))
        if n_changed > 0:
            if latest.updates < MOST_UPDATES and n_changed <= MOST_CHANGED * len(self.weights):
                latest = Memory(plan, latest.transported + self._pass(self._weighted(change)), latest.updates + 1)
            else:
                latest = Memory(plan, self._pass(self._weighted(plan)), 0)
        self.memory = latest
        return latest.transported

    def _pass(self, plan: sparse.csr_array) -> Array:
        """K_rn T (r, m)."""
        return np.asarray(self._shards.total(_transported, ["features"], self._similarity, rows=[plan]))


def _ridge_factor(information: Array, mu: float, regularisation: float) -> tuple[Array, bool]:
    """Cholesky factor of μ Σ_i v_i φ_i φ_iᵀ + λI, in the memory of the sum."""
    information *= mu
    information[np.diag_indices(len(information))] += regularisation
    return _cholesky_with_jitter(information)


def _transported(features: Any, plan: sparse.csr_array, similarity: LandmarkKernel) -> Array:
    """K_rn T (r, m) of a shard; rows without entries in the plan cost nothing."""
    used = np.flatnonzero(np.diff(plan.indptr))
    features, plan = (features, plan) if len(used) == plan.shape[0] else (features[used], plan[used])
    total = np.zeros((plan.shape[1], similarity.landmarks.shape[0]))
    for rows, K in similarity.blocks(features):
        total += plan[rows].T @ K
    return total.T


def _mapped(features: Any, similarity: LandmarkKernel, coefficients: Array) -> Array:
    """K(x_i, X_r) L of a shard's rows."""
    mapped = np.empty((features.shape[0], coefficients.shape[1]))
    for rows, K in similarity.blocks(features):
        mapped[rows] = K @ coefficients
    return mapped
