"""Initial plans: identity, random, k-means, or spectral clusters of the affinity, with or without the targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import lobpcg

from distreduce._utils.numerics import blocks, kmeans
from distreduce._utils.typing import Array, Index, Plan
from distreduce.coupling.problem import hard_plan
from distreduce.kernels import Delta, Kernel, Linear
from distreduce.losses import supervised_rows

# More eigenvectors than this cost time and add noise: 50 and m gave the same scores on COIL-20 and SNARE-seq.
SPECTRAL_COMPONENTS = 50
DENSE_EIGENVECTORS = 1500  # up to this many samples LAPACK's solver is used
BLOCK_ROWS = 512  # rows of K_Y in memory at once

Agreement: TypeAlias = Callable[[slice], Array]  # the rows of K_Y in a slice


def initial_plan(
    init: str,
    n_prototypes: int,
    *,
    weights: Array,
    affinity: Array,
    features: object = None,
    targets: Array | None = None,
    target_kernel: Kernel | None = None,
    random_state: RandomState,
) -> Plan:
    """A hard plan with row masses `weights` from which the alternation starts.

    ``"auto"`` is the identity for as many prototypes as samples; for fewer it is ``"supervised_spectral"``: spectral
    clustering of C ∘ K_Y, the affinity between samples that are close in x *and* in y. Without targets that is
    ``"spectral"``, of C alone, as the paper has it.
    """
    n = len(weights)
    if init == "identity" or (init == "auto" and n_prototypes == n):
        return hard_plan(np.arange(n), weights, n)
    if init == "random":
        assignment = use_all(random_state.randint(n_prototypes, size=n).astype(np.intp), n_prototypes)
    elif init == "kmeans":
        assignment = _cluster(features, n_prototypes, weights, random_state)
    elif init == "spectral" or targets is None or target_kernel is None:
        assignment = spectral_clusters(affinity, weights, n_prototypes, random_state)
    elif isinstance(target_kernel, Delta | Linear) and is_one_hot(targets) and n_prototypes >= targets.shape[1]:
        # By class: one Lanczos run on all of C ∘ K_Y found 8 of the 20 eigenvalues 1 on COIL-20.
        assignment = _clusters_by_class(affinity, weights, targets, n_prototypes, random_state)
    else:
        agreement = partial(_agreement, targets, target_kernel)
        assignment = spectral_clusters(affinity, weights, n_prototypes, random_state, agreement)
    return hard_plan(assignment, weights, n_prototypes)


def use_all(assignment: Index, k: int) -> Index:
    """Give every empty prototype one sample of the then fullest, so that none starts without a place."""
    assignment = assignment.copy()
    counts = np.bincount(assignment, minlength=k)
    for empty in np.flatnonzero(counts == 0):
        fullest = int(counts.argmax())
        assignment[np.flatnonzero(assignment == fullest)[-1]] = empty
        counts[fullest] -= 1
        counts[empty] = 1
    return assignment


def _cluster(features: object, k: int, weights: Array, random_state: RandomState) -> Index:
    return use_all(kmeans(features, k, random_state, weights).labels_.astype(np.intp), k)


def _clusters_by_class(affinity: Array, weights: Array, targets: Array, m: int, random_state: RandomState) -> Index:
    """Spectral clusters of each class by itself: C ∘ K_Y of a delta kernel is block diagonal.

    A class gets prototypes in proportion to its weight; an unlabelled sample goes to the class nearest by affinity.
    """
    known = supervised_rows(targets)
    label = np.where(known, np.nan_to_num(targets).argmax(axis=1), -1)
    votes = weights[known, None] * targets[known]  # unlabelled samples: the class to which most of their affinity goes
    label[~known] = (affinity[np.ix_(~known, known)] @ votes).argmax(axis=1)
    mass = np.bincount(label, weights=weights, minlength=targets.shape[1]).astype(np.float64)
    return cluster_each_class(lambda own: affinity[np.ix_(own, own)], weights, label, mass, m, random_state)


def cluster_each_class(
    block: Callable[[Index], Array], weights: Array, label: Index, mass: Array, m: int, random_state: Any
) -> Index:
    """Spectral clusters of each class, whose affinity is `block` of its rows: at most m, in proportion to its `mass`.

    The clusters of a class are numbered after those of the classes before it.
    """
    seats = apportion(mass, np.bincount(label, minlength=len(mass)), min(m, len(label)))
    first, assignment = np.cumsum(seats) - seats, np.empty(len(label), dtype=np.intp)
    for k in np.flatnonzero(seats):
        own = np.flatnonzero(label == k)
        assignment[own] = first[k] + spectral_clusters(block(own), weights[own], int(seats[k]), random_state)
    return assignment


def apportion(mass: Array, counts: Index, m: int) -> Index:
    """Prototypes per class, m in total: in proportion to mass, at least one and at most `counts` per class."""
    seats = (counts > 0).astype(np.intp)
    while seats.sum() < m:
        # D'Hondt's method; a class with as many prototypes as samples gets no more.
        quotient = np.where(seats < counts, mass / (seats + 1.0), -1.0)
        seats[int(quotient.argmax())] += 1
    return seats


def spectral_clusters(
    affinity: Array, weights: Array, k: int, random_state: RandomState, agreement: Agreement | None = None
) -> Index:
    """k-means on the leading eigenvectors of the affinity, times the targets' `agreement` if given."""
    if k >= len(weights):
        return np.arange(len(weights))
    if k == 1:
        return np.zeros(len(weights), dtype=np.intp)
    return _cluster(_spectral_embedding(affinity, weights, k, random_state, agreement), k, weights, random_state)


