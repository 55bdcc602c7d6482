"""Initial plans for samples in shards: some of them are clustered, and every other sample joins the nearest cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor

from distreduce._utils.numerics import blocks, kmeans, sq_distances, to_dense
from distreduce._utils.typing import Array, Index, Mask, Plan
from distreduce.coupling.initial import apportion, cluster_each_class, is_one_hot, use_all
from distreduce.coupling.problem import hard_plan
from distreduce.kernels import Delta, Kernel, Linear
from distreduce.losses import supervised_rows
from distreduce.sharding.sample import ShardedSample
from distreduce.sharding.shards import Shard, ShardPass, Shards

# Samples that are clustered: more take time, at worst as their square, and change few borders.
SPECTRAL_ROWS = 10_000
BLOCK_ROWS = 2048
BLOCK_NUMBERS = 4_000_000  # distances held at once
# Computes the affinity (k, k) of some samples in memory from their features and weights.
AffinityOf: TypeAlias = Callable[[Any, Array], sparse.csr_array]


class Centres(NamedTuple):
    """Points x (k, d) with targets (k, c), and the prototype (k,) that each stands for.

    A sample's distance to one is |x − x_k|² + weight · |y − y_k|²; an infinite weight keeps classes apart.
    """

    x: Any
    prototype: Index
    targets: Array | None = None
    weight: float = 0.0


class _Pool(NamedTuple):
    """Samples that are clustered."""

    features: Any
    weights: Array
    targets: Array


def initial_plan_on_shards(
    init: str,
    m: int,
    sample: ShardedSample,
    target_kernel: Kernel | None,
    affinity_of: AffinityOf,
    random_state: RandomState,
) -> Plan:
    """A hard plan of the samples with m prototypes, from which the alternation starts.

    Spectral clustering of C ∘ K_Y, the start of small samples, needs eigenvectors of an n×n matrix. Here it is applied
    to some samples of each class, in proportion to its mass, and every other sample joins the nearest of its class.
    Targets that are not classes become columns of a k-means next to the features, scaled to the same total variance
    (factors of 0.4 to 2 gave the same R² on Friedman's data). "kmeans" and "spectral", here the same, ignore them.
    """
    some = sample.subsample
    if init == "random":
        assignment = random_state.randint(m, size=len(sample.weights)).astype(np.intp)
    else:
        centres = None
        if init not in ("kmeans", "spectral") and some.kernel_targets is not None:
            centres = _supervised_centres(m, sample, target_kernel, affinity_of, random_state)
        # Without targets, by choice or because none are known.
        if centres is None:
            means = _cluster_centres(some.features, some.weights, m, random_state)
            centres = Centres(means, np.arange(len(means)))
        # Every sample joins its nearest centre, those that were clustered too.
        assignment = np.concatenate(sample.shards.collect(NearestPrototype(centres)))
    return hard_plan(use_all(assignment, m), sample.weights, m)


def _supervised_centres(
    m: int, sample: ShardedSample, kernel: Kernel | None, affinity_of: AffinityOf, random_state: RandomState
) -> Centres | None:
    """Centres that separate the targets as well; None if no sample of the subsample has a known target."""
    shards, weights, some = sample.shards, sample.weights, sample.subsample
    pool = _Pool(some.features, some.weights, np.asarray(some.kernel_targets))
    parts = shards.collect(_ClassSums(weights))  # masses and counts of all samples: the subsample may miss a rare class
    mass, counts = np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)
    one_hot = isinstance(kernel, Delta | Linear) and all(part[2] for part in parts)
    if one_hot and m >= np.count_nonzero(counts):
        pool = _Pool(*(part[:SPECTRAL_ROWS] for part in pool))
        pool = _add_rare_classes(pool, shards, weights, counts, apportion(mass, counts, min(m, counts.sum())))
        # Of the whole pool, not of each class: other classes take their share of a row, as they do among all samples.
        affinity = affinity_of(pool.features, pool.weights)
        return _class_centres(pool, affinity, mass, weights.sum() - mass.sum(), m, random_state)
    if not supervised_rows(pool.targets).any():
        return None
    return _joint_centres(pool._replace(targets=_complete_targets(pool)), m, random_state)


@dataclass(frozen=True)
class _ClassSums(ShardPass[tuple[Array, Index, bool]]):
    """Mass and number of a shard's samples in each class, and whether its known targets are classes at all."""

    reads = ("kernel_targets",)
    per_sample = ("weights",)
    weights: Array

    def __call__(self, shard: Shard) -> tuple[Array, Index, bool]:
        targets = np.asarray(shard.kernel_targets)
        known, c = supervised_rows(targets), targets.shape[1]
        labels = targets[known].argmax(axis=1)  # classes only if the last result is true
        mass = np.bincount(labels, weights=self.weights[known], minlength=c).astype(np.float64)
        return mass, np.bincount(labels, minlength=c), is_one_hot(targets)


def _add_rare_classes(pool: _Pool, shards: Shards, weights: Array, counts: Index, seats: Index) -> _Pool:
    """Add all samples of those classes of which the pool has fewer samples than the class has prototypes."""
    known = supervised_rows(pool.targets)
    label = np.where(known, np.nan_to_num(pool.targets).argmax(axis=1), -1)
    in_pool = np.bincount(label[known], minlength=len(counts))
    rare = (in_pool < seats) & (in_pool < counts)  # too few samples here, although the shards hold more
    if not rare.any():
        return pool
    kept = ~(known & rare[label])  # the shards send all samples of these classes: the pool's own would be counted twice
    others = shards.collect(_RowsOfClasses(weights, rare))
    return _stack([_Pool(pool.features[kept], pool.weights[kept], pool.targets[kept]), *others])


@dataclass(frozen=True)
class _RowsOfClasses(ShardPass[_Pool]):
    """A shard's samples of the chosen classes."""

    reads = ("features", "kernel_targets")
    per_sample = ("weights",)
    weights: Array
    chosen: Mask

    def __call__(self, shard: Shard) -> _Pool:
        targets = np.asarray(shard.kernel_targets)
        rows = np.flatnonzero((np.nan_to_num(targets) @ self.chosen) > 0)
        return _Pool(shard.features[rows], self.weights[rows], targets[rows])


def _stack(pools: list[_Pool]) -> _Pool:
    features = [pool.features for pool in pools]
    stack = sparse.vstack(features, format="csr") if sparse.issparse(features[0]) else np.concatenate(features)
    return _Pool(stack, np.concatenate([p.weights for p in pools]), np.concatenate([p.targets for p in pools]))


def _class_centres(
    pool: _Pool, affinity: sparse.csr_array, mass: Array, unlabelled: float, m: int, random_state: RandomState
) -> Centres:
    """Samples of each class with their spectral clusters, in proportion to its mass; other classes are infinitely far.

    The mass of unlabelled samples is divided among the classes as in the pool, by the nearest labels.
    """
    known, label = supervised_rows(pool.targets), _complete_targets(pool).argmax(axis=1)
    # Unlabelled mass goes to the classes in the shares that it has in the pool.
    guessed = np.bincount(label[~known], weights=pool.weights[~known], minlength=len(mass))
    mass = mass + unlabelled * guessed / max(guessed.sum(), np.finfo(float).tiny)
    prototype = cluster_each_class(
        lambda own: affinity[own][:, own].toarray(), pool.weights, label, mass, m, random_state
    )
    return Centres(pool.features, prototype, np.eye(len(mass))[label], np.inf)


def _joint_centres(pool: _Pool, m: int, random_state: RandomState) -> Centres:
    """Centres of (x, y) with y scaled to the total variance of x."""
    scale = (_spread(pool.features) or 1.0) / (_spread(pool.targets) or 1.0)  # constant columns have no spread
    Y = scale * pool.targets
    X, d = pool.features, pool.features.shape[1]
    joint = sparse.hstack([X, Y], format="csr") if sparse.issparse(X) else np.hstack([X, Y])
    found = _cluster_centres(joint, pool.weights, m, random_state)
    # Targets in their own unit again; the weight of their distances takes over the scale.
    return Centres(found[:, :d], np.arange(len(found)), found[:, d:] / scale, scale**2)


def _spread(A: Any) -> float:
    """Root of the total variance of the rows."""
    if not sparse.issparse(A):
        return float(np.sqrt(np.var(A, axis=0, dtype=np.float64).sum()))
    variance = np.asarray(A.multiply(A).mean(axis=0)) - np.asarray(A.mean(axis=0)) ** 2
    return float(np.sqrt(max(0.0, variance.sum())))  # rounding may make it negative


def _complete_targets(pool: _Pool) -> Array:
    """Targets of the pool, where they are unknown those of the nearest sample whose target is known."""
    known, targets = supervised_rows(pool.targets), pool.targets.copy()
    if not known.all():
        search = KNeighborsRegressor(1).fit(pool.features[known], targets[known])
        targets[~known] = search.predict(pool.features[~known]).reshape(-1, targets.shape[1])
    return targets


def _cluster_centres(features: Any, weights: Array, k: int, random_state: RandomState) -> Array:
    """k centres, or as many as there are rows."""
    found = kmeans(features, min(k, features.shape[0]), random_state, weights)
    return np.asarray(found.cluster_centers_, dtype=np.float64)


@dataclass(frozen=True)
class NearestPrototype(ShardPass[Index]):
    """Prototype of the centre nearest to each of a shard's samples; unknown targets do not count."""

    reads = ("features", "kernel_targets")
    centres: Centres

    def __call__(self, shard: Shard) -> Index:
        found = np.empty(len(shard), dtype=np.intp)
        for block in blocks(len(found), BLOCK_ROWS):
            X, own = to_dense(shard.features[block], np.float64), found[block]
            Y = None if shard.kernel_targets is None else shard.kernel_targets[block]
            for rows, dense in _comparable(np.arange(len(X)), Y, self.centres):
                # At most BLOCK_NUMBERS distances at a time.
                for part in np.array_split(rows, len(rows) * len(dense.x) // BLOCK_NUMBERS + 1):
                    own[part] = _nearest_of(X[part], None if Y is None else Y[part], dense)
        return found


def _comparable(rows: Index, targets: Array | None, centres: Centres) -> Iterator[tuple[Index, Centres]]:
    """Rows with the dense centres they are compared with: those of their class, if classes are kept apart, or all."""
    if targets is None or centres.targets is None or not np.isinf(centres.weight):
        yield rows, centres._replace(x=to_dense(centres.x, np.float64))
        return
    known = supervised_rows(targets)
    label, of_point = np.nan_to_num(targets).argmax(axis=1), centres.targets.argmax(axis=1)
    if not known.all():
        yield rows[~known], centres._replace(x=to_dense(centres.x, np.float64))  # unlabelled samples may join any class
    for k in np.unique(label[known]):
        own = np.flatnonzero(of_point == k)  # all of one class: targets no longer matter
        yield rows[known & (label == k)], Centres(to_dense(centres.x[own], np.float64), centres.prototype[own])


def _nearest_of(features: Array, targets: Array | None, centres: Centres) -> Index:
    """Prototype of the nearest point, by one matrix product."""
    # Without |x|², which is the same for all centres.
    distances = (centres.x**2).sum(axis=1) - 2.0 * (features @ centres.x.T)
    if targets is not None and centres.targets is not None and np.isfinite(centres.weight):
        known = supervised_rows(targets)
        apart = np.where(known[:, None], sq_distances(np.nan_to_num(targets), centres.targets), 0.0)
        distances += centres.weight * apart
    return centres.prototype[distances.argmin(axis=1)]
