"""The data as a weighted measure: duplicates merged, rows in an order that depends on their values alone.

What the solver sees is therefore the same, bit for bit, whether a sample is repeated or given a weight of two, and in
whatever order the samples come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Merged:
    """Distinct rows and where they went.

    Attributes
    ----------
    rows : (k,) array
        For each distinct sample, the number of one row that holds it.
    group : (n,) array
        For each row, the distinct sample it is; −1 for rows of weight zero, which take no part.
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
    return Merged(
        used[order], group, np.bincount(inverse.ravel(), weights=weights[used], minlength=len(order)).astype(np.float64)
    )


def _row_keys(X: Any, Y: Array | None) -> NDArray[np.void]:
    """One comparable key a row: the bytes of its numbers, with −0 written as 0."""
    if sparse.issparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        # Rows of different length need one number each: equal rows have equal first places in the sorted list.
        keys = [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        ]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        X = np.array([[ranks[key]] for key in keys], dtype=np.float64)
    table = np.ascontiguousarray(X if Y is None else np.hstack([X, Y]), dtype=np.float64) + 0.0
    table[np.isnan(table)] = np.nan
    return table.view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()
