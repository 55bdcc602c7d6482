"""Predictions for held-out samples, as `write_report` takes them, and what the page says of them first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, r2_score

from distreduce._utils.text import count_of, decimal_text, number_text
from distreduce._utils.typing import Array
from distreduce.metrics.calibration import average, read_probabilities, read_weights
from distreduce.metrics.held_out import accuracy_interval, gain_interval, r2_interval
from distreduce.report.evidence import SOMETHING, Verdict

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
        The model's 5 % quantiles, such as those of ``SDRGPRegressor.predict_quantiles``; by default the Gaussian's.
    high : array-like of the shape of y, optional
        The model's 95 % quantiles; give both or neither.
    levels : array-like of the shape of y, optional
        Probability of the smallest central interval of the model that contains y: ``abs(2 F(y) − 1)`` with its
        distribution function F. Coverage and calibration are then those of the model, by default those of the Gaussian.
    log_density : array-like of the shape of y, optional
        Log density of y under the model, such as that of ``SDRGPRegressor.log_density``; by default the Gaussian's.
    scale : float or array-like of shape (c,), optional
        Standard deviation of each target in the training rows, the unit of the log density. By default the unit of y.
    about : str, optional
        What the model is, in a sentence that the page shows below the scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in all scores.
    groups : array-like of shape (n,), optional
        The same value for rows that are not independent, such as a patient's: intervals of scores count groups.
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
    """Predicted probabilities of held-out labels; `about`, `sample_weight` and `groups` are those of :class:`HeldOut`.

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
    about: str = ""
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None


Given = HeldOut | HeldOutClasses

WORDS = {0.5: "a lot", SOMETHING: "something", 0.0: "little"}  # by the share of the squared error without a model
FEW_ROWS = 0.05  # of the held-out rows, which may hold half of the squared error


def describe_headline(named: Mapping[str, Given], targets: Sequence[str]) -> Verdict:
    """Compare the first model with no model: the entry of that name, or the mean or class shares of the held-out y.

    The gain is the share of the squared error without a model that the predictions avoid: of numbers, each target in
    units of its own, or of probabilities (Brier score). Words follow the lower end of its 95 % interval. If that is not
    above zero, the features say nothing, or the rows are too few to tell, unless absolute errors can tell: a few rows
    that are far off may hold most of the squared error.
    """
    first = next(iter(named.values()))
    nothing = named.get(NO_MODEL, first)
    if nothing is first or len(np.asarray(nothing.y)) != len(np.asarray(first.y)):  # rows are compared one by one
        nothing = _guess(first)
    ours, theirs = _square_errors(first, nothing)
    low, high = gain_interval(ours, theirs, first.sample_weight, first.groups)
    without = average(theirs, first.sample_weight)
    gain = 1 - average(ours, first.sample_weight) / without if without else 0.0
    about, typical = " and ".join(targets) or "the target", None
    if low > 0:
        word, most = (next(word for share, word in WORDS.items() if value > share) for value in (low, gain))
        least = word if most == word else f"at least {'a ' * (word == 'little')}{word}"
        verdict = f"The features say {least} about {about}{f', and perhaps {most}' if most != word else ''}"
    elif (typical := _judge_typical_rows(first)) is not None:
        verdict = f"The features say {typical[0]} about {about}, but a few rows are far off"
    elif high > SOMETHING:
        verdict = f"Too few held-out rows to tell whether the features say anything about {about}"
    else:
        verdict = f"The features say nothing about {about} that holds for new rows"
    name = "the predictor" if len(named) == 1 else next(iter(named))
    doubt = "may be better than no model by chance" if gain > 0 else "is no better than no model"
    verb = "predicts" if low > 0 or typical is not None else f"{doubt}: it predicts"
    scores = [
        (each, "" if place else f"held-out {name_score(first)}", *_score(part))
        for place, (each, part) in enumerate(named.items())
    ]
    sentence = _compare(name, verb, first, nothing)
    if gain > 0:
        share, least, most = (f"{decimal_text(100 * max(end, -1), 0)}\N{NO-BREAK SPACE}%" for end in (gain, low, high))
        least = f"below {least}" if low < -1 else least
        sentence += f" That is {share} less squared error than without a model (95 % interval {least} to {most})."
    if typical is not None:
        sentence += typical[1]
    return Verdict(verdict, sentence, low <= SOMETHING, scores)


def _judge_typical_rows(first: Given) -> tuple[str, str] | None:
    """Return a word for the gain in absolute errors, and a sentence; None if there is none, or they cannot tell.

    Without a model, absolute errors are least for the median: the mean would be an easy rival for skewed targets.
    """
    if isinstance(first, HeldOutClasses):  # no error of a probability is far off
        return None
    y = np.asarray(first.y, dtype=np.float64).reshape(len(np.asarray(first.y)), -1)
    theirs = np.abs(y - np.median(y, axis=0))
    unit = np.where(theirs.max(axis=0) > 0, theirs.max(axis=0), 1.0)
    ours, theirs = ((np.abs(part) / unit).sum(axis=1) for part in (_find_errors(first), theirs))
    low, high = gain_interval(ours, theirs, first.sample_weight, first.groups)
    largest = np.cumsum(np.sort(ours**2)[::-1])
    far = int(np.searchsorted(largest, largest[-1] / 2)) + 1  # rows that hold half of the squared error
    if low <= 0 or far > max(FEW_ROWS * len(y), 1):
        return None
    word = next(word for share, word in WORDS.items() if 1 - (1 - low) ** 2 > share)  # as of squared errors
    least, most = (f"{decimal_text(100 * end, 0)}\N{NO-BREAK SPACE}%" for end in (low, high))
    return word, (
        f" Half of its squared error comes from {count_of(far, 'row')}. Its absolute error, in which they count less, "
        f"is {least} to {most} less than that of the median (95 % interval)."
    )


