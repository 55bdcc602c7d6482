"""The distribution of prediction errors in units of their standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri, stdtrit

from distreduce._utils.typing import Array

FEW = 40  # errors; fewer tell their scale, but not the shape of their distribution
# Errors of the standard Gaussian that every part is given beside those that were seen. Without them a part follows any
# few errors that happen to lie together, and new ones do not (decision 22).
PRIOR_ERRORS = 0.25
LEAST_VARIANCE = 1e-3  # relative to all errors: targets that are hit exactly must not turn a part into a spike
HALVINGS = 60  # of the bracket of a quantile: beyond the 53 bits of a float
# Start of the mixture: a narrow part in the middle, and a wide one on each side.
START = np.array([[0.6, 0.0, 0.5], [0.2, -0.5, 2.0], [0.2, 0.5, 2.0]])


@dataclass(frozen=True)
class Tails:
    r"""A mixture of Gaussians with mean 0 and variance 1, each with a share, a mean and a variance.

    .. math:: p(e) = \sum_k \pi_k\, N(e; m_k, a_k), \qquad \sum_k \pi_k m_k = 0, \quad \sum_k \pi_k (a_k + m_k^2) = 1

    The default is the standard Gaussian. `freedom` is how many errors the scale was estimated from, 0 if it is
    known: if they are few, quantiles are wider by the ratio of Student's t to the Gaussian.
    """

    parts: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 1.0),)
    freedom: float = 0.0

    @classmethod
    def of(cls, errors: Array, weights: Array, max_iter: int = 500, tol: float = 1e-6) -> Tails:
        r"""Fit the mixture to errors by EM, with `PRIOR_ERRORS` errors of the standard Gaussian in every part.

        With r_ik the share of part k in error i, the prior's count :math:`\nu` and all sums over i, an M-step is

        .. math::
            N_k = \nu + \sum r_{ik}, \qquad \pi_k \propto N_k, \qquad m_k = \frac{\sum r_{ik} e_i}{N_k}, \qquad
            a_k = \frac{\nu (1 + m_k^2) + \sum r_{ik} (e_i - m_k)^2}{N_k}.
        """
        total = float(weights.sum())
        freedom = max(1.0, total - 1.0)
        unit = np.sqrt(weights @ errors**2 / total)
        if unit == 0.0 or total < FEW:
            return cls(freedom=freedom)
        e, h, prior = errors / unit, weights / total, PRIOR_ERRORS / total
        share, mean, variance = START.T[:, :, None].copy()
        for _ in range(max_iter):
            # Logarithms, because an error may be hundreds of standard deviations away.
            logs = np.log(share) - 0.5 * (np.log(variance) + (e - mean) ** 2 / variance)
            of_part = np.exp(logs - logs.max(axis=0))
            of_part *= h / of_part.sum(axis=0)
            before, share = share, of_part.sum(axis=1, keepdims=True) + prior
            mean = (of_part @ e)[:, None] / share
            spread = (of_part * (e - mean) ** 2).sum(axis=1, keepdims=True) + prior * (1.0 + mean**2)
            variance = np.maximum(spread / share, LEAST_VARIANCE)
            share = share / share.sum()
            if np.abs(share - before).max() < tol:
                break
        share, mean, variance = share[:, 0], mean[:, 0], variance[:, 0]
        # The limits above may have moved mean and variance.
        mean = mean - share @ mean
        size = np.sqrt(share @ (variance + mean**2))
        parts = zip(share.tolist(), (mean / size).tolist(), (variance / size**2).tolist(), strict=True)
        return cls(tuple(parts), freedom)

    def quantiles(self, levels: Array) -> Array:
        """Quantiles of the mixture, by bisection between those of the Gaussians."""
        levels = np.asarray(levels, dtype=np.float64)
        share, mean, variance = np.array(self.parts).T
        ends = mean[:, None] + np.sqrt(variance)[:, None] * ndtri(levels)
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = share @ ndtr((middle - mean[:, None]) / np.sqrt(variance)[:, None]) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found = 0.5 * (low + high)
        if not self.freedom:
            return np.asarray(found)
        ratio = np.where(
            levels == 0.5, 1.0, stdtrit(self.freedom, levels) / np.where(levels == 0.5, 1.0, ndtri(levels))
        )
        return np.asarray(found * ratio)

    def log_density(self, errors: Array) -> Array:
        """log p(e), with a share of the Cauchy distribution for errors unlike all that were seen.

        After n errors, the rule of succession gives the next one a probability of 1/(n + 1) to be of a new kind. No
        Gaussian foresees such an error: at 1000 standard deviations it would cost 500,000 nats, and here about 20.
        """
        share, mean, variance = np.array(self.parts).T
        with np.errstate(over="ignore"):  # a Gaussian density of zero
            logs = -0.5 * (np.log(2 * np.pi * variance) + (errors[..., None] - mean) ** 2 / variance)
        seen = logsumexp(logs, axis=-1, b=share)
        if not self.freedom:
            return np.asarray(seen)
        new = 1.0 / (self.freedom + 2.0)
        unseen = np.log(new / np.pi) - 2.0 * np.log(np.hypot(1.0, errors))  # squares would overflow
        with np.errstate(invalid="ignore"):  # NaN stays NaN, for whoever called to see
            return np.logaddexp(np.log1p(-new) + seen, unseen)
