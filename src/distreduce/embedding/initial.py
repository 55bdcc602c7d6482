"""Initial prototypes: principal coordinates of their mean samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from distreduce._utils.typing import Array

# Student-t affinities are flat near the origin: from a small start classes separate without crossing one another
# (silhouette on SNARE-seq, m = 100: 80 with 0.1, 72 with 1).
START_SCALE = 0.1


def initial_prototypes(
    inputs: Any, plan: sparse.csr_array, n_components: int, random_state: np.random.RandomState, *, precomputed: bool
) -> Array:
    """Return the principal coordinates (m, p) of the prototypes' means, weighted by mass, with spread `START_SCALE`.

    `inputs` are features (n, d), or distances (n, n) if `precomputed`. Directions in which the prototypes do not differ
    start from noise: prototypes that are flat in a direction have no gradient there.
    """
    mass = np.asarray(plan.sum(axis=0)).ravel()
    # Empty prototypes get a row of zeros instead of NaN.
    shares = sparse.csr_array(sparse.diags_array(1.0 / np.where(mass > 0, mass, 1.0)) @ plan.T)
    if precomputed:
        return _placed(_distance_gram(inputs, shares), mass, n_components, random_state)
    return prototypes_from_means(shares @ inputs, mass, n_components, random_state)


def prototypes_from_means(means: Any, mass: Array, n_components: int, random_state: np.random.RandomState) -> Array:
    """Return the same from the prototypes' mean features (m, d), dense or sparse, and their masses (m,)."""
    means = np.asarray(means.toarray() if sparse.issparse(means) else means, dtype=np.float64)
    return _placed(_feature_gram(means, mass), mass, n_components, random_state)


def _placed(gram: Array, mass: Array, n_components: int, random_state: np.random.RandomState) -> Array:
    """Return the leading principal coordinates, scaled, with noise where the prototypes do not differ."""
    scores = _leading_scores(gram, mass, n_components)
    spread = float(np.sqrt((mass @ scores**2).max() / mass.sum()))
    noise = random_state.standard_normal(scores.shape)
    if spread == 0.0:  # all prototypes have the same mean
        return START_SCALE * noise
    scores *= START_SCALE / spread
    flat = np.abs(scores).max(axis=0) <= 1e-6 * START_SCALE
    scores[:, flat] = 0.1 * START_SCALE * noise[:, flat]
    return scores


def _feature_gram(means: Array, mass: Array) -> Array:
    """Inner products (m, m) of the barycentres, centred by mass and divided by the largest entry against overflow."""
    means = means - mass @ means / mass.sum()
    means /= np.abs(means).max() or 1.0
    return means @ means.T


def _distance_gram(distances: Array, shares: sparse.csr_array) -> Array:
    """The same from squared distances, −½ D² between barycentres (classical scaling; centred afterwards)."""
    scaled = distances / (distances.max() or 1.0)
    return -0.5 * np.asarray(shares @ (shares @ scaled**2).T)


def _leading_scores(gram: Array, mass: Array, n_components: int) -> Array:
    """Leading principal coordinates of the weighted points; missing ones are zero, signs are fixed by the largest."""
    m, root = len(mass), np.sqrt(mass)
    # Centre at the mean of the prototypes, weighted by mass.
    row = gram @ mass / mass.sum()
    centred = gram - row[:, None] - row[None, :] + mass @ row / mass.sum()
    # Leading eigenvectors of the weighted Gram matrix; eigh sorts upwards.
    k = min(n_components, m)
    values, vectors = eigh(root[:, None] * centred * root, subset_by_index=(m - k, m - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    # Smaller ones are rounding, or negative values from distances that are not Euclidean.
    positive = np.where(values > 1e-12 * max(values[0], 0.0), values, 0.0)
    scores = np.zeros((m, n_components))  # columns beyond m stay zero, and are flat
    scores[:, :k] = vectors * np.sqrt(np.maximum(positive, 0.0)) / np.where(root > 0, root, 1.0)[:, None]
    # The sign of an eigenvector is arbitrary: make its largest entry positive, for reproducible starts.
    peaks = scores[np.abs(scores).argmax(axis=0), np.arange(n_components)]
    return scores * np.where(peaks < 0, -1.0, 1.0)
