"""The out-of-sample map on a few landmarks, z(x) = K(x, X_r) L (Nyström), over samples in shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, eigh, solve_triangular
from scipy.linalg.lapack import dpocon, dpotrf, dtrtri
from sklearn.utils import check_random_state

from distreduce._utils.numerics import blocks
from distreduce._utils.typing import Array, Plan
from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF, Kernel, diagonal
from distreduce.losses import keep_in_range
from distreduce.mapping.folds import MOST_LEVERAGE, NEARLY_ALL, Folds, leave_out
from distreduce.mapping.kernel_map import NOT_FINITE, barycentres, factorise_kernel
from distreduce.sharding.cells import cluster_means
from distreduce.sharding.shards import Shard, ShardPass, Shards

BLOCK_ROWS = 512  # rows of the kernel that are held at once
# Directions of K below this, relative to the largest, are left out: they are rounding, or repeated landmarks.
SMALLEST_DIRECTION = 1e-12
# From this reciprocal condition number on, no direction is close to being left out.
WELL_CONDITIONED = 1e-10
# Columns that are multiplied at once: wide enough for BLAS, narrow enough for little to be computed twice.
PANEL = 256
ROWS_PER_LANDMARK = 20  # that are clustered: centres of few rows are nearer to these than to new ones
MOST_ESTIMATED = 0.2  # mean leverage: an error of a fifth changes what is left out by 5 %
PROJECTIONS = 64  # random directions for leverages: their relative error is about √(2/64)


@dataclass(frozen=True)
class LandmarkKernel:
    """K(x, X_r) for blocks of rows: the `kernel` to about 1e-12, and several times faster if it is an RBF."""

    kernel: Kernel
    landmarks: Any

    def __call__(self, X: Any) -> Array:
        """Similarities (rows, r)."""
        if self._expanded is None:
            return self.kernel(X.astype(np.float64, copy=False), self.landmarks.astype(np.float64, copy=False))
        origin, scale, right = self._expanded
        # (a, 1, |a|²) in one array, so that one product gives all exponents.
        left = np.empty((X.shape[0], X.shape[1] + 2))
        A = left[:, :-2]
        np.subtract(X, origin, out=A)
        A *= scale
        left[:, -2], left[:, -1] = 1.0, np.einsum("ik,ik->i", A, A)
        K: Array = left @ right
        np.minimum(K, 0.0, out=K)  # a row that is a landmark: rounding may give a negative distance
        return np.exp(K, out=K)

    def blocks(self, X: Any, shares: Array | None) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows with their similarities, block by block; see :func:`join_features`."""
        for rows in blocks(X.shape[0], BLOCK_ROWS):
            yield rows, self(join_features(X[rows], None if shares is None else shares[rows]))

    @cached_property
    def _expanded(self) -> tuple[Array, Array, Array] | None:
        r"""Origin, scale and the right factor of :math:`-|a - b|^2 = (a, 1, |a|^2) \cdot (2b, -|b|^2, -1)`.

        With a = (x − origin)/(√2 l) one matrix product gives the exponents of an RBF. None for other kernels, and for
        sparse rows, which cannot be shifted.
        """
        if not isinstance(self.kernel, RBF) or sparse.issparse(self.landmarks):
            return None
        scale = np.sqrt(0.5) / np.asarray(self.kernel.length_scale, dtype=np.float64)
        points = np.asarray(self.landmarks, dtype=np.float64)
        origin = points.mean(axis=0)  # near the data: far from it the expansion of |a − b|² would cancel
        B = (points - origin) * scale
        return origin, scale, np.vstack([2.0 * B.T, -np.einsum("ik,ik->i", B, B), -np.ones(len(B))])


def join_features(X: Any, shares: Array | None) -> Any:
    """Return the features of the map: those of X and, if there are any, predicted shares of classes."""
    return X if shares is None else np.hstack([X, shares])


