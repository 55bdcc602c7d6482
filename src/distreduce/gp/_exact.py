"""An exact Gaussian process for one target: training, prediction, leave-one-out."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, solve_triangular

from distreduce._utils.linalg import jittered_cholesky
from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError, NumericalError
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.kernels import DistanceKernel
from distreduce.mapping.relevance import GAUSSIAN, negative_log_likelihood

BATCH_NUMBERS = 8_000_000  # covariances held at once in a prediction: 64 MB
MAX_EXACT = 10_000  # an exact GP holds n² numbers (0.8 GB here) and takes n³ operations
JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)  # relative to the mean variance of the inputs


def train(
    inputs: Array, target: Array, training: Training, scales: Array, kernel: DistanceKernel = GAUSSIAN
) -> Hyperparameters:
    """Maximise the marginal likelihood of one standardised target (n,), starting at length scales `scales`."""
    # Only differences of inputs enter the covariance.
    # The likelihood's gradient squares the inputs: an offset, such as that of dates, would swamp their differences.
    centred = inputs - inputs.mean(axis=0)
    weights = np.ones(len(inputs))
    objective = partial(negative_log_likelihood, X=centred, Y=target[:, None], weights=weights, kernel=kernel)
    return training(objective, scales)


def check_exact_size(n: int, advice: str) -> None:
    """Raise InvalidInputError if an exact GP of n samples would fill the memory and not end in reasonable time."""
    if n > MAX_EXACT:
        raise InvalidInputError(f"An exact GP of {n} samples is too large (at most {MAX_EXACT}); {advice}.")


class ExactGP:
    r"""Posterior of one target given n inputs; prior mean 0.

    .. math::
        m(x) = k_x^\top\Sigma^{-1}y, \qquad v(x) = s + \sigma^2 - k_x^\top\Sigma^{-1}k_x, \qquad
        \Sigma = s K_l + \sigma^2 I

    Parameters
    ----------
    inputs : (n, d) array
        Training inputs.
    target : (n,) array
        Standardised target.
    hyperparameters : Hyperparameters
        Length scales, signal and noise.
    kernel : DistanceKernel
        Correlation K_l, a function of the distance in units of the length scales.
    """

    def __init__(
        self, inputs: Array, target: Array, hyperparameters: Hyperparameters, kernel: DistanceKernel = GAUSSIAN
    ) -> None:
        self.inputs, self.target, self.hyperparameters, self.kernel = inputs, target, hyperparameters, kernel
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            self._factor = factorise(self._covariance(inputs), hyperparameters.noise)
            self._weights = cho_solve((self._factor, True), target)

    def _covariance(self, others: Array) -> Array:
        """s·K(x, X)."""
        scales = self.hyperparameters.length_scales
        return np.asarray(self.hyperparameters.signal * self.kernel(others / scales, self.inputs / scales))

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance of the target (noise included) at each row, in batches of bounded size."""
        mean, variance = np.empty(len(inputs)), np.empty(len(inputs))
        step = max(1, BATCH_NUMBERS // len(self.inputs))
        prior = self.hyperparameters.signal + self.hyperparameters.noise
        for start in range(0, len(inputs), step):
            rows = slice(start, start + step)
            cross = self._covariance(inputs[rows])
            mean[rows] = cross @ self._weights
            explained = solve_triangular(self._factor, cross.T, lower=True, check_finite=False)
            variance[rows] = prior - np.einsum("ij,ij->j", explained, explained)
        # An observation varies at least as much as its noise; rounding can go below.
        return mean, np.maximum(variance, self.hyperparameters.noise)

    def covariance(self, inputs: Array) -> Array:
        """Joint covariance (t, t) of the target at the rows, noise included."""
        explained = solve_triangular(self._factor, self._covariance(inputs).T, lower=True)
        scaled = inputs / self.hyperparameters.length_scales
        prior = self.hyperparameters.signal * self.kernel(scaled)
        return np.asarray(prior - explained.T @ explained + self.hyperparameters.noise * np.eye(len(inputs)))

    def leave_one_out(self) -> tuple[Array, Array]:
        r"""Mean and variance of each training target given all others ([1]_, equation 5.12).

        .. math:: m_i = y_i - [\Sigma^{-1}y]_i / [\Sigma^{-1}]_{ii}, \qquad v_i = 1/[\Sigma^{-1}]_{ii}

        References
        ----------
        .. [1] Rasmussen, Williams (2006). Gaussian Processes for Machine Learning. MIT Press.
        """
        # Σ⁻¹ = F⁻ᵀF⁻¹ with the factor F: its diagonal is the squared norm of each column of F⁻¹.
        half = solve_triangular(self._factor, np.eye(len(self.target)), lower=True, check_finite=False)
        precision = np.einsum("ij,ij->j", half, half)
        return self.target - self._weights / precision, 1.0 / precision


def factorise(covariance: Array, noise: float) -> Array:
    """Lower Cholesky factor of K + σ²I, with a growing jitter if rounding left K indefinite."""
    matrix = covariance.copy(order="F")  # the factor overwrites it
    matrix[np.diag_indices(len(matrix))] += noise
    try:
        return np.tril(jittered_cholesky(matrix, float(np.mean(covariance.diagonal())), JITTERS)[0])
    except FloatingPointError as error:
        raise NumericalError("The covariance of the training inputs is not finite; scale X.") from error
    except LinAlgError as error:
        message = "The covariance of the training inputs cannot be factorised even with jitter; scale X."
        raise NumericalError(message) from error
