"""Rows of a sparse symmetric graph over the samples, as a shard holds them."""

from __future__ import annotations

from typing import NamedTuple

from distreduce._utils.typing import Array


class GraphRows(NamedTuple):
    """Rows of a sparse n×n matrix in compressed form; the pattern of the whole matrix is symmetric.

    ``indptr`` (int64, one more than rows) counts from the shard's first row, ``indices`` (int32, sorted in every row)
    are numbers of samples over all shards and hold the row's own, ``values`` are float32.
    """

    indptr: Array
    indices: Array
    values: Array
