"""The input kernel K of the out-of-sample map, with its length scale chosen from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.affinity import squared_distances
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Kernel, Linear, RationalQuadratic
from distreduce.losses import supervised_rows
from distreduce.mapping import relevance_length_scales
from distreduce.sharding.sample import Sample

# The median distance is that of at most this many samples, evenly spaced in the sorted sample.
LEAST_LENGTH_SCALE = 1e-140  # squares of smaller differences underflow
MEDIAN_SAMPLES = 1000


def input_kernel(kernel: str | Kernel, length_scale: Any, sample: Sample, unit: float) -> Kernel:
    """Return the input kernel with its length scale in the units of the sample, which was divided by `unit`."""
    if not isinstance(kernel, str):
        return kernel
    if kernel == "linear":
        return Linear()
    # The length scale, from the data or from the user; ARD starts from the median.
    if isinstance(length_scale, str):
        scale: Any = median_length_scale(sample.features, sample.weights, precomputed=sample.precomputed)
        if length_scale == "ard":
            scale = learned_length_scales(sample, scale)
    else:
        try:
            scale = np.asarray(length_scale, dtype=np.float64) / unit  # X was divided by it too
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"length_scale cannot be read as numbers ({error}).") from error
    # The kernel; only the RBF can have one length scale per feature.
    if kernel == "rbf":
        return RBF(scale)
    if np.ndim(scale) > 0:
        raise InvalidInputError("length_scale with one number per feature needs input_kernel='rbf'.")
    return RationalQuadratic(length_scale=float(scale))


def learned_length_scales(sample: Sample, start: float) -> Array:
    """Return ARD length scales that maximize the marginal likelihood of a Gaussian process from X to the targets."""
    if sample.precomputed or sparse.issparse(sample.features) or sample.kernel_targets is None:
        raise InvalidInputError("length_scale='ard' needs dense features and targets; use 'median' or a number.")
    known = supervised_rows(sample.kernel_targets)  # the likelihood needs targets
    return relevance_length_scales(sample.features[known], sample.kernel_targets[known], sample.weights[known], start)


def median_length_scale(features: Any, weights: Array, *, precomputed: bool = False) -> float:
    """Return l with 2l² the weighted median of the squared distances, so that K = exp(−|x − x'|² / median)."""
    chosen = np.unique(np.linspace(0, len(weights) - 1, MEDIAN_SAMPLES).astype(int))
    part = features[chosen]
    D = np.asarray(part[:, chosen]) ** 2 if precomputed else squared_distances(part)
    # Pairs at distance zero say nothing about the scale.
    w = np.outer(weights[chosen], weights[chosen])[D > 0]
    distances = D[D > 0]
    # Weighted median: half of the weight of all pairs lies below it.
    order = np.argsort(distances)
    cumulative = np.cumsum(w[order])
    median = distances[order][np.searchsorted(cumulative, 0.5 * cumulative[-1])] if len(order) else 0.0
    length_scale = float(np.sqrt(0.5 * median))
    if length_scale < LEAST_LENGTH_SCALE:
        raise InvalidInputError(
            "The differences between samples vanish beside the largest number of X; leave that feature out, or scale X."
        )
    return length_scale
