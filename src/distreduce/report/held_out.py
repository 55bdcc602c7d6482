"""Predictions for held-out samples, in the form that `write_report` takes."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

NO_MODEL = "no model"  # the name among held-out predictions that the headline compares with


@dataclass(frozen=True)
class HeldOut:
    """Predictions of held-out numbers: Gaussian ones, or with the model's own intervals.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
        Observed targets. The column names of a pandas.DataFrame are shown.
    mean : array-like of the shape of y
        Predictive means.
    std : array-like of the shape of y
        Predictive standard deviations, noise included.
    low : array-like of the shape of y, optional
        The model's 5 % quantiles, such as those of ``SDRGPRegressor.predict_quantiles``. By default those of the
        Gaussian.
    high : array-like of the shape of y, optional
        The model's 95 % quantiles; give both or neither.
    levels : array-like of the shape of y, optional
        Probability of the smallest central interval of the model that contains y: ``abs(2 F(y) − 1)`` with its
        distribution function F. Coverage and calibration are then those of the model, by default those of the Gaussian.
    log_density : array-like of the shape of y, optional
        Log density of y under the model, such as that of ``SDRGPRegressor.log_density``. By default that of the
        Gaussian.
    scale : float or array-like of shape (c,), optional
        Standard deviation of each target in the training rows, the unit of the log density. By default the unit of y.
    about : str, optional
        What the model is, in a sentence that the page shows below the scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in all scores.
    groups : array-like of shape (n,), optional
        The same value for rows that are not independent, such as those of one patient. The interval of the score
        counts groups instead of rows.
    """

    y: ArrayLike
    mean: ArrayLike
    std: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    levels: ArrayLike | None = None
    scale: ArrayLike | None = None
    about: str = ""
    sample_weight: ArrayLike | None = None
    log_density: ArrayLike | None = None
    groups: ArrayLike | None = None


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
    about : str, optional
        What the model is, in a sentence that the page shows below the scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in all scores.
    groups : array-like of shape (n,), optional
        The same value for rows that are not independent, such as those of one patient. The interval of the score
        counts groups instead of rows.
    """

    y: ArrayLike
    proba: ArrayLike
    classes: ArrayLike
    about: str = ""
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None
