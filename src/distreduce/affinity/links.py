"""From lists of nearest samples to a symmetric graph: both ends of a link hold it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from distreduce._utils.numba import KERNEL
from distreduce._utils.typing import Array, Index
from distreduce.sharding.graph import GraphRows

NOBODY = np.iinfo(np.int32).max


class Nearest(NamedTuple):
    """The nearest samples found so far: float32 squared distances and int32 numbers, (rows, k) each.

    Every row is a heap, the farthest first. Places not taken hold an infinite distance and the largest number.
    """

    distances: Array
    indices: Array


class Incoming(NamedTuple):
    """Links to samples of a shard from those that found them: ends (counted in the shard), sources, distances."""

    ends: Array
    sources: Array
    distances: Array


def incoming_links(
    before: tuple[Incoming, ...] | None,
    _own: Nearest,
    other: Nearest,
    shard: int,
    number: int,
    bounds: Index,
) -> tuple[Incoming, ...]:
    """The links to a shard's samples from one shard after another, in the order of their sources."""
    ends = other.indices - np.int32(bounds[shard])
    # As numbers without sign, those of samples that come before the shard are large too.
    found = np.flatnonzero(ends.view(np.uint32) < bounds[shard + 1] - bounds[shard])
    if not len(found):
        return before or ()
    sources = (found // ends.shape[1] + bounds[number]).astype(np.int32)
    return (*(before or ()), Incoming(ends.ravel()[found], sources, other.distances.ravel()[found]))


def link(nearest: Nearest, incoming: tuple[Incoming, ...], numbers: Array) -> GraphRows:
    """The rows of the symmetric graph: each sample with itself, those it has found and those that have found it."""
    own = np.column_stack([numbers, nearest.indices])
    order = own.argsort(axis=1)
    own = np.take_along_axis(own, order, 1)
    distances = np.take_along_axis(np.column_stack([np.zeros(len(own), np.float32), nearest.distances]), order, 1)
    taken = own != NOBODY
    outgoing = (_borders(taken.sum(axis=1)), own[taken], distances[taken])
    if not incoming:
        return GraphRows(*outgoing)
    ends, sources, values = (np.concatenate(field) for field in zip(*incoming, strict=True))
    order = ends.argsort(kind="stable")
    borders = _borders(np.bincount(ends, minlength=len(own)))
    return GraphRows(*_union(*outgoing, borders, sources[order], values[order]))


def _borders(lengths: Array) -> Array:
    return np.concatenate([[0], lengths.cumsum()])


@njit(**KERNEL)
def _union(
    indptr: Array, indices: Array, values: Array, more_indptr: Array, more_indices: Array, more_values: Array
) -> tuple[Array, Array, Array]:
    """Rows that hold the entries of either; an entry of both has the same value in both."""
    size = len(indices) + len(more_indices)
    out_indptr, out_indices, out_values = (
        np.zeros(len(indptr), np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.float32),
    )
    end = 0
    for row in range(len(indptr) - 1):
        a, b = indptr[row], more_indptr[row]
        while a < indptr[row + 1] or b < more_indptr[row + 1]:
            left = indices[a] if a < indptr[row + 1] else NOBODY
            right = more_indices[b] if b < more_indptr[row + 1] else NOBODY
            out_indices[end] = min(left, right)
            out_values[end] = values[a] if left <= right else more_values[b]
            a, b, end = a + (left <= right), b + (right <= left), end + 1
        out_indptr[row + 1] = end
    return out_indptr, out_indices[:end].copy(), out_values[:end].copy()
