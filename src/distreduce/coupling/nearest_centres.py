"""Points that stand for prototypes, and which of them is nearest to a sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array, Index
from distreduce.kernels import sq_distances
from distreduce.losses import supervised_rows

BLOCK_ROWS = 2048
BLOCK_NUMBERS = 4_000_000  # distances held at once


class Centres(NamedTuple):
    """Points x (k, d) with targets (k, c), and the prototype (k,) that each stands for.

    A sample's distance to one is |x − x_k|² + weight · |y − y_k|²; an infinite weight keeps classes apart.
    """

    x: Any
    prototype: Index
    targets: Array | None = None
    weight: float = 0.0


def nearest(features: Any, targets: Array | None, centres: Centres) -> Index:
    """Prototype of the point nearest to each of a shard's samples; unknown targets are no distance."""
    found = np.empty(features.shape[0], dtype=np.intp)
    for start in range(0, len(found), BLOCK_ROWS):
        block = slice(start, min(len(found), start + BLOCK_ROWS))
        Y = None if targets is None else targets[block]
        found[block] = _nearest_in_block(_dense(features[block]), Y, centres)
    return found


def _nearest_in_block(features: Array, targets: Array | None, centres: Centres) -> Index:
    found = np.empty(len(features), dtype=np.intp)
    for rows, among in _comparable(np.arange(len(features)), targets, centres):
        dense = centres._replace(x=_dense(centres.x)) if among is None else _some(centres, among)
        for part in np.array_split(rows, len(rows) * len(dense.x) // BLOCK_NUMBERS + 1):
            found[part] = _nearest_of(features[part], None if targets is None else targets[part], dense)
    return found


def _some(centres: Centres, among: Index) -> Centres:
    """Some of the points; they are of one class, so that targets do not matter any more."""
    return Centres(_dense(centres.x[among]), centres.prototype[among])


def _comparable(rows: Index, targets: Array | None, centres: Centres) -> Iterator[tuple[Index, Index | None]]:
    """Rows with the points they are compared with (None: all): those of their own class, if classes are kept apart."""
    if targets is None or centres.targets is None or not np.isinf(centres.weight):
        yield rows, None
        return
    known = supervised_rows(targets)
    label, of_point = np.nan_to_num(targets).argmax(axis=1), centres.targets.argmax(axis=1)
    if not known.all():
        yield rows[~known], None
    for k in np.unique(label[known]):
        yield rows[known & (label == k)], np.flatnonzero(of_point == k)


def _nearest_of(features: Array, targets: Array | None, centres: Centres) -> Index:
    """Prototype of the nearest point, by one matrix product."""
    distances = (centres.x**2).sum(axis=1) - 2.0 * (features @ centres.x.T)
    if targets is not None and centres.targets is not None and np.isfinite(centres.weight):
        known = supervised_rows(targets)
        apart = np.where(known[:, None], sq_distances(np.nan_to_num(targets), centres.targets), 0.0)
        distances += centres.weight * apart
    return centres.prototype[distances.argmin(axis=1)]


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
