"""Held-out predictions on the page: a table of scores for all models, and charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from distreduce._utils.text import count_of, decimal_text, number_text
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve
from distreduce.metrics.calibration import average, read_gaussian, read_numbers, read_probabilities, read_weights
from distreduce.metrics.held_out import held_out_scores, level_curve, score_classes
from distreduce.plotting.calibration import draw_calibration, draw_predictions, draw_reliability
from distreduce.report.columns import cell_text
from distreduce.report.held_out import Given, HeldOut, HeldOutClasses, find_interval
from distreduce.report.renderer import LOOKS, MAX_CURVES, Figure, make_figure

MAX_DOTS = 1500
MAX_DRAWN = 4  # targets
MAX_CONFUSION = 30  # classes
N_BINS = 10
TWO_SIDED_90 = 1.6449
NUMBERS = {
    "r2": "R²",
    "rmse": "RMSE",
    "mll": "mean log density",
    "coverage_90": "share in 90 % intervals",
    "mace": "calibration error (MACE)",
}
CLASSES = {
    "accuracy": "accuracy",
    "mlp": "mean log probability",
    "brier": "Brier score (sum over classes)",
    "ece": "calibration error (ECE)",
    "ece_by_chance": "ECE by chance alone",
}
BY_CHANCE = (
    "ECE by chance alone: the calibration error that this many rows would show even if all probabilities were exactly "
    "right. Only an error clearly above it speaks against a model."
)


@dataclass(frozen=True)
class Predictions:
    """How many rows, a table of scores, notes, charts, and a confusion matrix (counts, one row per true class)."""

    rows: str
    headings: list[str]
    scores: list[list[str]]
    figures: list[Figure]
    classes: list[str]
    confusion: list[list[int]]
    notes: list[str]


def name_models(given: Given | Mapping[str, Given] | None) -> dict[str, Given]:
    """Return held-out predictions by the name of their model, none without any."""
    named = given if isinstance(given, Mapping) else {} if given is None else {"model": given}
    return {str(name): each for name, each in named.items()}


def describe_predictions(given: Given | Mapping[str, Given] | None) -> Predictions | None:
    """Return what the page shows of held-out predictions; None without any."""
    if given is None:
        return None
    # One table has one kind of score: numbers and labels cannot be mixed.
    named: dict[str, Any] = name_models(given)
    describers: dict[type, Callable[[Any], Predictions]] = {HeldOut: describe_numbers, HeldOutClasses: describe_classes}
    for kind, describe in describers.items():
        if named and all(isinstance(each, kind) for each in named.values()):
            return describe(named)
    raise InvalidInputError(
        "held_out must be a HeldOut (numbers) or a HeldOutClasses (labels), or map names of models to one kind of them."
    )


def sort_experts(weights: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """Return name, share as text and share of every expert with at least half a per cent, heaviest first."""
    listed = sorted(weights.items(), key=lambda pair: -pair[1])
    return [(str(name), f"{weight:.0%}", float(weight)) for name, weight in listed if weight >= 0.005]


def describe_numbers(named: Mapping[str, HeldOut]) -> Predictions:
    """Return scores, predictions against the truth and calibration curves; the first model is the main one."""
    if len({each.scale is None for each in named.values()}) > 1:
        raise InvalidInputError("Give scale to all models or to none: log densities in two units cannot be compared.")
    found = {name: score_held_out(each) for name, each in named.items()}
    curves = {}
    # Calibration: from the model's own levels if it has them, else from its Gaussian.
    for name, each in islice(named.items(), MAX_CURVES):
        if each.levels is None:
            curves[name] = calibration_curve(each.y, each.mean, each.std, sample_weight=each.sample_weight)
        else:
            curves[name] = level_curve(np.asarray(each.levels, dtype=np.float64), each.sample_weight)
    calibration = make_figure(
        "Calibration",
        "Above the dotted line the intervals are wider than necessary; below it they are too narrow.",
        lambda ax: draw_calibration(ax, curves, LOOKS[: len(curves)]),
    )
    # Only the first model is drawn against the truth, all are in the table.
    figures = [*_draw_against_truth(*next(iter(named.items()))), calibration]
    shown = {key: heading for key, heading in NUMBERS.items() if any(key in scores for scores in found.values())}
    notes = [*_describe_models(named), " ".join(_describe_units(named))]
    return Predictions(*_make_table(named, found, shown), figures, [], [], notes)


def describe_classes(named: Mapping[str, HeldOutClasses]) -> Predictions:
    """Return scores and reliability diagrams of all models, and the confusion matrix of the first."""
    found = {name: score_held_out(each) for name, each in named.items()}
    first = next(iter(named.values()))
    h = read_weights(first.sample_weight, len(np.asarray(first.y)))  # unequal ones say as much as fewer equal (Kish)
    bins = {name: bin_confidence(each) for name, each in islice(named.items(), MAX_CURVES)}
    reliability = make_figure(
        "Reliability",
        "On the dotted line, predictions made with 80 % confidence are correct in 80 of 100 cases; below it the model "
        "is over-confident. Grey columns show the share of samples with that confidence. Bars are 95 % intervals of "
        "the first model: where they are long, few samples are behind a dot. Of other models, dots of fewer "
        "than 10 samples are not drawn.",
        lambda ax: draw_reliability(ax, bins, LOOKS[: len(bins)], round(h.sum() ** 2 / (h**2).sum())),
    )
    # The confusion matrix, unless it would not fit on the page.
    codes, proba = read_probabilities(first.y, first.proba, first.classes)
    classes, notes = [cell_text(label) for label in np.asarray(first.classes)], [*_describe_models(named), BY_CHANCE]
    table = _make_table(named, found, CLASSES)
    if len(classes) > MAX_CONFUSION:
        notes.append(f"The confusion matrix of {len(classes)} classes is omitted; the limit is {MAX_CONFUSION}.")
        return Predictions(*table, [reliability], [], [], notes)
    counts = confusion_matrix(codes, proba.argmax(axis=1), labels=np.arange(len(classes)))
    return Predictions(*table, [reliability], classes, counts.tolist(), notes)


def _make_table(
    named: Mapping[str, Given], found: Mapping[str, Mapping[str, float]], shown: Mapping[str, str]
) -> tuple[str, list[str], list[list[str]]]:
    rows = [[name, *(_score_text(key, scores.get(key, np.nan)) for key in shown)] for name, scores in found.items()]
    # One number of rows in a sentence, or a column if the models were scored on different ones.
    counts = [len(np.asarray(named[name].y)) for name in found]
    if len(set(counts)) == 1:
        return count_of(counts[0], "row"), ["", *shown.values()], rows
    wider = [[row[0], f"{count:,}", *row[1:]] for row, count in zip(rows, counts, strict=True)]
    return "rows", ["", "held-out rows", *shown.values()], wider


def _score_text(key: str, value: float) -> str:
    """Return a score with three decimals; the RMSE, which is in units of the target, with four digits."""
    if key == "rmse":
        return number_text(value)
    return decimal_text(value, 3) if np.isfinite(value) else "–"


def _describe_models(named: Mapping[str, Given]) -> list[str]:
    weighted = any(each.sample_weight is not None for each in named.values())
    note = ["Rows count by their weights in all scores; a confusion matrix counts rows."] if weighted else []
    return [*(f"{name}: {each.about}" for name, each in named.items() if each.about), *note]


def score_held_out(each: Given) -> dict[str, float]:
    """Return all scores of a model, and the ends of the 95 % interval of R² or accuracy."""
    low, high = find_interval(each)
    ends = {"low_95": low, "high_95": high}
    if isinstance(each, HeldOutClasses):
        return score_classes(each.y, each.proba, each.classes, each.sample_weight) | ends
    own = {"levels": each.levels, "log_density": each.log_density}
    scores = held_out_scores(each.y, each.mean, each.std, scale=each.scale, sample_weight=each.sample_weight, **own)
    # Quantiles without levels: coverage follows from the quantiles.
    if each.levels is None and each.low is not None:
        low_90, high_90 = _read_bounds(each)
        inside = (low_90 <= np.asarray(each.y)) & (np.asarray(each.y) <= high_90)
        scores["coverage_90"] = average(inside.ravel(), each.sample_weight)
    return scores | ends


def _read_bounds(each: HeldOut) -> tuple[Array, Array]:
    """Return the central 90 % intervals: the model's own, or those of the Gaussian."""
    read_gaussian(each.y, each.mean, each.std)  # raises on invalid predictions
    mean, half = np.asarray(each.mean, dtype=np.float64), TWO_SIDED_90 * np.asarray(each.std, dtype=np.float64)
    if each.low is None and each.high is None:
        return mean - half, mean + half
    if each.low is None or each.high is None:
        raise InvalidInputError("Give both low and high, the 5 % and 95 % quantiles, or neither.")
    low, high = read_numbers("low", each.low), read_numbers("high", each.high)
    if low.shape != mean.shape or high.shape != mean.shape or (low > high).any():
        raise InvalidInputError(
            f"low and high must have the shape of y, {mean.shape}, and low must not be above high; "
            f"got shapes {low.shape} and {high.shape}."
        )
    return low, high