def _guess(each: Given) -> Given:
    """Return the mean or the class shares of the held-out rows as predictions."""
    if isinstance(each, HeldOut):
        y = np.asarray(each.y, dtype=np.float64)
        mean = np.average(y, axis=0, weights=read_weights(each.sample_weight, len(y)))
        return HeldOut(y, np.broadcast_to(mean, y.shape), np.ones_like(y), sample_weight=each.sample_weight)
    codes, proba = read_probabilities(each.y, each.proba, each.classes)
    h = read_weights(each.sample_weight, len(codes))
    shares = np.bincount(codes, weights=h, minlength=proba.shape[1]) / h.sum()
    return HeldOutClasses(each.y, np.broadcast_to(shares, proba.shape), each.classes, sample_weight=each.sample_weight)


def _square_errors(*both: Given) -> tuple[Array, Array]:
    """Return the squared error of each row: of probabilities, or of numbers per largest error of no model."""
    ours, theirs = (_find_errors(each) for each in both)
    if isinstance(both[0], HeldOut):
        size = np.abs(theirs).max(axis=0)  # not their squares: those of large numbers overflow
        ours, theirs = (part / np.where(size > 0, size, 1.0) for part in (ours, theirs))
    return (ours**2).sum(axis=1), (theirs**2).sum(axis=1)


def _find_errors(each: Given) -> Array:
    """Return what the predictions miss, one column per target or class."""
    if isinstance(each, HeldOut):
        missed = np.asarray(each.y, dtype=np.float64) - np.asarray(each.mean, dtype=np.float64)
        return missed.reshape(len(missed), -1)
    codes, proba = read_probabilities(each.y, each.proba, each.classes)
    return np.asarray(np.eye(proba.shape[1])[codes] - proba)


def name_score(each: Given) -> str:
    """Return the name of the score that :func:`describe_headline` shows for every model."""
    return "R²" if isinstance(each, HeldOut) else "accuracy"


def score_text(each: Given) -> str:
    """Return that score with two decimals."""
    return _score(each)[0]


def find_interval(each: Given) -> tuple[float, float]:
    """Return the 95 % interval of that score."""
    if isinstance(each, HeldOut):
        return r2_interval(each.y, each.mean, each.sample_weight, each.groups)
    return accuracy_interval(np.asarray(each.y) == _most_probable(each), each.sample_weight, each.groups)


def interval_text(each: Given) -> str:
    """Return that interval in words; what is far below zero needs no digits."""
    low, high = find_interval(each)
    text = f"95 % interval {decimal_text(low, 2) if low >= -1 else 'below −1'} to {decimal_text(high, 2)}"
    if each.groups is None:
        return text
    return f"{text} by {count_of(len(np.unique(np.asarray(each.groups))), 'independent group')}"


def _score(each: Given) -> tuple[str, float]:
    """Return R² or accuracy, and the part of a bar that it fills."""
    if isinstance(each, HeldOut):
        unit = np.abs(np.asarray(each.y, dtype=np.float64)).max() or 1.0
        y, mean = np.asarray(each.y) / unit, np.asarray(each.mean) / unit
        value = float(r2_score(y, mean, sample_weight=each.sample_weight)) if len(y) > 1 else float("nan")
    else:
        value = float(accuracy_score(each.y, _most_probable(each), sample_weight=each.sample_weight))
    return decimal_text(value, 2) if np.isfinite(value) else "–", float(np.clip(np.nan_to_num(value), 0, 1))


def _most_probable(each: HeldOutClasses) -> NDArray[Any]:
    return np.asarray(each.classes)[np.asarray(each.proba).argmax(axis=1)]


def _compare(name: str, verb: str, first: Given, nothing: Given) -> str:
    n, certainty, weights = len(np.asarray(first.y)), interval_text(first), first.sample_weight
    errors = [_find_errors(each) for each in (first, nothing)]
    if isinstance(first, HeldOutClasses):
        texts = [score_text(each) for each in (first, nothing)]
        briers = [f"{average((part**2).sum(axis=1), weights):.2f}" for part in errors]
        return (
            f"{name} {verb} {n:,} held-out rows with accuracy {texts[0]} ({certainty}), against {texts[1]} if every "
            "row gets the most frequent class. The squared error of its probabilities, summed over the classes (Brier "
            f"score, 0 to 2), is {briers[0]}, against {briers[1]}."
        )
    if errors[0].shape[1] > 1:
        return (
            f"{name} {verb} {n:,} held-out rows with R² {score_text(first)} on average ({certainty}); 0 is no model, 1 "
            "is perfect."
        )
    unit = np.abs(errors).max() or 1.0
    sizes = [number_text(float(unit * np.sqrt(average((part[:, 0] / unit) ** 2, weights)))) for part in errors]
    return (
        f"{name} {verb} {n:,} held-out rows with an error (RMSE) of {sizes[0]}, against {sizes[1]} if every row gets "
        f"the mean (R² {score_text(first)}, {certainty})."
    )
