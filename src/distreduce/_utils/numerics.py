"""Numerics that several rooms share: rows in blocks, k-means, careful squared distances, minimisers.

Squared Euclidean distances are accurate at and near zero, where affinities are most sensitive.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.linalg import mirror
from distreduce._utils.threads import (
    ELEMENTWISE,
    KERNEL,
    PART,
    SERIAL,
    Workers,
    chunk_count,
    single_threaded_blas,
    too_few_to_compile,
)
from distreduce._utils.typing import Array, Index


def evenly_spaced(n: int, size: int) -> Index:
    """At most `size` of n rows, evenly spaced because data are often sorted."""
    return np.unique(np.linspace(0, n - 1, size).astype(np.intp))


def blocks(n: int, size: int) -> Iterator[slice]:
    """Cut n rows into blocks of at most `size`, so that what is computed of each fits into memory or the cache."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def to_dense(rows: Any, dtype: Any = None) -> Array:
    """Return dense or sparse rows as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=dtype)


def kmeans(rows: Any, k: int, random_state: Any, weights: Array | None = None, **options: Any) -> KMeans:
    """Fit k-means once; OpenMP's threads would add up a centre in the order in which they finish."""
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows equal up to rounding: fewer centres than k
        return KMeans(k, n_init=1, random_state=random_state, **options).fit(rows, sample_weight=weights)


# Up to this many features a loop over differences is as fast as a matrix product, and exact.
DIRECT_FEATURES = 100
_BLOCK_ROWS = 256
_REPAIR_BLOCK = 4_000_000  # numbers held at once while distances are computed again
# Below this ratio of distance to norms, |x|² + |y|² − 2 x·y has a relative error above about 1e-12.
_CANCELLATION = 1e-3


