"""A Gaussian process for any number of samples: every prediction is conditioned on the nearest ones."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.typing import Array
from distreduce.gp._exact import BATCH_NUMBERS, evenly_spaced
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import DistanceKernel
from distreduce.mapping.relevance import GAUSSIAN

NEIGHBOURS = 64  # more hardly change predictions, and each takes k³ operations
# A tree finds neighbours fast in few dimensions only; in more, every query visits most of the samples.
FEW_DIMENSIONS, SEARCHED = 16, 30_000
JITTER = 1e-8  # relative to the signal


class NeighbourGP:
    r"""Posterior of the targets given the k nearest samples in the learned metric [1]_; prior mean 0.

    .. math:: m(x) = k_x^\top\Sigma_x^{-1}y_x, \qquad v(x) = s + \sigma^2 - k_x^\top\Sigma_x^{-1}k_x

    where the subscript x selects the neighbours of x. Fitting takes a search tree only, so that every sample takes
    part, and a prediction takes k³ operations, whatever n is.

    Parameters
    ----------
    inputs : (n, d) array
        Training inputs.
    target : (n, c) array
        Targets, which share the covariance.
    hyperparameters : Hyperparameters
        Length scales, signal and noise.
    kernel : DistanceKernel
        Correlation, a function of the distance in units of the length scales.
    weights : (n,) array
        How many samples each row stands for.

    References
    ----------
    .. [1] Allison, Stephenson, F, Pyzer-Knapp (2023). Leveraging locality and robustness to achieve massively scalable
       Gaussian process regression. NeurIPS.
    """

    def __init__(
        self,
        inputs: Array,
        target: Array,
        hyperparameters: Hyperparameters,
        kernel: DistanceKernel = GAUSSIAN,
        weights: Array | None = None,
    ) -> None:
        if inputs.shape[1] > FEW_DIMENSIONS and len(inputs) > SEARCHED:
            rows = evenly_spaced(len(inputs), SEARCHED)
            inputs, target = inputs[rows], target[rows]
            weights = None if weights is None else weights[rows]
        self.inputs, self.target, self.hyperparameters, self.kernel = inputs, target, hyperparameters, kernel
        self.weights = weights
        self._noise = np.full(len(inputs), hyperparameters.noise) / (1.0 if weights is None else weights)
        self._scaled = inputs / hyperparameters.length_scales
        self._search = NearestNeighbors(algorithm="kd_tree", n_jobs=1).fit(self._scaled)

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean of the targets and their common variance (noise included) at each row, in batches of bounded size."""
        mean, variance = np.empty((len(inputs), *self.target.shape[1:])), np.empty(len(inputs))
        k = min(NEIGHBOURS, len(self.inputs))
        step = max(1, BATCH_NUMBERS // (4 * k * (k + self.inputs.shape[1])))
        for start in range(0, len(inputs), step):
            rows = slice(start, start + step)
            mean[rows], variance[rows] = self._condition(inputs[rows] / self.hyperparameters.length_scales, k)
        return mean, np.maximum(variance, self.hyperparameters.noise)

    def _condition(self, scaled: Array, k: int) -> tuple[Array, Array]:
        """Moments of one batch: t systems of k equations, solved together."""
        near = self._search.kneighbors(scaled, k, return_distance=False)
        around = self._scaled[near] - scaled[:, None, :]  # differences first: no squares of large offsets
        to_point = np.einsum("tkd,tkd->tk", around, around)
        inner = around @ around.transpose(0, 2, 1)
        between = np.maximum(to_point[:, :, None] + to_point[:, None, :] - 2 * inner, 0.0)
        signal = self.hyperparameters.signal
        covariance = signal * self.kernel.of_sq_distance(between)
        covariance[:, np.arange(k), np.arange(k)] += self._noise[near] + JITTER * signal
        cross = signal * self.kernel.of_sq_distance(to_point)
        weights = np.linalg.solve(covariance, cross[:, :, None])[:, :, 0]
        mean = np.einsum("tk,tk...->t...", weights, self.target[near])
        return mean, signal + self.hyperparameters.noise - np.einsum("tk,tk->t", weights, cross)
