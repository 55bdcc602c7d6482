"""Length scale and ridge of a classifier's map: how far its labels carry is seen from the samples that are left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.gp._inducing import evenly_spaced
from distreduce.kernels import RBF
from distreduce.mapping import left_out_embedding

# In units of the median heuristic's, and of the ridge. The first pair suits images, whose labels have hardly any noise;
# noisy labels of a table want a smoother map (decision 12).
LENGTH_SCALES, RIDGES = (0.5, 1.0, 2.0), (0.01, 0.1, 1.0)
CLEARLY = 0.75  # an error that is not below this part of the first pair's is no reason to leave it
SAMPLES = 500


def choose_map(
    X: Array, labels: NDArray[np.intp], median: float, length_scale: float | str, map_reg: float | str
) -> tuple[float, float]:
    """The length scale, in units of `median`, and the ridge; "auto" is chosen, a number is kept.

    The map carries an embedding to samples that it has not seen. Here it carries the classes themselves, one-hot, by
    kernel ridge regression, and the pair with the least squared error of left-out samples wins. At most `SAMPLES` of
    them, evenly spaced, take part.
    """
    scales = LENGTH_SCALES if isinstance(length_scale, str) else (length_scale,)
    ridges = RIDGES if isinstance(map_reg, str) else (map_reg,)
    rows = evenly_spaced(len(X), SAMPLES)
    pairs = [(scale, ridge) for scale in scales for ridge in ridges]
    if len(pairs) == 1:
        return pairs[0]
    errors = _left_out_errors(X[rows] / median, labels[rows], pairs)
    best = int(errors.argmin())
    return pairs[best if errors[best] < CLEARLY * errors[0] else 0]


def _left_out_errors(X: Array, labels: NDArray[np.intp], pairs: list[tuple[float, float]]) -> Array:
    """Mean squared error of each pair's left-out classes; samples of equal features are left out together."""
    shares = np.eye(labels.max() + 1)[labels]
    shares -= shares.mean(axis=0)
    _, groups = np.unique(X, axis=0, return_inverse=True)
    errors = []
    for scale, ridge in pairs:
        missed = left_out_embedding(RBF(scale)(X), shares, ridge, groups.ravel()) - shares
        errors.append(np.mean(missed**2))
    return np.array(errors)
