"""Initial plans: identity, random, k-means, spectral (on the affinity, with or without the targets), or an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from distreduce.coupling.products import hard_plan, rescale_rows
from distreduce.kernels import Kernel
from distreduce.losses import supervised_rows

Array = NDArray[np.float64]
# More eigenvectors than this cost time and add noise: 50 and m gave the same scores on COIL-20 and SNARE-seq.
SPECTRAL_COMPONENTS = 50
BLOCK_ROWS = 512


def initial_plan(
    init: str,
    n_prototypes: int,
    *,
    weights: Array,
    affinity: NDArray[np.floating],
    features: object = None,
    targets: Array | None = None,
    target_kernel: Kernel | None = None,
    random_state: np.random.RandomState,
) -> sparse.csr_array:
    """A hard plan with row masses `weights` from which the alternation starts.

    ``"auto"`` is the identity for as many prototypes as samples; for fewer it is ``"supervised_spectral"``: spectral
    clustering of C ∘ K_Y, the affinity between samples that are close in x *and* in y. Without targets that is
    ``"spectral"``, of C alone, as the paper has it.
    """
    n = len(weights)
    if init == "identity" or (init == "auto" and n_prototypes == n):
        return hard_plan(np.arange(n), weights, n)
    if init == "random":
        return hard_plan(
            _all_used(random_state.randint(n_prototypes, size=n).astype(np.intp), n_prototypes), weights, n_prototypes
        )
    if init == "kmeans":
        return hard_plan(_kmeans(features, n_prototypes, weights, random_state), weights, n_prototypes)
    if init == "spectral":
        targets = None
    embedding = _spectral_embedding(affinity, weights, targets, target_kernel, n_prototypes, random_state)
    return hard_plan(_kmeans(embedding, n_prototypes, weights, random_state), weights, n_prototypes)


def plan_from_array(plan: Array, weights: Array) -> sparse.csr_array:
    """A plan given by its shares (rows of any positive sum) or by its assignment (a vector of prototype numbers)."""
    if plan.ndim == 1:
        return hard_plan(plan.astype(np.intp), weights, int(plan.max()) + 1)
    return rescale_rows(sparse.csr_array(plan), weights)


def _kmeans(features: object, k: int, weights: Array, random_state: np.random.RandomState) -> NDArray[np.intp]:
    found = KMeans(k, n_init=1, random_state=random_state).fit(features, sample_weight=weights)
    return _all_used(found.labels_.astype(np.intp), k)


def _all_used(assignment: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Give every empty prototype one sample of the then fullest: none shall start without a place."""
    assignment = assignment.copy()
    counts = np.bincount(assignment, minlength=k)
    for empty in np.flatnonzero(counts == 0):
        fullest = int(counts.argmax())
        assignment[np.flatnonzero(assignment == fullest)[-1]] = empty
        counts[fullest] -= 1
        counts[empty] = 1
    return assignment


def _spectral_embedding(
    affinity: NDArray[np.floating],
    weights: Array,
    targets: Array | None,
    target_kernel: Kernel | None,
    n_prototypes: int,
    random_state: np.random.RandomState,
) -> Array:
    """Leading eigenvectors of the normalised affinity D^-½ W D^-½, rows of length one (Ng, Jordan and Weiss)."""
    n = len(weights)
    root = np.sqrt(weights)
    M = np.empty((n, n), dtype=np.float32)
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, min(n, start + BLOCK_ROWS))
        block = affinity[rows] * root[rows, None] * root
        M[rows] = (
            block if targets is None or target_kernel is None else block * _agreement(targets, rows, target_kernel)
        )
    degree = np.maximum(M @ root.astype(np.float32), np.finfo(np.float32).tiny) / root
    scale = (1.0 / np.sqrt(degree)).astype(np.float32)
    M *= scale[:, None]
    M *= scale
    components = min(n_prototypes, SPECTRAL_COMPONENTS, n - 1)
    first = random_state.standard_normal(n).astype(np.float32)
    _, vectors = eigsh(M, components, which="LA", ncv=min(n, 2 * components + 20), tol=1e-3, v0=first)
    # Rows of length one: otherwise outliers, on which eigenvectors peak, would each take a prototype of their own.
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)[:, None], dtype=np.float64)


def _agreement(targets: Array, rows: slice, kernel: Kernel) -> Array:
    """Rows of K_Y; a sample with unknown target agrees with everybody."""
    known = supervised_rows(targets)
    agreement = np.ones((len(targets[rows]), len(targets)))
    agreement[np.ix_(known[rows], known)] = kernel(targets[rows][known[rows]], targets[known])
    return agreement
