"""SDRImputer: missing features by the prototypes that the known ones are sent to, a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.numerics import blocks, kmeans
from distreduce._utils.text import list_words, warn_user
from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.estimators._fit_context import whole_fit
from distreduce.estimators._mixins import SavingMixin
from distreduce.estimators._validate import read_weights, reject_masked
from distreduce.exceptions import DataWarning, InvalidInputError


class SDRImputer(SavingMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill in missing features by the prototypes that the known ones are sent to, with uncertainty.

    Prototypes :math:`m_k` of weight :math:`w_k` share a covariance, :math:`p(x) = \sum_k w_k N(x; m_k, \Sigma)`, fitted
    by EM to the known cells [1]_. Known features o send a sample to prototypes with shares
    :math:`T_k \propto w_k N(x_o; m_{ko}, \Sigma_{oo})`, and the missing ones are
    :math:`\sum_k T_k (m_k + \Sigma_{\cdot o} \Sigma_{oo}^{-1} (x_o - m_{ko}))`: with one prototype the regression of a
    Gaussian, with a diagonal :math:`\Sigma` means of clusters. Known cells that are hidden choose between them. The
    time grows with the cube of the number of features, and at most 2,000 rows are fitted.

    Parameters
    ----------
    n_prototypes : "auto" or int, default="auto"
        Number of prototypes, or the fewest of 1 to 40 that fill in hidden cells as well as the best number.
    shrinkage : "auto" or float in [0, 1], default="auto"
        Weight of the diagonal in :math:`\Sigma`; 1 leaves out correlations within prototypes.
    random_state : int, RandomState or None, default=None
        Seed of hidden cells, k-means, and the rows of a large table that are fitted.

    Attributes
    ----------
    prototypes_, prototype_weights_ : (n_prototypes, n_features) and (n_prototypes,) arrays
        The prototypes in the units of X, and their weights, which sum to one.
    mean_, scale_ : (n_features,) arrays
        Mean and standard deviation of the known cells. `scale_` is 1 for constants, and 0 if no cell is known.
    covariance_ : (n_features, n_features) array
        :math:`\Sigma` of the features divided by `scale_`.
    shrinkage_, hidden_error_, std_factor_ : float
        The shrinkage that was used; root mean square error of hidden cells in units of `scale_` (means have 1); factor
        that makes the standard deviations right for hidden cells.

    References
    ----------
    .. [1] Ghahramani, Jordan (1994). Supervised learning from incomplete data via an EM approach. NIPS.

    Examples
    --------
    >>> from distreduce import SDRImputer
    >>> imputer = SDRImputer(random_state=0).fit([[t, 2 * t] for t in range(50)])
    >>> imputer.transform([[25, float("nan")]]).round()
    array([[25., 50.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_prototypes": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }

    def __init__(self, n_prototypes: Any = "auto", *, shrinkage: Any = "auto", random_state: Any = None) -> None:
        self.n_prototypes = n_prototypes
        self.shrinkage = shrinkage
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SDRImputer:
        """Fit prototypes to the known cells of X; NaN is missing, y is ignored, and weights count copies of a row."""
        self._validate_params()
        with whole_fit(self), single_threaded_blas():
            X = self._read(X, reset=True)
            X, weights = _merge_equal(X, read_weights(sample_weight, X))
            self.mean_, self.scale_ = _standardize(X, weights)
            Z, seed = (X - self.mean_) / self._unit, int(check_random_state(self.random_state).randint(2**31 - 1))
            few = [k for k in N_PROTOTYPES if k == 1 or 3 * k <= len(Z)]
            numbers = few if self.n_prototypes == "auto" else [self.n_prototypes]
            shrinkages = SHRINKAGES if self.shrinkage == "auto" else [float(self.shrinkage)]
            k, self.shrinkage_, self.hidden_error_, self.std_factor_ = choose(Z, weights, numbers, shrinkages, seed)
            rows = np.sort(np.random.default_rng(seed).permutation(len(Z))[:MOST_ROWS])
            Z, weights = Z[rows], weights[rows]
            mixture = start_mixture(Z, weights, k, seed).fit(Z, weights, self.shrinkage_)
            self.prototypes_ = self.mean_ + mixture.means * self._unit
            self.prototype_weights_, self.covariance_ = mixture.weights, mixture.covariance
        return self

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Return X without NaN, and standard deviations on request: infinite if the fit knew no cell of a feature."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        mixture = Mixture(self.prototype_weights_, (self.prototypes_ - self.mean_) / self._unit, self.covariance_)
        with single_threaded_blas():
            filled, std = mixture.impute((X - self.mean_) / self._unit)
        filled = np.where(np.isnan(X), self.mean_ + filled * self._unit, X)
        std = np.where((std > 0) & (self.scale_ == 0), np.inf, std * self._unit * self.std_factor_)
        return (filled, std) if return_std else filled

    @property
    def _unit(self) -> Array:
        return np.where(self.scale_ > 0, self.scale_, 1.0)

    def _read(self, X: Any, *, reset: bool) -> Array:
        reject_masked(X)
        X = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1 + reset)
        if np.isinf(X).any():
            row, column = np.argwhere(np.isinf(X))[0]
            raise InvalidInputError(f"X holds inf in row {row}, column {column}; write missing cells as NaN.")
        return np.asarray(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _merge_equal(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the different rows of positive weight, in an order of their own, and their summed weights."""
    X, weights = X[weights > 0], weights[weights > 0]
    coded = np.hstack([np.isnan(X), np.nan_to_num(X)])  # np.unique takes each NaN for a value of its own
    _, first, which = np.unique(coded, axis=0, return_index=True, return_inverse=True)
    return X[first], np.bincount(which, weights=weights)


