"""Prototypes that share a covariance: a mixture of Gaussians, fitted to rows with missing cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from distreduce._utils.typing import Array

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
        for rows in (slice(start, start + size) for start in range(0, len(X), size)):
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
    labels = KMeans(k, n_init=1, random_state=seed).fit(filled, sample_weight=weights).labels_ if k > 1 else 0
    T = (np.arange(k) == np.broadcast_to(labels, len(X))[:, None]) * weights[:, None]
    means, mass = T.T @ filled / (T.T @ known + 1.0), T.sum(axis=0) + 1
    variance = weights @ (known * (filled - (T > 0) @ means) ** 2) / np.maximum(weights @ known, 1e-12)
    return Mixture(mass / mass.sum(), means, np.diag(variance + SMALLEST_VARIANCE))


class Choice(NamedTuple):
    """What fills in hidden cells best; its error, and the factor that makes its standard deviations right there."""

    n_prototypes: int
    shrinkage: float
    error: float
    std_factor: float


def choose(X: Array, weights: Array, numbers: Sequence[int], shrinkages: Sequence[float], seed: int) -> Choice:
    """Hide known cells, and return the number of prototypes and the shrinkage that fill them in best."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(X))[:MOST_ROWS_OF_CHOICE])
    hidden = ~np.isnan(X[rows]) & (rng.random((len(rows), X.shape[1])) < HIDDEN)
    if not hidden.any():
        return Choice(numbers[0], shrinkages[0], 1.0, 1.0)
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
    return Choice(k, shrinkage, float(np.sqrt(error)), float(np.sqrt(share @ (squared / std**2))))