def _spectral_embedding(
    affinity: Array, weights: Array, k: int, random_state: RandomState, agreement: Agreement | None
) -> Array:
    """Leading eigenvectors of the normalised affinity D^-½ W D^-½."""
    n = len(weights)
    root = np.sqrt(weights)
    M = np.empty((n, n), dtype=np.float32)  # half the memory; a start needs few digits
    for rows in blocks(n, BLOCK_ROWS):
        # √h_i C_ij √h_j is symmetric, and has the eigenvalues of C with sample i repeated h_i times.
        block = affinity[rows] * root[rows, None] * root
        M[rows] = block if agreement is None else block * agreement(rows)
    # At least tiny: float32 may leave a sample without any affinity.
    degree = np.maximum(M @ root.astype(np.float32), np.finfo(np.float32).tiny) / root
    scale = (1.0 / np.sqrt(degree)).astype(np.float32)
    M *= scale[:, None]
    M *= scale
    return _leading_eigenvectors(M, min(k, SPECTRAL_COMPONENTS, n - 1), random_state)


def _leading_eigenvectors(M: NDArray[np.float32], k: int, random_state: RandomState) -> Array:
    """k eigenvectors of the largest eigenvalues, multiple eigenvalues included.

    Groups without any link make 1 a multiple eigenvalue, of whose eigenvectors a single Lanczos sequence finds only a
    few: large matrices take a block method instead, to the accuracy that a start needs.
    """
    n = len(M)
    if n <= DENSE_EIGENVECTORS:
        # eigh orders eigenvalues from the smallest up.
        return np.asarray(eigh(M, subset_by_index=(n - k, n - 1))[1], dtype=np.float64)
    first = random_state.standard_normal((n, k)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "not reaching the requested tolerance"
        _, vectors = lobpcg(M, first, largest=True, maxiter=20, tol=1e-3)
    return np.asarray(vectors, dtype=np.float64)


def is_one_hot(targets: Array) -> bool:
    """Whether all known targets are classes: rows with a single one and zeros otherwise."""
    known = targets[supervised_rows(targets)]
    return bool(((known == 0) | (known == 1)).all() and (known.sum(axis=1) == 1).all())


def _agreement(targets: Array, kernel: Kernel, rows: slice) -> Array:
    """Rows of K_Y; a sample without a known target agrees with all others."""
    known = supervised_rows(targets)
    agreement = np.ones((len(targets[rows]), len(targets)))
    agreement[np.ix_(known[rows], known)] = kernel(targets[rows][known[rows]], targets[known])
    return agreement
