"""The data as a weighted measure: duplicates merged, rows in an order that depends on their values alone.

The solver therefore sees the same bits whether a sample is repeated or has a weight of two, and in whatever order the
samples come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array, Index


@dataclass(frozen=True)
class Merged:
    """Distinct rows, and which row became which.

    Attributes
    ----------
    rows : (k,) array
        For each distinct sample, the number of one row that holds it.
    group : (n,) array
        For each row, the number of its distinct sample; −1 for rows of weight zero, which take no part.
    weights : (k,) array
        Total weight of each distinct sample.
    """

    rows: Index
    group: Index
    weights: Array

    @property
    def trivial(self) -> bool:
        """Whether every row is a sample of its own."""
        return len(self.rows) == len(self.group)


def merge_duplicates(X: Any, Y: Array | None, weights: Array, *, precomputed: bool = False) -> Merged:
    """Merge rows equal in X and Y and sort them by value; rows of weight zero are left out.

    Distances (`precomputed`) have no values to sort by: their rows stay apart and in their order.
    """
    used = np.flatnonzero(weights > 0)
    if precomputed:
        order, inverse = np.arange(len(used)), np.arange(len(used))
    else:
        _, order, inverse = np.unique(_row_keys(X[used], None if Y is None else Y[used]), True, True)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[used] = inverse.ravel()
    # Small weights first: not even the rounding of a sum may depend on the order of the rows.
    sorted_rows = np.argsort(weights[used], kind="stable")
    totals = np.bincount(inverse.ravel()[sorted_rows], weights=weights[used][sorted_rows], minlength=len(order))
    return Merged(used[order], group, totals.astype(np.float64))


def _row_keys(X: Any, Y: Array | None) -> NDArray[np.void]:
    """One comparable key per row, ordered as the numbers themselves: no unit or origin of X changes the order."""
    if sparse.issparse(X):
        X = _sparse_ranks(X)
    table = np.ascontiguousarray(X if Y is None else np.hstack([X, Y]), dtype=np.float64) + 0.0  # −0.0 becomes 0.0
    table[np.isnan(table)] = np.nan  # one bit pattern for all NaN
    bits = table.view(np.int64)
    # Bytes compare like the numbers once negative ones are inverted, the sign is flipped and the largest byte is first.
    sortable = np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).astype(">i8")
    return np.ascontiguousarray(sortable).view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()


def _sparse_ranks(X: Any) -> Array:
    """Rank (n, 1) of every sparse row in the order its dense row would have."""
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    # Tuples that compare like the dense rows, from the entries alone and a zero at the end.
    keys = [
        # A positive entry is more than the zero of other rows, the more so the earlier; a negative one is less.
        (*((1, -j, v) if v > 0 else (-1, j, v) for j, v in zip(X.indices[a:b], X.data[a:b], strict=True)), (0, 0, 0.0))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([[ranks[key]] for key in keys], dtype=np.float64)
