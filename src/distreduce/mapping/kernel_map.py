"""The out-of-sample map z(x) = K(x, X) L: kernel ridge regression from the inputs to the embedding of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_solve, eigh, solve_triangular
from scipy.special import softmax
from sklearn.utils import check_random_state

from distreduce._utils.linalg import jittered_cholesky, mirror
from distreduce._utils.text import warn_user
from distreduce._utils.threads import SERIAL, Workers, single_threaded_blas
from distreduce._utils.typing import Array, Plan
from distreduce.exceptions import IllConditionedWarning, NumericalError
from distreduce.kernels import Kernel, rounds_alike
from distreduce.mapping.folds import NEARLY_ALL, Folds, leave_out

BATCH_NUMBERS = 2_000_000  # kernel values that a thread holds at once when mapping new samples
# Fixed, because the rounding of a matrix product depends on its shape. BLAS takes 8, 12, 16 or 24 rows at once, and
# rounds the last of 128 rows in another way.
EVEN_ROWS = 96
NOT_FINITE = "The input kernel is not finite; scale X or give a length_scale that fits it."
BLOCK_ROWS = 256  # rows of the kernel matrix that a task computes
PROBES = 256  # random signs for the diagonal of an inverse
JITTERS = tuple(10.0**power for power in range(-10, 1))  # relative to the diagonal of the kernel matrix


@dataclass(frozen=True)
class Predictions:
    r"""Predicted shares of classes as further features of a map, :math:`p(x) = \mathrm{softmax}(\hat y(x))`."""

    shares: Array  # P (n, c) of the training inputs, each predicted without the class of its own sample
    predictor: KernelMap  # ŷ(x)

    def __call__(self, X: Any, workers: Workers = SERIAL) -> Array:
        """Predict the shares (t, c) of new rows."""
        return np.asarray(softmax(self.predictor(X, workers), axis=1))


@dataclass(frozen=True)
class KernelMap:
    r"""z(x) = K(x, X) L, with the training inputs X and the coefficients L (n, p).

    With ``inputs=None`` the rows are already distances to the training samples (metric="precomputed").
    New rows are divided by `unit` first, as the training inputs were; a fitted map has a number there.
    With `predictions` it is :math:`z(x) = K([x, p(x)], [X, P])\, L`.
    """

    kernel: Kernel
    inputs: Any
    coefficients: Array
    unit: float | Array = 1.0
    predictions: Predictions | None = None

    def __call__(self, X: Any, workers: Workers = SERIAL) -> Array:
        """Embed the rows of X, in batches of bounded size; a row's result does not depend on its batch."""
        out, inputs = np.empty((X.shape[0], self.coefficients.shape[1])), self.wide_inputs
        # Independent of the number of threads: rounding depends on the size of a batch.
        step = max(1, BATCH_NUMBERS // max(1, len(self.coefficients)))

        def embed(batch: int, n_batches: int) -> None:
            rows = slice(batch * step, (batch + 1) * step)
            out[rows] = weighted_rows(kernel_rows(self.kernel, self.widen(X[rows]), inputs), self.coefficients)

        with single_threaded_blas():  # threads would change the rounding of a matrix product
            workers.run(embed, -(-X.shape[0] // step))
        return out

    @property
    def wide_inputs(self) -> Any:
        """Training inputs with their predictions, if there are any."""
        return self.inputs if self.predictions is None else np.hstack([self.inputs, self.predictions.shares])

    def widen(self, X: Any) -> Any:
        """Return rows in the units of the training inputs, with their predictions, if there are any."""
        rows = X / self.unit  # exact: the unit is a power of two
        return rows if self.predictions is None else np.hstack([rows, self.predictions(X)])


def kernel_rows(kernel: Kernel, X: Any, inputs: Any) -> Array:
    """K(x, inputs) for the rows of X, which are distances to the training samples if `inputs` is None."""
    if inputs is None:
        return np.asarray(kernel.of_sq_distance(np.asarray(X, dtype=np.float64) ** 2))  # type: ignore[attr-defined]
    if rounds_alike(kernel, X):
        return kernel(X, inputs)
    # By blocks of `EVEN_ROWS` rows, the last padded: a matrix product's rounding depends on its shape.
    K = np.empty((X.shape[0], inputs.shape[0]))
    for start in range(0, len(K), EVEN_ROWS):
        rows = np.minimum(np.arange(start, start + EVEN_ROWS), len(K) - 1)  # pad by repeating the last row
        K[start : start + EVEN_ROWS] = kernel(X[rows], inputs)[: len(K) - start]
    return K


def kernel_matrix(features: Any, kernel: Kernel, workers: Workers = SERIAL, *, precomputed: bool = False) -> Array:
    """Return K (n, n), computed in blocks of rows so that no other array of that size is needed."""
    n = features.shape[0]
    K = np.empty((n, n))
    # Bitwise symmetric: one half is computed.
    mirrored = not precomputed and not sparse.issparse(features) and rounds_alike(kernel, features)

    def fill(chunk: int, n_chunks: int) -> None:
        rows = slice(chunk * BLOCK_ROWS, (chunk + 1) * BLOCK_ROWS)
        # As in `transform`, so that both round alike: few columns would be computed by other code.
        right = slice(min(rows.start, max(0, n - BLOCK_ROWS)) if mirrored else 0, n)
        K[rows, right] = kernel_rows(kernel, features[rows], None if precomputed else features[right])

    workers.run(fill, -(-n // BLOCK_ROWS))
    if mirrored:
        mirror(K)
    return K


def weighted_rows(K: Array, coefficients: Array) -> Array:
    """K·L by one dot product per entry: unlike that of a matrix product, its rounding is the same in every batch."""
    return np.stack([np.einsum("ij,j->i", K, column) for column in coefficients.T], axis=1)


class MapRegression:
    r"""The kernel ridge regression for the map L: closed form, fitted values, and the term left by eliminating L.

    With h the sample weights, W = diag(h) and F = the embedding of the samples (the plan's barycentres),

    .. math::
        \min_L \tfrac{\mu}{2}\sum_i h_i |f_i - (KL)_i|^2 + \tfrac{\lambda}{2}\mathrm{Tr}(L^\top K L)
        = \tfrac{\mu\lambda}{2}\,\mathrm{Tr}\big(F^\top (\mu K + \lambda W^{-1})^{-1} F\big)

    at :math:`L^* = (\mu K + \lambda W^{-1})^{-1}\mu F`.
    """

    def __init__(self, K: Array, weights: Array, mu: float, map_reg: float) -> None:
        """Factorise; `K` is overwritten, so that no second n×n array is needed."""
        self.mu, self.map_reg, self.weights = mu, map_reg, weights
        K *= mu  # μK + λW⁻¹, in place
        K[np.diag_indices(len(K))] += map_reg / weights
        self._diagonal = K.diagonal().copy()
        self._factor = factorise_kernel(K)

    def coefficients(self, F: Array) -> Array:
        """L* for the samples' embedding F (n, p)."""
        return np.asarray(cho_solve(self._factor, self.mu * F, check_finite=False))

    def fitted(self, plan: Plan, Z: Array) -> Array:
        """K L* at the samples, for their barycentres F = W⁻¹TZ."""
        F = barycentres(plan, self.weights) @ Z
        return self.values(F, self.coefficients(F))

    def values(self, F: Array, coefficients: Array) -> Array:
        """K L = F − (λ/μ) W⁻¹ L, from the normal equations."""
        return F - (self.map_reg / self.mu) * coefficients / self.weights[:, None]

    def left_out(self, F: Array, folds: Folds | None = None) -> Array:
        r"""Embedding (n, p) of each sample by the map fitted without it, for many samples, by :func:`leave_out` with

        .. math:: 1 - \ell_i = \frac{\lambda}{h_i}\,(A^{-1})_{ii}, \qquad A = \mu K + \lambda W^{-1} .

        The diagonal of the inverse is estimated from random signs s, the mean of :math:`s \circ A^{-1} s` [1]_, because
        the inverse would take as much memory as all else.

        References
        ----------
        .. [1] Bekas, Kokiopoulou, Saad (2007). An estimator for the diagonal of a matrix. Applied Numerical
           Mathematics 57.
        """
        signs = check_random_state(0).choice([-1.0, 1.0], size=(len(F), PROBES))
        estimated = np.einsum("ij,ij->i", signs, cho_solve(self._factor, signs, check_finite=False)) / PROBES
        inverse = np.maximum(estimated, 1.0 / self._diagonal)  # the true one is never smaller
        values = self.values(F, self.coefficients(F))
        # The true ones are below one, however close.
        return leave_out(F, values, 1.0 - self.map_reg * inverse / self.weights, folds, NEARLY_ALL)

    def quadratic(self, plan: Plan) -> Array:
        r""":math:`R = \mu\lambda\,\hat T^\top(\mu K + \lambda W^{-1})^{-1}\hat T`, (m, m), T̂ the plan's barycentres."""
        shares = barycentres(plan, self.weights).toarray(order="F")
        half = solve_triangular(self._factor[0], shares, lower=True, overwrite_b=True, check_finite=False)
        R = half.T @ half  # of the factor one half is enough
        # Exactly symmetric: the compiled Z-step reads only one half.
        return np.asarray(0.5 * self.mu * self.map_reg * (R + R.T))


def ridge_for_steps(K: Array, h: Array, ridge: float, steps: Array, smooth: Array) -> float:
    r"""Return the ridge, not below the given one, with which a regression on steps predicts smooth values best.

    .. math:: \sum_i h_i |s_{-i} - v_i|^2, \qquad s_{-i} = s_i - \frac{[(I - H)s]_i}{1 - H_{ii}}, \qquad
        H = K(K + \lambda W^{-1})^{-1}

    All samples of a prototype have one place. If targets have little noise, their ridge is small, and a map with that
    ridge follows the steps between such places. `steps` s (n, c) are values that are equal for all samples of a
    prototype, `smooth` v those before they were averaged.
    """
    root, mean = np.sqrt(h)[:, None], h @ smooth / h.sum()
    values, vectors = eigh(root * K * root.T, check_finite=False)
    S, V = root * (steps - mean), root * (smooth - mean)

    def error(ridge: float) -> float:
        rest = ridge / (np.maximum(values, 0.0) + ridge)  # of I − H
        missed = vectors @ (rest[:, None] * (vectors.T @ S)) / (vectors**2 @ rest)[:, None]
        return float(((S - missed - V) ** 2).sum())

    # All up to about 1, because the error often has another minimum where the map follows the steps.
    return float(min(ridge * 10.0 ** np.arange(0.0, max(0.5, 0.5 - np.log10(ridge)), 0.5), key=error))


def barycentres(plan: Plan, weights: Array) -> Plan:
    """T̂ = W⁻¹ T: sample i lies at Σ_k T̂_ik z_k."""
    return sparse.csr_array(sparse.diags_array(1.0 / weights) @ plan)


def factorise_kernel(K: Array) -> tuple[Array, bool]:
    """Cholesky factor of K in K's own memory, with a growing jitter if K is not positive definite."""
    try:  # transposed: LAPACK needs column order, and K is symmetric
        factor, jitter = jittered_cholesky(K.T, K.diagonal().copy(), JITTERS)
    except FloatingPointError as error:
        raise NumericalError(NOT_FINITE) from error
    except LinAlgError as error:
        message = "The input kernel is far from positive definite; raise map_reg or change the metric."
        raise NumericalError(message) from error
    if jitter > 0:
        message = (
            f"The input kernel is not positive definite: its diagonal was raised by a factor 1 + {jitter:.0e}. "
            "Distances that are not Euclidean often give a better kernel after a square root."
        )
        warn_user(message, IllConditionedWarning)
    return factor, True  # lower triangle, in the form that cho_solve takes
