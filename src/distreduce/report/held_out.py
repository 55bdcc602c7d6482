"""Predictions for samples that the fit did not see, as the page wants them."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike


@dataclass(frozen=True)
class HeldOut:
    """Predictions of held-out numbers: Gaussian ones, or with intervals of the model's own.

    Parameters
    ----------
    y, mean, std : array-like of shape (n,) or (n, c)
        Observations, predictive means and predictive standard deviations, noise included. Names of the columns of a
        pandas.DataFrame y are shown.
    low, high : array-like of the shape of y, optional
        The model's 5 % and 95 % quantiles, such as ``predict_quantiles`` of :class:`distreduce.SDRGPRegressor` says.
        By default those of the Gaussian.
    levels : array-like of the shape of y, optional
        Probability of the smallest central interval of the model that holds y: ``abs(2 F(y) − 1)`` with its
        distribution function F. Coverage and calibration are then those of the model; by default of the Gaussian.
    scale : float or array-like of shape (c,), optional
        Standard deviation of each target in the training rows: the unit of the log density, which is by default in that
        of y.
    """

    y: ArrayLike
    mean: ArrayLike
    std: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    levels: ArrayLike | None = None
    scale: ArrayLike | None = None


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