def spread_landmarks(rows: Any, r: int) -> Array:
    """Return at most r landmarks for dense rows in random order: the centres of clusters.

    In many dimensions no row is near another one, but each is near the centre of its cluster: kernels may be narrower.
    """
    some = rows[: ROWS_PER_LANDMARK * r]
    return np.asarray(some, dtype=np.float64) if len(some) <= r else cluster_means(some, r, some[:r], 0)


class LandmarkRegression:
    r"""The kernel ridge regression on r landmarks: closed form, fitted values, and the term left by eliminating L.

    The kernel K is replaced by the part that the landmarks explain plus the diagonal of the rest (the "fully
    independent" approximation of sparse Gaussian processes):

    .. math:: \tilde K = Q + D, \quad Q = K_{nr} K_{rr}^{-1} K_{rn}, \quad D = \mathrm{diag}(K - Q)

    Without D a sample that the landmarks explain badly would pull the whole embedding to where the map can follow it.
    The map of all samples follows each of them nearly everywhere. In :class:`MapRegression`'s formulas with
    :math:`\tilde K`, D amounts to a change of weights:

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

    The shards have the parts "features" and "shares"; landmarks have both, in the same units, dense or sparse.
    """

    def __init__(
        self,
        shards: Shards,
        landmarks: Any,
        kernel: Kernel,
        weights: Array,
        mu: float,
        map_reg: float,
        *,
        residual: bool = True,
    ) -> None:
        """One pass over the samples: about 3 n q r products, or 2 n q r without the `residual` D, for cross_fit."""
        self.mu, self.map_reg, self.weights = mu, map_reg, weights
        self._shards, self._similarity = shards, LandmarkKernel(kernel, landmarks)
        # The landmarks' own coordinates, then one pass over the samples.
        self._axes = orthonormal_axes(self._similarity(landmarks))
        ratio = mu / map_reg if residual else 0.0
        self._information = shards.total(GatherInformation(weights, self._similarity, self._axes, ratio))
        if residual:  # of AᵀGA, not of G, which may be singular
            self._factor = _ridge_factor(self._information.shared, mu, map_reg)
        self._shares = np.concatenate(self._information.shares)
        self._latest: tuple[Plan, Array] | None = None  # a plan T (n, m) and its M

    def quadratic(self, plan: Plan) -> Array:
        """R (m, m), symmetric."""
        explained = solve_triangular(
            self._factor[0], self._axes.T @ self._transported(plan), lower=True, check_finite=False
        )
        gram = (plan.T @ self._weight(barycentres(plan, self.weights))).toarray()
        R = self.mu * gram - self.mu**2 * explained.T @ explained
        return np.asarray(0.5 * (R + R.T))

    def coefficients(self, F: Array) -> Array:
        """L (r, p) of the landmarks' map that is nearest to the samples' places F, all samples counting fully.

        D does not apply to new samples. With the weights v, which leave to D what the landmarks cannot follow, fewer of
        them are placed correctly (mixtures of Gaussians, 2000 landmarks: 0.39 in their class against 0.41).
        """
        return self._solve(_ridge_factor(self._information.plain, self.mu, self.map_reg), F)

    def left_out(self, F: Array, folds: Folds | None = None) -> Array:
        r"""Values (n, p) at the samples of the regression of F fitted without each, by :func:`leave_out` with

        .. math:: z_i = k_i L, \qquad \ell_i = \mu h_i\,|C^{-1} A^\top k_i|^2, \quad CC^\top = A^\top G A .

        All samples count fully, as in :meth:`coefficients`. The leverages :math:`\ell_i` are estimated from random
        projections, to about a fifth of their size, which is enough where there are many more samples than landmarks.
        Where their mean is above 0.2 they are computed, by another n q r products.
        """
        return self.cross_fit(F, folds)[0]

    def cross_fit(self, F: Array, folds: Folds | None = None) -> tuple[Array, Array]:
        """Return the values of :meth:`left_out` and the coefficients (r, p) of the regression on all samples."""
        factor = _ridge_factor(self._information.plain, self.mu, self.map_reg)
        draws = check_random_state(0).standard_normal((len(factor[0]), PROJECTIONS)) / np.sqrt(PROJECTIONS)
        L, most = self._solve(factor, F), MOST_LEVERAGE
        values, leverages = self._evaluate(L, factor, draws)
        if leverages.mean() > MOST_ESTIMATED:
            (values, leverages), most = self._evaluate(L, factor, np.eye(len(draws))), NEARLY_ALL
        return leave_out(F, values, leverages, folds, most), L

    def _evaluate(self, L: Array, factor: tuple[Array, bool], draws: Array) -> tuple[Array, Array]:
        """The map's values and the leverages, from projections on the columns of `draws`: one pass."""
        rays = self._axes @ solve_triangular(factor[0], draws, lower=True, trans=1)
        found = np.concatenate(self._shards.collect(_MapValues(self._similarity, L, rays)))
        return found[:, :-1], self.mu * self.weights * found[:, -1]

    def _solve(self, factor: tuple[Array, bool], F: Array) -> Array:
        MF = self._axes.T @ self._pass(sparse.csr_array(self.weights[:, None] * F))  # without V
        return np.asarray(self._axes @ cho_solve(factor, self.mu * MF, check_finite=False))

    def expect(self, Y: Array, folds: Folds | None = None, *, shares: bool) -> Array:
        """Return what the other samples say about the targets (n, c) of each, all known; see :func:`keep_in_range`."""
        mean = self.weights @ Y / self.weights.sum()
        return keep_in_range(mean + self.left_out(Y - mean, folds), Y, shares=shares)

    def fitted(self, plan: Plan, Z: Array) -> Array:
        """Values (n, p) of the map of K̃ at the samples, (v_i/h_i) k_i L* + (1 − v_i/h_i) f_i: one pass."""
        MZ = self._axes.T @ (self._transported(plan) @ Z)
        best = self._axes @ cho_solve(self._factor, self.mu * MZ, check_finite=False)  # the caller checks
        values = np.concatenate(self._shards.collect(_MapValues(self._similarity, best)))
        # K̃ = Q + D: where the landmarks explain little, the map stays near f_i.
        F, share = barycentres(plan, self.weights) @ Z, self._shares[:, None]
        return np.asarray(share * values + (1.0 - share) * F)

    def _weight(self, plan: Plan) -> Plan:
        """VW⁻¹T."""
        return sparse.csr_array(sparse.diags_array(self._shares) @ plan)

    def _transported(self, plan: Plan) -> Array:
        """M (r, m): one pass, unless the plan is that of the last call."""
        if self._latest is None or self._latest[0] is not plan:
            self._latest = plan, self._pass(self._weight(plan))
        return self._latest[1]

    def _pass(self, plan: Plan) -> Array:
        """K_rn T (r, m)."""
        return np.asarray(self._shards.total(_KernelTimesPlan(plan, self._similarity)))


