"""What the page says first: what the features say about the target of rows that no model has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, r2_score

from distreduce._utils.text import decimal_text, number_text
from distreduce._utils.typing import Array
from distreduce.metrics.calibration import average, read_probabilities, read_weights
from distreduce.report.evidence import Verdict
from distreduce.report.held_out import NO_MODEL, HeldOut, HeldOutClasses

Given = HeldOut | HeldOutClasses

A_LOT, SOMETHING = 0.5, 0.1  # of the squared error without a model
CERTAIN = 2.0  # standard errors of the gain over no model


def describe_headline(named: Mapping[str, Given], targets: Sequence[str]) -> Verdict:
    """Compare the first model with no model: the entry of that name, or the mean or class shares of the held-out y.

    The gain is the share of the squared error without a model that the predictions avoid: of numbers, each target in
    units of its own, or of probabilities (Brier score). It counts if it is more than two standard errors above zero,
    and is a hint if it is more than one.
    """
    first = next(iter(named.values()))
    nothing = named.get(NO_MODEL, first)
    if nothing is first or len(np.asarray(nothing.y)) != len(np.asarray(first.y)):  # rows are compared one by one
        nothing = _guess(first)
    ours, theirs = _square_errors(first, nothing)
    gains, n = theirs - ours, len(ours)
    h = read_weights(first.sample_weight, n)
    h = h / h.sum()
    gain = float(h @ gains)
    # The standard error of a weighted mean; with equal weights it is the usual one.
    error = float(np.sqrt(h**2 @ (gains - gain) ** 2 * n / (n - 1))) if n > 1 else np.inf
    counts, hints = gain > CERTAIN * error, gain > error
    share = gain / (float(h @ theirs) or 1.0)
    about = " and ".join(targets) or "the target"
    much = "a lot" if share > A_LOT else "something" if share > SOMETHING else "little"
    verdict = f"The features say {much} about {about}"
    if not counts:
        little = f"The features say little, if anything, about {about}"
        verdict = little if hints else f"The features say nothing about {about} that holds for new rows"
    name = "the predictor" if len(named) == 1 else next(iter(named))
    scores = [
        (each, "" if place else f"held-out {name_score(first)}", *_score(part))
        for place, (each, part) in enumerate(named.items())
    ]
    return Verdict(verdict, _compare(name, first, nothing, counts, hints), not counts or share <= SOMETHING, scores)


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


def _score(each: Given) -> tuple[str, float]:
    """Return R² or accuracy, and the part of a bar that it fills."""
    if isinstance(each, HeldOut):
        unit = np.abs(np.asarray(each.y, dtype=np.float64)).max() or 1.0
        y, mean = np.asarray(each.y) / unit, np.asarray(each.mean) / unit
        value = float(r2_score(y, mean, sample_weight=each.sample_weight)) if len(y) > 1 else float("nan")
    else:
        value = float(accuracy_score(each.y, _most_probable(each), sample_weight=each.sample_weight))
    return decimal_text(value, 2) if np.isfinite(value) else "–", float(np.clip(np.nan_to_num(value), 0, 1))


def _most_probable(each: HeldOutClasses) -> ArrayLike:
    found: ArrayLike = np.asarray(each.classes)[np.asarray(each.proba).argmax(axis=1)]
    return found


def _compare(name: str, first: Given, nothing: Given, better: bool, hints: bool) -> str:
    n = len(np.asarray(first.y))
    doubt = "may be better than no model by chance" if hints else "is no better than no model"
    verb = "predicts" if better else f"{doubt}: it predicts"
    if isinstance(first, HeldOutClasses):
        texts = [score_text(each) for each in (first, nothing)]
        briers = [
            f"{average((_find_errors(each) ** 2).sum(axis=1), first.sample_weight):.2f}" for each in (first, nothing)
        ]
        return (
            f"{name} {verb} {n:,} held-out rows with accuracy {texts[0]}, against {texts[1]} if every row gets the "
            "most frequent class. The squared error of its probabilities, summed over the classes (Brier score, 0 to "
            f"2), is {briers[0]}, against {briers[1]}."
        )
    errors = [_find_errors(each) for each in (first, nothing)]
    if errors[0].shape[1] > 1:
        return f"{name} {verb} {n:,} held-out rows with R² {score_text(first)} on average; 0 is no model, 1 is perfect."
    unit = np.abs(errors).max() or 1.0
    sizes = [
        number_text(float(unit * np.sqrt(average((part[:, 0] / unit) ** 2, first.sample_weight)))) for part in errors
    ]
    return (
        f"{name} {verb} {n:,} held-out rows with an error (RMSE) of {sizes[0]}, against {sizes[1]} if every row gets "
        f"the mean (R² {score_text(first)})."
    )
