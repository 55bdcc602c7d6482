"""A sparse symmetric graph over the samples, in rows that shards hold."""

from __future__ import annotations

from typing import NamedTuple

from distreduce._utils.typing import Array


class GraphRows(NamedTuple):
    """Rows of a sparse n×n matrix in compressed form; the pattern of the full matrix is symmetric.

    ``indptr`` (int64, one more than rows) counts from the shard's first row. ``indices`` (int32, sorted within a row)
    are numbers of samples over all shards and include the row's own number. ``values`` are float32.
    """

    indptr: Array
    indices: Array
    values: Array


class Nearest(NamedTuple):
    """The nearest samples found so far: float32 squared distances and int32 sample numbers, (rows, k) each.

    Every row is a heap with the farthest sample first. Empty places hold an infinite distance and the largest int32.
    """

    distances: Array
    indices: Array


class Incoming(NamedTuple):
    """Links to samples of a shard from the samples that found them.

    ``ends`` are numbers of samples within the shard, ``sources`` numbers over all shards, ``distances`` are float32.
    """

    ends: Array
    sources: Array
    distances: Array