def _describe_units(named: Mapping[str, HeldOut]) -> list[str]:
    first = next(iter(named.values()))
    unit = "the target" if first.scale is None else "the target’s standard deviation in the training rows"
    one = np.size(first.y) == len(np.asarray(first.y))
    return [
        "RMSE is in units of the target." if one else "R² is the mean over the targets.",
        f"The log density is that of {_describe_source(named, 'log_density', 'the model itself')}, in units of {unit}.",
        f"The 90 % intervals are those of {_describe_source(named, 'low', 'the model’s own quantiles')}; "
        f"the calibration is that of {_describe_source(named, 'levels', 'the model’s own quantiles')}.",
    ]


def _describe_source(named: Mapping[str, HeldOut], field: str, own: str) -> str:
    """Return where a score comes from: the model's own distribution if it gave one, else a Gaussian."""
    gaussian = [name for name, each in named.items() if getattr(each, field) is None]
    if len(gaussian) == len(named):
        return "a Gaussian"
    return own + (f" ({', '.join(gaussian)}: of a Gaussian)" if gaussian else "")


def _draw_against_truth(name: str, each: HeldOut) -> list[Figure]:
    names = list(getattr(each.y, "columns", [])) or range(np.asarray(each.y)[0].size)
    # y, mean, low and high, each as (rows, targets).
    parts = np.stack([np.asarray(part, dtype=np.float64) for part in (each.y, each.mean, *_read_bounds(each))])
    parts = parts.reshape(4, len(parts[0]), -1)
    kept = np.random.default_rng(0).permutation(parts.shape[1])[:MAX_DOTS]  # the same rows each time
    cut = f" {MAX_DOTS:,} rows, drawn at random, are shown." if len(kept) < parts.shape[1] else ""
    whose = "the model’s own" if each.low is not None else "a Gaussian’s"
    caption = (
        f"Bars are 90 % intervals, {whose} 5 % to 95 % quantiles. About nine in ten should cross the dotted line, "
        f"where the prediction equals the truth.{cut}"
    )
    figures = []
    for c in range(min(parts.shape[2], MAX_DRAWN)):
        shown = parts[:, kept, c]
        title = f"Predicted against true{f', target {names[c]}' if parts.shape[2] > 1 else ''} ({name})"
        texts = [
            f"true {number_text(t)}, predicted {number_text(p)}, 90 % from {number_text(a)} to {number_text(b)}"
            for t, p, a, b in shown.T
        ]
        figures.append(make_figure(title, caption, partial(draw_predictions, parts=shown, **LOOKS[0]), texts))
    return figures


def bin_confidence(each: HeldOutClasses) -> tuple[Array, Array, Array]:
    """Return mean confidence, accuracy and share of the samples in each bin of confidence."""
    codes, proba = read_probabilities(each.y, each.proba, each.classes)
    confidence, right = proba.max(axis=1), (proba.argmax(axis=1) == codes).astype(np.float64)
    bins = np.searchsorted(np.linspace(0, 1, N_BINS + 1)[1:-1], confidence, side="left")
    h = read_weights(each.sample_weight, len(codes))
    counts = np.bincount(bins, weights=h, minlength=N_BINS)
    filled = np.where(counts > 0, counts, 1.0)
    means = [np.bincount(bins, weights=h * part, minlength=N_BINS) / filled for part in (confidence, right)]
    return means[0], means[1], counts / h.sum()
