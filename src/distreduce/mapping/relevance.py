"""The input kernel K of the out-of-sample map, with its length scales chosen from the data.

ARD length scales maximize the marginal likelihood of a Gaussian process from X to the targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas, lapack
from scipy.optimize import minimize

from distreduce._utils.linalg import factorise_in_place, half_inverse_from_factor
from distreduce._utils.numerics import evenly_spaced, squared_distances
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Kernel, Linear, Matern32, RationalQuadratic
from distreduce.losses import supervised_rows
from distreduce.sharding.sample import Sample

MAX_SAMPLES = 1000  # the likelihood costs n³; more samples hardly move the length scales
# More steps raise the likelihood but predict left-out targets no better: 8, 15 and 30 within 0.002 of the variance.
MAX_STEPS = 15
_WORST = 1e25  # value where the covariance cannot be factorized: the line search steps back
GAUSSIAN = RBF(1.0)
BLOCK_ROWS = 64
FAR = 200.0  # exp(−200) is zero, and no product with it is a denormal number, which would slow down the rest


def relevance_length_scales(X: Array, Y: Array, weights: Array, start: float) -> Array:
    r"""Length scales (d,) that maximise the marginal likelihood of Y under independent GPs with one shared kernel.

    .. math::
        \log p(Y) = -\tfrac12\mathrm{Tr}(Y^\top\Sigma^{-1}Y) - \tfrac{c}{2}\log|\Sigma|, \qquad
        \Sigma = s\,K_l + \sigma^2 W^{-1},\quad K_l = \exp\Big(-\sum_f \frac{(x_f - x'_f)^2}{2 l_f^2}\Big)

    Irrelevant features get long scales. Scales are kept within a factor 1000 of `start`.
    """
    if len(X) > MAX_SAMPLES:
        chosen = evenly_spaced(len(X), MAX_SAMPLES)
        X, Y, weights = X[chosen], Y[chosen], weights[chosen]
    X = X - X.mean(axis=0)  # the gradient squares X, and an offset would swamp the differences
    # Standardize, so that variances of 1 are sensible starts; with less noise it may end where all is noise.
    Y = Y - weights @ Y / weights.sum()
    Y = Y / (np.sqrt((weights @ Y**2).mean() / weights.sum()) or 1.0)
    d = X.shape[1]
    log_start = np.r_[np.full(d, np.log(start)), 0.0, 0.0]
    # ±7 in the logarithm is a factor of about 1000.
    bounds = [(log_start[0] - 7, log_start[0] + 7)] * d + [(-7, 7), (-14, 3)]
    options = {"maxiter": MAX_STEPS, "ftol": 1e-4}
    found = minimize(
        negative_log_likelihood, log_start, (X, Y, weights), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return np.asarray(np.exp(found.x[:d]))


def negative_log_likelihood(
    parameters: Array, X: Array, Y: Array, weights: Array, kernel: RBF | Matern32 = GAUSSIAN
) -> tuple[float, Array]:
    """−log p(Y) (without the constant) and its gradient in (log l_1 … log l_d, log s, log σ²).

    With G = ½(c Σ⁻¹ − αα^T), M = G ∘ (−2s dK/d(d²)), which is G ∘ sK for the RBF, and d² the squared distances of
    `scaled` inputs; see :func:`length_scale_gradient`, which needs one product M X. All matrices are symmetric: only
    their lower triangles, in column order, are ever filled, read or overwritten. The kernel is RBF(1.0) or Matern32().
    """
    d, c, rough = X.shape[1], Y.shape[1], isinstance(kernel, Matern32)
    scales, signal, noise = np.exp(parameters[:d]), np.exp(parameters[d]), np.exp(parameters[d + 1])
    # Σ = s K + σ² W⁻¹ with a small jitter.
    scaled = X / scales
    covariance = blas.dsyrk(1.0, scaled.T, trans=1, lower=1)
    norms = covariance.diagonal().copy()
    K = np.empty_like(covariance.T)
    slope = np.empty_like(K) if rough else K
    _fill_half(covariance.T, K, slope, norms, float(signal), rough)
    covariance[np.diag_indices(len(X))] += noise / weights + 1e-10 * signal
    positive, pivots = factorise_in_place(covariance), covariance.diagonal()
    if not (positive and np.isfinite(pivots).all() and np.isfinite(norms).all()):
        return _WORST, np.zeros_like(parameters)
    # The value, and G, its derivative by Σ.
    for rows, _ in _half_blocks(len(X)):  # what lies above the diagonal of a factor must be zero
        covariance[rows, rows] = np.tril(covariance[rows, rows])
    alpha = lapack.dpotrs(covariance, Y, lower=1)[0]
    value = 0.5 * float((Y * alpha).sum()) + c * float(np.log(pivots).sum())
    G = blas.dsyrk(-0.5, alpha, beta=0.5 * c, c=half_inverse_from_factor(covariance), lower=1, overwrite_c=1)
    by_noise = noise * float(G.diagonal() @ (1 / weights))
    by_signal = _multiply_half(G.T, K, slope)
    # The last column of M [x, 1] is that of its row sums.
    products = blas.dsymm(1.0, G, np.c_[scaled, np.ones(len(X))], lower=1)
    by_scales = 2 * (products[:, -1] @ scaled**2 - np.einsum("if,if->f", scaled, products[:, :-1]))
    return value, np.r_[by_scales, by_signal, by_noise]


def _half_blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of blocks that cover the upper triangle, and fit into the cache."""
    return ((slice(top, top + BLOCK_ROWS), slice(top, n)) for top in range(0, n, BLOCK_ROWS))


def _fill_half(A: Array, K: Array, slope: Array, norms: Array, signal: float, rough: bool) -> None:
    """Turn inner products A into s K, in A and in K; `slope` gets −2s dK/d(d²) if the kernel is rough."""
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the norms
        for block in _half_blocks(len(norms)):
            sq_distance = np.maximum(norms[block[0], None] + norms[block[1]] - 2.0 * A[block], 0.0)
            if rough:
                r = np.minimum(np.sqrt(3.0 * sq_distance), FAR)
                decay = signal * np.exp(-r)
                slope[block] = 3.0 * decay
                K[block] = (1.0 + r) * decay
            else:
                K[block] = signal * np.exp(-np.minimum(0.5 * sq_distance, FAR))
            A[block] = K[block]


def _multiply_half(G: Array, K: Array, slope: Array) -> float:
    """Return Σ G ∘ K over both triangles, and turn G into G ∘ slope."""
    total = -float(G.diagonal() @ K.diagonal())  # counted twice below
    for block in _half_blocks(len(G)):
        total += 2.0 * float((np.triu(G[block]) * K[block]).sum())
        G[block] *= slope[block]
    return total


def length_scale_gradient(M: Array, scaled: Array) -> Array:
    """d/dlog l_f of a function of K with M = dF/dK ∘ K: Σ_ij M_ij (x_if − x_jf)² / l_f², for `scaled` inputs x/l."""
    return np.asarray(2 * (M.sum(axis=1) @ scaled**2 - np.einsum("if,if->f", scaled, M @ scaled)))


# The median distance is that of at most this many samples, evenly spaced in the sorted sample.
MEDIAN_SAMPLES = 1000
LEAST_LENGTH_SCALE = 1e-140  # squares of smaller differences underflow


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
            Y = sample.kernel_targets
            if sample.precomputed or sparse.issparse(sample.features) or Y is None:
                raise InvalidInputError(
                    "length_scale='ard' needs dense features and targets; use 'median' or a number."
                )
            known = supervised_rows(Y)  # the likelihood needs targets
            scale = relevance_length_scales(sample.features[known], Y[known], sample.weights[known], scale)
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


def median_length_scale(features: Any, weights: Array, *, precomputed: bool = False) -> float:
    """Return l with 2l² the weighted median of the squared distances, so that K = exp(−|x − x'|² / median)."""
    chosen = evenly_spaced(len(weights), MEDIAN_SAMPLES)
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
