"""Held-out predictions of numbers: scores, predictions against the truth, and calibration."""

from __future__ import annotations

import numpy as np

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve
from distreduce.metrics.calibration import read_gaussian, read_numbers
from distreduce.metrics.held_out import held_out_scores
from distreduce.metrics.intervals import level_curve
from distreduce.report.encode import number_text
from distreduce.report.figures import MAX_CURVES, Figure, Predictions, score_text
from distreduce.report.held_out import HeldOut
from distreduce.report.svg import Chart

Named = dict[str, HeldOut]

MAX_DOTS = 1500
MAX_DRAWN = 4  # targets
TWO_SIDED_90 = 1.6449
HEADINGS = {
    "r2": "R²",
    "rmse": "RMSE",
    "mll": "mean log density",
    "coverage_90": "share in 90 % intervals",
    "mace": "calibration error (MACE)",
}


def of_numbers(named: Named) -> Predictions:
    """What the page says of these models, the first the main one."""
    if len({each.scale is None for each in named.values()}) > 1:
        raise InvalidInputError("Give scale to all models or to none: log densities in two units cannot be compared.")
    found = {name: _scores(each) for name, each in named.items()}
    shown = [key for key in HEADINGS if any(key in scores for scores in found.values())]
    rows = [
        [name, f"{len(np.asarray(named[name].y)):,}", *(_cell(key, scores) for key in shown)]
        for name, scores in found.items()
    ]
    headings = ["", "held-out rows", *(HEADINGS[key] for key in shown)]
    figures = [*_against_truth(*next(iter(named.items()))), _calibration(named)]
    return Predictions(headings, rows, figures, [], [], _note(named))


def _scores(each: HeldOut) -> dict[str, float]:
    scores = held_out_scores(each.y, each.mean, each.std, scale=each.scale, levels=each.levels)
    if each.levels is None and each.low is not None:
        low, high = _bounds(each)
        scores["coverage_90"] = float(np.mean((low <= np.asarray(each.y)) & (np.asarray(each.y) <= high)))
    return scores


def _cell(key: str, scores: dict[str, float]) -> str:
    value = scores.get(key, float("nan"))
    return number_text(value) if key == "rmse" else score_text(value)


def _bounds(each: HeldOut) -> tuple[Array, Array]:
    """The central 90 % intervals: the model's own, or those of the Gaussian."""
    read_gaussian(each.y, each.mean, each.std)  # refuses what cannot be used
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


def _note(named: Named) -> str:
    """In which units, and of which intervals, the scores are."""
    first = next(iter(named.values()))
    unit = "the target" if first.scale is None else "the target’s standard deviation in the training rows"
    one = np.size(first.y) == len(np.asarray(first.y))
    words = ["RMSE is in units of the target." if one else "R² is the mean over the targets."]
    words.append(f"The log density, that of a Gaussian, is in units of {unit}.")
    return " ".join([*words, _intervals(named)])


def _intervals(named: Named) -> str:
    """Whose intervals were counted."""
    gaussian = [name for name, each in named.items() if each.levels is None]
    if len(gaussian) < len(named):
        others = f" ({', '.join(gaussian)}: of a Gaussian)" if gaussian else ""
        return f"The 90 % intervals and the calibration are those of the model’s own quantiles{others}."
    if next(iter(named.values())).low is not None:
        return "The 90 % intervals are those of the model’s own quantiles, the calibration is that of a Gaussian."
    return "The 90 % intervals and the calibration are those of a Gaussian."


def _against_truth(name: str, each: HeldOut) -> list[Figure]:
    """A drawing a target."""
    names = list(getattr(each.y, "columns", [])) or range(np.asarray(each.y)[0].size)
    parts = (each.y, each.mean, *_bounds(each))
    y, mean, low, high = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in map(np.asarray, parts))
    of = "the model’s own" if each.low is not None else "a Gaussian’s"
    return [
        _one_target(
            f"Predicted against true{f', target {names[c]}' if y.shape[1] > 1 else ''} ({name})",
            of,
            (y[:, c], mean[:, c], low[:, c], high[:, c]),
        )
        for c in range(min(y.shape[1], MAX_DRAWN))
    ]


def _one_target(title: str, of: str, parts: tuple[Array, Array, Array, Array]) -> Figure:
    kept = np.random.default_rng(0).permutation(len(parts[0]))[:MAX_DOTS]
    y, mean, low, high = (part[kept] for part in parts)
    foot, top = float(min(y.min(), low.min(), mean.min())), float(max(y.max(), high.max(), mean.max()))
    chart = Chart((float(y.min()), float(y.max())), (foot, top), ("true value", "predicted"), "predicted against true")
    chart.bars(y, low, high, "interval")
    ends = np.array([y.min(), y.max()])
    chart.line(ends, ends, "ideal")
    texts = (
        f"true {number_text(t)}, predicted {number_text(p)}, 90 % from {number_text(a)} to {number_text(b)}"
        for t, p, a, b in zip(y, mean, low, high, strict=True)
    )
    chart.dots(y, mean, "c0", titles=texts)
    cut = f" {MAX_DOTS:,} of them, drawn at random." if len(kept) < len(parts[0]) else ""
    caption = (
        f"Bars are 90 % intervals, {of} 5 % to 95 % quantiles: nine in ten should cross the dashed line, where "
        f"prediction equals truth.{cut}"
    )
    return Figure(title, chart.markup(), caption, [])


def _calibration(named: Named) -> Figure:
    labels = ("expected share inside the interval", "observed share")
    chart = Chart((0, 1), (0, 1), labels, "calibration curve")
    chart.line([0, 1], [0, 1], "ideal")
    key = []
    for place, (name, each) in enumerate(list(named.items())[:MAX_CURVES]):
        if each.levels is None:
            curve = calibration_curve(each.y, each.mean, each.std)
        else:
            curve = level_curve(np.asarray(each.levels, dtype=np.float64))
        chart.line(*curve, f"curve c{place}")
        key.append((name, f"c{place}"))
    caption = "Above the dashed line the intervals are wider than they need be; below it they promise too much."
    return Figure("Calibration", chart.markup(), caption, key if len(key) > 1 else [])