def squared_distances(X: Any, dtype: DTypeLike = np.float64, *, workers: Workers = SERIAL) -> Array:
    r"""Compute the squared distances D_ij = |x_i − x_j|² between the rows of a dense or sparse matrix.

    The result (n, n) is bitwise symmetric, non-negative, and exactly zero between equal rows. No other n×n array is
    allocated. `dtype`, float64 or float32, is the type of the result; sums are always computed in float64.
    """
    n = X.shape[0] if sparse.issparse(X) else len(X)
    out = np.empty((n, n), dtype=dtype)
    if sparse.issparse(X):
        # The loop merges sorted columns. A copy, because sorting would change the caller's matrix.
        csr = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.sort_indices()
        workers.run(_sparse_rows, chunk_count(n), csr.indptr, csr.indices, csr.data, out)
        return out
    points = np.ascontiguousarray(X, dtype=np.float64)
    direct = points.shape[1] <= DIRECT_FEATURES or too_few_to_compile(n)
    distances = _direct_sq_distances if direct else _wide_sq_distances
    with single_threaded_blas():
        workers.run(_half_rows, -(-n // _BLOCK_ROWS), points, out, distances)
    mirror(out)
    return out


def _half_rows(chunk: int, _: int, points: Array, out: Array, distances: Callable[[Array, Array], Array]) -> None:
    """Distances of some rows to themselves and all later ones, of which there are enough for the compiled loop."""
    rows = slice(chunk * _BLOCK_ROWS, (chunk + 1) * _BLOCK_ROWS)
    right = slice(min(rows.start, max(0, len(points) - _BLOCK_ROWS)), None)
    out[rows, right] = distances(points[rows], points[right])


def nearest(points: Array, among: Array, k: int = 1) -> tuple[Array, Index]:
    """Distances to, and numbers of, the k nearest rows of `among` in few dimensions: two (n, k) arrays."""
    return NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(among).kneighbors(points)


def nearest_in_use(places: Array, prototypes: Array, weights: Array) -> Index:
    """Number of the nearest prototype of each place; one without weight stands for no sample, and does not count."""
    used = np.flatnonzero(weights)
    return np.asarray(used[nearest(places, prototypes[used])[1][:, 0]])


def divide_columns(X: Any, unit: float | Array) -> Any:
    """X / unit in the precision of X, where `unit` is a number or has one for each column; sparse stays sparse."""
    if np.ndim(unit) == 0:
        return X / unit
    if sparse.issparse(X):
        return sparse.csr_array(X.multiply((1.0 / np.asarray(unit))[None, :]))
    return X / np.asarray(unit).astype(X.dtype, copy=False)


def sq_distances(A: Any, B: Any = None) -> Array:
    """Squared Euclidean distances (n, m) between rows, dense or scipy.sparse, safe against cancellation where dense."""
    B = A if B is None else B
    if sparse.issparse(A) or sparse.issparse(B):
        # A copy: given one object twice, scikit-learn writes zeros on the diagonal, unlike for a row asked for alone.
        return np.asarray(euclidean_distances(A, B.copy() if B is A else B, squared=True), dtype=np.float64)
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if A.shape[1] > DIRECT_FEATURES:
        return _wide_sq_distances(A, B)
    return _direct_sq_distances(A, B)


def _direct_sq_distances(A: Array, B: Array) -> Array:
    """Squared distances (n, m) by differences: zero between equal rows, and the same bits for a row in any batch."""
    if too_few_to_compile(len(B)):  # decided by B, which a fitted model keeps
        return cdist(A, B, "sqeuclidean")
    out = np.zeros((len(A), len(B)))
    _add_sq_distances(np.ascontiguousarray(A), np.ascontiguousarray(B.T), out)
    return out


def _wide_sq_distances(A: Array, B: Array) -> Array:
    """Squared distances by one matrix product, with pairs that are close compared to their norms done again exactly."""
    origin = B.mean(axis=0)  # around the mean of B, norms are smaller, and fewer pairs cancel
    A, B = A - origin, B - origin
    scale = np.einsum("ik,ik->i", A, A)[:, None] + np.einsum("ik,ik->i", B, B)[None, :]
    d2: Array = scale - 2.0 * (A @ B.T)
    # Repair pairs whose difference has lost its digits, in blocks of bounded size.
    close = np.argwhere(~(d2 > _CANCELLATION * scale))  # NaN as well
    for i, j in (block.T for block in np.array_split(close, len(close) * A.shape[1] // _REPAIR_BLOCK + 1)):
        d2[i, j] = ((A[i] - B[j]) ** 2).sum(axis=1)
    return d2


@njit(**PART)
def pair_distance(x: Array, y: Array) -> float:
    """|x − y|² by its definition, in float64: the same bits for |y − x|²."""
    total = 0.0
    for c in range(len(x)):
        difference = float(x[c]) - float(y[c])
        total += difference * difference
    return total


@njit(**ELEMENTWISE)
def _add_sq_distances(A: Array, Bt: Array, out: Array) -> None:
    """Add |a_i − b_j|² to `out`, four features at a time: two to five times as fast as SciPy."""
    d, n = Bt.shape
    for left in range(0, n, 256):  # columns that stay in the cache
        right = min(left + 256, n)
        for i in range(len(A)):
            x, row = A[i], out[i, left:right]
            for f in range(0, d - d % 4, 4):
                b, c, e, g = Bt[f, left:right], Bt[f + 1, left:right], Bt[f + 2, left:right], Bt[f + 3, left:right]
                for j in range(len(row)):
                    s, t, u, v = x[f] - b[j], x[f + 1] - c[j], x[f + 2] - e[j], x[f + 3] - g[j]
                    row[j] += s * s + t * t + u * u + v * v
            for f in range(d - d % 4, d):
                b = Bt[f, left:right]
                for j in range(len(row)):
                    t = x[f] - b[j]
                    row[j] += t * t


@njit(**KERNEL)
def _sparse_rows(chunk: int, n_chunks: int, indptr: Array, indices: Array, data: Array, out: Array) -> None:
    """D_ij and D_ji by merging the sorted columns of two rows: no cancellation, no dense copy."""
    n = len(indptr) - 1
    for i in range(chunk, n, n_chunks):
        for j in range(i, n):
            a, b, total = indptr[i], indptr[j], 0.0
            while a < indptr[i + 1] or b < indptr[j + 1]:
                has_a, has_b = a < indptr[i + 1], b < indptr[j + 1]
                difference = 0.0
                # Advance the row with the smaller column, or both if they share it.
                use_a = has_a and (not has_b or indices[a] <= indices[b])
                use_b = has_b and (not has_a or indices[b] <= indices[a])
                if use_a:
                    difference += data[a]
                    a += 1
                if use_b:
                    difference -= data[b]
                    b += 1
                total += difference * difference
            out[i, j] = out[j, i] = total


class Adam:
    r"""The moving averages of Kingma & Ba (2015), with :math:`\beta_1 = 0.9, \beta_2 = 0.999`.

    .. math:: x \leftarrow x - \gamma\,\frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + 10^{-8}}
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate, self.n_steps = learning_rate, 0
        self.first: Array | float = 0.0  # arrays from the first step on
        self.second: Array | float = 0.0

    def step(self, x: Array, gradient: Array) -> Array:
        """The next point."""
        self.n_steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean, square = self.first / (1 - 0.9**self.n_steps), self.second / (1 - 0.999**self.n_steps)
        return np.asarray(x - self.learning_rate * mean / (np.sqrt(square) + 1e-8))


class BestSoFar:
    """An objective that remembers its best finite point, so that no minimiser can end above its start.

    `objective` goes from a point to its value, the gradient there, and anything else that is worth keeping for the best
    point. It fails if value or gradient is NaN or infinite, the value reaches `failed`, or arithmetic raises an error.
    """

    def __init__(self, objective: Callable[[Array], tuple[Any, ...]], failed: float = np.inf) -> None:
        self.objective, self.failed = objective, failed
        self.point: Array | None = None  # the best one; None before the first finite value
        self.value, self.n_evaluations, self.n_failures = np.inf, 0, 0
        self.kept: list[Any] = []  # what the objective returned at `point` after value and gradient

    def __call__(self, point: Array) -> tuple[float, Array | None]:
        """Value and gradient; infinity and None where the objective fails."""
        self.n_evaluations += 1
        try:
            with np.errstate(all="ignore"):  # the caller handles failures
                value, gradient, *kept = self.objective(point)
        except (ArithmeticError, np.linalg.LinAlgError):
            value = np.inf
        # After an exception `gradient` is unbound, and the infinite value keeps it from being read.
        if not (np.isfinite(value) and value < self.failed and np.isfinite(gradient).all()):
            self.n_failures += 1
            return np.inf, None
        if value < self.value:
            # A copy: SciPy's minimisers write the next point into the same array.
            self.value, self.point, self.kept = value, point.copy(), kept
        return value, gradient

    def uphill(self, point: Array) -> tuple[float, Array]:
        """Value and gradient for a line search: where the objective fails, a higher value, so that it steps back.

        The value is not huge: interpolation would then lead to a step of length zero.
        """
        value, gradient = self(point)
        if gradient is None:
            # Before the first success there is no value to be above.
            return (0.0 if self.point is None else 1.0 + self.value + abs(self.value)), np.zeros_like(point)
        return value, gradient