def _ridge_factor(half: Array, mu: float, map_reg: float) -> tuple[Array, bool]:
    """Cholesky factor of μ Σ_i v_i φ_i φ_iᵀ + λI, from the upper triangle of the sum."""
    information = np.triu(half) + np.triu(half, 1).T
    information *= mu
    information[np.diag_indices(len(information))] += map_reg
    return factorise_kernel(information)


@dataclass(frozen=True)
class _KernelTimesPlan(ShardPass[Array]):
    """K_rn T (r, m) of a shard."""

    reads = ("features", "shares")
    per_sample = ("plan",)
    plan: Plan
    similarity: LandmarkKernel

    def __call__(self, shard: Shard) -> Array:
        total = np.zeros((self.plan.shape[1], self.similarity.landmarks.shape[0]))
        for rows, K in self.similarity.blocks(shard.features, shard.shares):
            total += self.plan[rows].T @ K
        return total.T


@dataclass(frozen=True)
class _MapValues(ShardPass[Array]):
    """K(x_i, X_r) L of a shard's rows and, with rays, the squared length of K(x_i, X_r) times these."""

    reads = ("features", "shares")
    similarity: LandmarkKernel
    coefficients: Array
    rays: Array | None = None

    def __call__(self, shard: Shard) -> Array:
        p = self.coefficients.shape[1]
        values = np.empty((len(shard), p + (self.rays is not None)))
        for rows, K in self.similarity.blocks(shard.features, shard.shares):
            values[rows, :p] = K @ self.coefficients
            if self.rays is not None:
                projected = K @ self.rays
                values[rows, p] = np.einsum("ij,ij->i", projected, projected)
        return values


