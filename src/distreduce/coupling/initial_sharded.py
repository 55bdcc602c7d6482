"""Initial plans for samples in shards: clusters of some of them, and every other sample to the nearest."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from distreduce._utils.typing import Array, Index
from distreduce.coupling.initial import _all_used, _apportion, _one_hot, _spectral_clusters
from distreduce.coupling.nearest_centres import Centres, nearest
from distreduce.coupling.products import hard_plan
from distreduce.kernels import Delta, Kernel, Linear
from distreduce.losses import supervised_rows
from distreduce.sharding.sample import Sample
from distreduce.sharding.shards import Shards

# Samples that are clustered: more cost time, at worst as the square, and move few borders.
SPECTRAL_ROWS = 10_000


# Computes the affinity (k, k) of some samples in memory from their features and weights.
AffinityOf: TypeAlias = Callable[[Any, Array], sparse.csr_array]


class _Pool(NamedTuple):
    """Samples that the centres are made from."""

    features: Any
    weights: Array
    targets: Array


def initial_plan_on_shards(
    init: str,
    n_prototypes: int,
    *,
    shards: Shards,
    weights: Array,
    sample: Sample,
    target_kernel: Kernel | None,
    affinity_of: AffinityOf,
    random_state: np.random.RandomState,
) -> sparse.csr_array:
    """A hard plan with row masses `weights` from which the alternation starts.

    Spectral clustering of C ∘ K_Y, the start of small samples, needs eigenvectors of an n×n matrix. Here it is made
    for some samples of each class, in proportion to its mass, and a sample goes where the nearest of its class went.
    Other targets are columns of a k-means beside the features, with the same total variance (0.4 to 2 times its root
    ended at the same R² on Friedman's data). ``"kmeans"`` and ``"spectral"``, here the same, ignore the targets.

    `shards` hold the parts "features" and "kernel_targets" (None without targets; rows of NaN are unknown).
    """
    if init == "random":
        assignment = random_state.randint(n_prototypes, size=len(weights)).astype(np.intp)
    else:
        centres = None
        if init not in ("kmeans", "spectral") and sample.kernel_targets is not None:
            start = (n_prototypes, affinity_of, random_state)
            centres = _supervised_centres(shards, weights, sample, target_kernel, *start)
        if centres is None:
            means = _kmeans(sample.features, sample.weights, n_prototypes, random_state)
            centres = Centres(means, np.arange(len(means)))
        assignment = np.concatenate(shards.collect(nearest, ["features", "kernel_targets"], centres))
    return hard_plan(_all_used(assignment, n_prototypes), weights, n_prototypes)


def _supervised_centres(
    shards: Shards,
    weights: Array,
    sample: Sample,
    kernel: Kernel | None,
    m: int,
    affinity_of: AffinityOf,
    random_state: np.random.RandomState,
) -> Centres | None:
    """Centres that part the targets too; None if none of the samples drawn has a known target."""
    pool = _Pool(sample.features, sample.weights, np.asarray(sample.kernel_targets))
    parts = shards.collect(_class_sums, ["kernel_targets"], rows=[weights])
    mass, counts = np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)
    one_hot = isinstance(kernel, Delta | Linear) and all(part[2] for part in parts)
    if one_hot and m >= np.count_nonzero(counts):
        pool = _Pool(*(part[:SPECTRAL_ROWS] for part in pool))
        pool = _with_rare_classes(pool, shards, weights, counts, _apportion(mass, counts, min(m, counts.sum())))
        # Of the pool as a whole: samples of other classes take their share of a row, as they do in the whole sample.
        affinity = affinity_of(pool.features, pool.weights)
        return _class_centres(pool, affinity, mass, weights.sum() - mass.sum(), m, random_state)
    if not supervised_rows(pool.targets).any():
        return None
    return _joint_centres(pool._replace(targets=_completed(pool)), m, random_state)


def _class_sums(targets: Array, weights: Array) -> tuple[Array, Index, bool]:
    """Mass and number of a shard's samples in each class, and whether its known targets are classes at all."""
    known = supervised_rows(targets)
    labels = targets[known].argmax(axis=1)
    mass = np.bincount(labels, weights=weights[known], minlength=targets.shape[1]).astype(np.float64)
    return mass, np.bincount(labels, minlength=targets.shape[1]), _one_hot(targets)


def _with_rare_classes(pool: _Pool, shards: Shards, weights: Array, counts: Index, seats: Index) -> _Pool:
    """The pool with all samples of those classes of which it has fewer than they need centres."""
    known = supervised_rows(pool.targets)
    label = np.where(known, np.nan_to_num(pool.targets).argmax(axis=1), -1)
    in_pool = np.bincount(label[known], minlength=len(counts))
    rare = (in_pool < seats) & (in_pool < counts)
    if not rare.any():
        return pool
    kept = ~(known & rare[label])
    others = shards.collect(_rows_of_classes, ["features", "kernel_targets"], rare, rows=[weights])
    return _stacked([_Pool(pool.features[kept], pool.weights[kept], pool.targets[kept]), *others])


def _rows_of_classes(features: Any, targets: Array, weights: Array, chosen: NDArray[np.bool_]) -> _Pool:
    """A shard's samples of the chosen classes."""
    rows = np.flatnonzero((np.nan_to_num(targets) @ chosen) > 0)
    return _Pool(features[rows], weights[rows], targets[rows])


def _stacked(pools: list[_Pool]) -> _Pool:
    features = [pool.features for pool in pools]
    stack = sparse.vstack(features, format="csr") if sparse.issparse(features[0]) else np.concatenate(features)
    return _Pool(stack, np.concatenate([p.weights for p in pools]), np.concatenate([p.targets for p in pools]))


def _class_centres(
    pool: _Pool,
    affinity: sparse.csr_array,
    mass: Array,
    unlabelled: float,
    m: int,
    random_state: np.random.RandomState,
) -> Centres:
    """Samples of each class with their spectral clusters, in proportion to its mass; other classes are infinitely far.

    The mass without label is shared out as that of the pool is by the nearest labels.
    """
    known, label = supervised_rows(pool.targets), _completed(pool).argmax(axis=1)
    guessed = np.bincount(label[~known], weights=pool.weights[~known], minlength=len(mass))
    mass = mass + unlabelled * guessed / max(guessed.sum(), np.finfo(float).tiny)
    seats = _apportion(mass, np.bincount(label, minlength=len(mass)), min(m, len(label)))
    first, prototype = np.cumsum(seats) - seats, np.empty(len(label), dtype=np.intp)
    for k in np.flatnonzero(seats):
        own = np.flatnonzero(label == k)
        block = affinity[own][:, own].toarray()
        prototype[own] = first[k] + _spectral_clusters(block, pool.weights[own], int(seats[k]), random_state)
    return Centres(pool.features, prototype, np.eye(len(mass))[label], np.inf)


def _joint_centres(pool: _Pool, m: int, random_state: np.random.RandomState) -> Centres:
    """Centres of (x, y) with y scaled to the total variance of x."""
    scale = (_spread(pool.features) or 1.0) / (_spread(pool.targets) or 1.0)
    Y = scale * pool.targets
    X, d = pool.features, pool.features.shape[1]
    joint = sparse.hstack([X, Y], format="csr") if sparse.issparse(X) else np.hstack([X, Y])
    found = _kmeans(joint, pool.weights, m, random_state)
    return Centres(found[:, :d], np.arange(len(found)), found[:, d:] / scale, scale**2)


def _spread(A: Any) -> float:
    """Root of the total variance of the rows."""
    if not sparse.issparse(A):
        return float(np.sqrt(np.var(A, axis=0, dtype=np.float64).sum()))
    variance = np.asarray(A.multiply(A).mean(axis=0)) - np.asarray(A.mean(axis=0)) ** 2
    return float(np.sqrt(max(0.0, variance.sum())))


def _completed(pool: _Pool) -> Array:
    """Targets of the pool, where they are unknown those of the nearest sample whose target is known."""
    known, targets = supervised_rows(pool.targets), pool.targets.copy()
    if not known.all():
        search = KNeighborsRegressor(1).fit(pool.features[known], targets[known])
        targets[~known] = search.predict(pool.features[~known]).reshape(-1, targets.shape[1])
    return targets


def _kmeans(features: Any, weights: Array, k: int, random_state: np.random.RandomState) -> Array:
    """k centres, or as many as there are rows."""
    search = KMeans(min(k, features.shape[0]), n_init=1, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # repeated rows: some centres are equal
        return np.asarray(search.fit(features, sample_weight=weights).cluster_centers_, dtype=np.float64)
