"""Predictions for samples that the fit did not see, as the page wants them."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike


@dataclass(frozen=True)
class HeldOut:
    """Gaussian predictions of held-out targets.

    Parameters
    ----------
    y, mean, std : array-like of shape (n,) or (n, c)
        Observations, predictive means and predictive standard deviations, noise included.
    """

    y: ArrayLike
    mean: ArrayLike
    std: ArrayLike


@dataclass(frozen=True)
class HeldOutClasses:
    """Predicted probabilities of held-out labels.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, C)
        Predicted probabilities; rows sum to 1.
    classes : array-like of shape (C,)
        The class of each column, such as ``classes_`` of a classifier.
    """

    y: ArrayLike
    proba: ArrayLike
    classes: ArrayLike
