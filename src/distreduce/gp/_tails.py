"""The distribution of prediction errors in units of their standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from distreduce._utils.typing import Array

START = (0.5, 0.25, 4.0)  # share of wide errors, and the two variances relative to the variance of all errors
LEAST_VARIANCE = 1e-3  # relative to all errors: targets that are hit exactly must not turn the narrow part into a spike
HALVINGS = 60  # of the bracket of a quantile: beyond the 53 bits of a float


@dataclass(frozen=True)
class Tails:
    r"""A mixture of two Gaussians, narrow and wide, with mean 0 and total variance 1.

    .. math:: p(e) = (1 - \pi)\, N(e; 0, a) + \pi\, N(e; 0, b), \qquad (1 - \pi) a + \pi b = 1

    The default, a = b = 1, is the standard Gaussian.

    Attributes
    ----------
    share : float
        π.
    narrow : float
        a.
    wide : float
        b.
    """

    share: float = 0.0
    narrow: float = 1.0
    wide: float = 1.0

    @classmethod
    def of(cls, errors: Array, max_iter: int = 500, tol: float = 1e-6) -> Tails:
        """Fit the mixture to errors by maximum likelihood (EM); every step preserves their mean square."""
        unit = np.sqrt(np.mean(errors**2))
        if unit == 0.0:
            return cls()
        squares = (errors / unit) ** 2
        share, narrow, wide = START
        for _ in range(max_iter):
            # Log odds that an error is wide; logarithms, because it may be hundreds of standard deviations away.
            odds = np.log(share / (1 - share)) + 0.5 * (np.log(narrow / wide) + squares * (1 / narrow - 1 / wide))
            of_wide = 1.0 / (1.0 + np.exp(-np.clip(odds, -500, 500)))
            # M-step: share and narrow variance by weighted means; the wide one follows from the total of 1.
            before, share = share, float(np.clip(of_wide.mean(), 1e-6, 1 - 1e-6))
            narrow = max(LEAST_VARIANCE, float((1 - of_wide) @ squares) / float((1 - of_wide).sum()))
            wide = max(narrow, (1 - (1 - share) * narrow) / share)
            if abs(share - before) < tol:
                break
        # The limits above may have moved the total variance away from 1.
        total = (1 - share) * narrow + share * wide
        return cls(share, narrow / total, wide / total)

    def quantiles(self, levels: Array) -> Array:
        """Quantiles of the mixture, by bisection between those of the two Gaussians."""
        if self.share == 0.0:
            return np.asarray(ndtri(levels))
        ends = np.sqrt([[self.narrow], [self.wide]]) * ndtri(levels)
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._cumulative(middle) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def _cumulative(self, errors: Array) -> Array:
        return np.asarray(
            (1 - self.share) * ndtr(errors / np.sqrt(self.narrow)) + self.share * ndtr(errors / np.sqrt(self.wide))
        )