@dataclass
class Information:
    """Σ_i h_i φ_i φ_iᵀ and Σ_i v_i φ_i φ_iᵀ (q, q) of some shards, as upper triangles, and v_i/h_i of the samples."""

    plain: Array
    shared: Array  # with no rows if D is left out: it would be `plain`
    shares: list[Array]

    def __iadd__(self, other: Information) -> Information:
        self.plain += other.plain
        self.shared += other.shared
        self.shares += other.shares
        return self


@dataclass(frozen=True)
class GatherInformation(ShardPass[Information]):
    """:class:`Information` of one shard for φ(x) = K(x, X_r) A; `axes` is A and `ratio` is μ/λ, or 0 without D."""

    reads = ("features", "shares")
    per_sample = ("weights",)
    weights: Array
    similarity: LandmarkKernel
    axes: Array
    ratio: float

    def __call__(self, shard: Shard) -> Information:
        q = self.axes.shape[1]
        shares = np.empty(len(shard))
        found = Information(np.zeros((q, q)), np.zeros((q if self.ratio else 0, q)), [shares])
        # Of an upper triangle, which A is as a rule, each panel needs only the landmarks up to its last.
        triangular = not np.tril(self.axes, -1).any()
        panels = [(start + PANEL if triangular else None, slice(start, start + PANEL)) for start in range(0, q, PANEL)]
        for rows, K in self.similarity.blocks(shard.features, shard.shares):
            phi, h = np.hstack([K[:, :used] @ self.axes[:used, panel] for used, panel in panels]), self.weights[rows]
            explained = np.einsum("ij,ij->i", phi, phi)  # |φ_i|² = Q_ii
            # D_ii = K_ii − Q_ii; rounding may make it negative.
            unexplained = np.maximum(diagonal(self.similarity.kernel, shard.features[rows]) - explained, 0.0)
            shares[rows] = 1.0 / (1.0 + self.ratio * h * unexplained)
            # Scaled in place, first by h and then from h to v.
            phi *= np.sqrt(h)[:, None]
            _add_gram(found.plain, phi)
            if self.ratio:
                phi *= np.sqrt(shares[rows])[:, None]
                _add_gram(found.shared, phi)
        return found


def _add_gram(half: Array, phi: Array) -> None:
    """Add φᵀφ to the panels on and above the diagonal."""
    for start in range(0, len(half), PANEL):
        stop = min(len(half), start + PANEL)
        half[:stop, start:stop] += phi[:, :stop].T @ phi[:, start:stop]


def orthonormal_axes(K: Array) -> Array:
    """A (r, q) with AᵀKA = I for the directions in which K (r, r), positive semidefinite, is not zero."""
    if not np.isfinite(K).all():
        raise NumericalError(NOT_FINITE)
    K = 0.5 * (K + K.T)
    axes = _inverse_cholesky(K)
    # Eigenvectors take four times as long, but can leave directions out.
    return _scaled_eigenvectors(K) if axes is None else axes


def _scaled_eigenvectors(K: Array) -> Array:
    values, vectors = eigh(K, check_finite=False)
    kept = values > SMALLEST_DIRECTION * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _inverse_cholesky(K: Array) -> Array | None:
    """A = R⁻¹ of K = RᵀR, in a quarter of the time that eigenvectors take; None where K is nearly singular."""
    factor, failed = dpotrf(K, lower=0, clean=1)
    if failed or dpocon(factor, np.linalg.norm(K, 1))[0] < WELL_CONDITIONED:  # a direction may have to be left out
        return None
    return np.asarray(dtrtri(factor, lower=0, overwrite_c=1)[0])