def _standardize(X: Array, weights: Array) -> tuple[Array, Array]:
    known, values = ~np.isnan(X), np.nan_to_num(X)
    mass, size = weights @ known, np.maximum(np.abs(values).max(axis=0), 1e-300)
    if not mass.all():
        columns = list_words(np.flatnonzero(mass == 0).tolist())
        warn_user(f"No cell of X is known in the columns {columns}; they are filled with 0.", DataWarning)
    values, share = values / size, weights[:, None] * known / np.maximum(mass, 1e-300)  # squares might overflow
    mean = (share * values).sum(axis=0)
    std = np.sqrt((share * (values - mean) ** 2).sum(axis=0))
    # What rounding leaves of a constant is not a spread.
    return mean * size, np.where(mass == 0, 0.0, np.where(std > 1e-12 * np.abs(mean), std * size, 1.0))


N_PROTOTYPES, SHRINKAGES = (1, 2, 5, 10, 20, 40), (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # that "auto" tries
HIDDEN = 0.1  # share of the known cells that the choice is judged by
MOST_ROWS, MOST_ROWS_OF_CHOICE = 2000, 600  # rows that take part in the fit, and in each fit of the choice
BLOCK_NUMBERS = 2_000_000  # numbers in the matrices of a block of rows
MAX_ITER, TOL = 20, 1e-3  # steps of EM, and the change of the mean log density that ends them
SMALLEST_VARIANCE = 1e-4  # added to each feature's variance within prototypes, in squared standard deviations


@dataclass(frozen=True)
class Mixture:
    """Prototypes that share a covariance: p(x) = Σ_k w_k N(x; m_k, Σ), with m (k, d)."""

    weights: Array
    means: Array
    covariance: Array

    def condition(self, X: Array) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
        """Yield for blocks of rows: slice, shares T (b, k), E[x − m_k | x_o, k] (b, k, d), Cov[x | x_o], log densities.

        With P = Σ_oo⁻¹ for the known features o and zero elsewhere, E[x − m_k | x_o, k] = Σ P (x − m_k), which leaves
        known features as they are, Cov[x | x_o] = Σ − Σ P Σ, and T_k ∝ w_k N(x_o; m_k, Σ_oo).
        """
        S, d = self.covariance, X.shape[1]
        size = max(1, BLOCK_NUMBERS // d**2)
        for rows in blocks(len(X), size):
            known = ~np.isnan(X[rows])
            patterns, which = np.unique(known, axis=0, return_inverse=True)
            both = patterns[:, :, None] & patterns[:, None, :]
            inside = np.where(both, S, np.eye(d))  # so that one call inverts Σ_oo of all patterns
            P = np.where(both, np.linalg.inv(inside), 0.0)
            gaps = np.where(known[:, None], X[rows][:, None] - self.means, 0.0)
            pulled = gaps @ P[which]
            energy = (gaps * pulled).sum(axis=2) + np.linalg.slogdet(inside)[1][which, None]
            joint = np.log(self.weights) - energy / 2
            density = logsumexp(joint, axis=1)
            yield rows, np.exp(joint - density[:, None]), pulled @ S, (S - S @ P @ S)[which], density

    def impute(self, X: Array) -> tuple[Array, Array]:
        """Return E[x | x_o], and its standard deviations, which are 0 for known cells."""
        filled, std = X.copy(), np.zeros_like(X)
        for rows, T, deviations, rest, _ in self.condition(X):
            guesses, missing = self.means + deviations, np.isnan(X[rows])
            mean = np.einsum("ik,ikj->ij", T, guesses)
            variance = np.einsum("ik,ikj->ij", T, (guesses - mean[:, None]) ** 2) + np.einsum("ijj->ij", rest)
            filled[rows] = np.where(missing, mean, X[rows])
            std[rows] = np.where(missing, np.sqrt(np.maximum(variance, 0.0)), 0.0)
        return filled, std

    def improve(self, X: Array, weights: Array, shrinkage: float) -> tuple[Mixture, float]:
        """Return the mixture after a step of EM, and the mean log density before it."""
        k, d = self.means.shape
        mass, sums, scatter, total = np.zeros(k), np.zeros((k, d)), np.zeros((d, d)), 0.0
        for rows, shares, deviations, rest, density in self.condition(X):
            T, total = shares * weights[rows, None], total + float(weights[rows] @ density)
            mass, sums = mass + T.sum(axis=0), sums + np.einsum("ik,ikj->kj", T, deviations)
            flat = (np.sqrt(T)[:, :, None] * deviations).reshape(-1, d)
            scatter += flat.T @ flat + np.einsum("i,ijl->jl", weights[rows], rest)
        # One sample's weight draws each of several means to that of all samples, which is 0.
        means = (mass[:, None] * self.means + sums) / (mass[:, None] + (k > 1))
        moved = means - self.means
        S = (scatter + (mass[:, None] * moved).T @ moved - sums.T @ moved - moved.T @ sums) / weights.sum()
        S = (1 - shrinkage) * S + np.diag(shrinkage * S.diagonal() + SMALLEST_VARIANCE)
        return Mixture((mass + 1) / (mass + 1).sum(), means, S), total / weights.sum()

    def fit(self, X: Array, weights: Array, shrinkage: float) -> Mixture:
        """Return the mixture that EM ends with: its mean log density has settled, or `MAX_ITER` is reached."""
        mixture, before = self, -np.inf
        for _ in range(MAX_ITER):
            improved, value = mixture.improve(X, weights, shrinkage)
            if abs(value - before) < TOL:
                break
            mixture, before = improved, value
        return mixture


def start_mixture(X: Array, weights: Array, k: int, seed: int) -> Mixture:
    """k-means of the rows with means, 0, in their gaps, then means and variances of the known cells."""
    known, filled = ~np.isnan(X), np.nan_to_num(X)
    k = min(k, len(np.unique(filled, axis=0)))
    labels = kmeans(filled, k, seed, weights).labels_ if k > 1 else 0
    T = (np.arange(k) == np.broadcast_to(labels, len(X))[:, None]) * weights[:, None]
    means, mass = T.T @ filled / (T.T @ known + 1.0), T.sum(axis=0) + 1
    variance = weights @ (known * (filled - (T > 0) @ means) ** 2) / np.maximum(weights @ known, 1e-12)
    return Mixture(mass / mass.sum(), means, np.diag(variance + SMALLEST_VARIANCE))


def choose(
    X: Array, weights: Array, numbers: Sequence[int], shrinkages: Sequence[float], seed: int
) -> tuple[int, float, float, float]:
    """Hide known cells, and return the number of prototypes and the shrinkage that fill them in best.

    And their error, with the factor that makes their standard deviations right for these cells.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(X))[:MOST_ROWS_OF_CHOICE])
    hidden = ~np.isnan(X[rows]) & (rng.random((len(rows), X.shape[1])) < HIDDEN)
    if not hidden.any():
        return numbers[0], shrinkages[0], 1.0, 1.0
    seen, w = np.where(hidden, np.nan, X[rows]), weights[rows]
    share = (hidden * w[:, None])[hidden] / (hidden * w[:, None]).sum()  # of each hidden cell
    latest: dict[int, Mixture] = {}  # of another shrinkage: from there it is not far

    @cache
    def fill(k: int, shrinkage: float) -> tuple[Array, Array, float]:
        latest[k] = (latest.get(k) or start_mixture(seen, w, k, seed)).fit(seen, w, shrinkage)
        filled, std = latest[k].impute(seen)
        squared = (filled - X[rows])[hidden] ** 2
        return squared, std[hidden], float(share @ squared)

    def is_as_good(k: int) -> bool:  # behind the best by at most one standard error of the difference
        behind = fill(k, shrinkage)[0] - fill(best, shrinkage)[0]
        return bool(share @ behind <= np.linalg.norm(share * (behind - share @ behind)))

    shrinkage = min(shrinkages, key=lambda one: fill(numbers[0], one)[2])
    best = min(numbers, key=lambda one: fill(one, shrinkage)[2])
    k = next((one for one in numbers if is_as_good(one)), best)  # none if X overflows
    shrinkage = min(shrinkages, key=lambda one: fill(k, one)[2])
    squared, std, error = fill(k, shrinkage)
    return k, shrinkage, float(np.sqrt(error)), float(np.sqrt(share @ (squared / std**2)))
