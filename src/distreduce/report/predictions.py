"""Held-out predictions on the page: scores of every model, calibration of all, and the first one's predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve, classification_scores, interval_coverage, regression_scores
from distreduce.metrics.calibration import read_gaussian, read_probabilities
from distreduce.report.encode import cell_text, number_text
from distreduce.report.held_out import HeldOut, HeldOutClasses
from distreduce.report.svg import Chart

Array = NDArray[np.float64]
Given = HeldOut | HeldOutClasses

MAX_CURVES = 7  # colours of a curve in the style
MAX_DOTS = 1500
MAX_CONFUSION = 30
N_BINS = 10
TWO_SIDED_90 = 1.6449


class Figure(NamedTuple):
    """A drawing, what it is and how to read it, and the names of its curves with their styles."""

    title: str
    drawing: Markup
    caption: str
    key: list[tuple[str, str]]


@dataclass(frozen=True)
class Predictions:
    """A table of scores (rows of texts under headings), drawings, and a confusion matrix (counts, by true class)."""

    headings: list[str]
    scores: list[list[str]]
    figures: list[Figure]
    classes: list[str]
    confusion: list[list[int]]
    note: str = ""


def predictions(given: Given | Mapping[str, Given] | None) -> Predictions | None:
    """What the page says about held-out predictions; None without any."""
    if given is None:
        return None
    named = given if isinstance(given, Mapping) else {"model": given}
    if named and all(isinstance(each, HeldOut) for each in named.values()):
        return _numbers({str(name): each for name, each in named.items() if isinstance(each, HeldOut)})
    if named and all(isinstance(each, HeldOutClasses) for each in named.values()):
        return _classes({str(name): each for name, each in named.items() if isinstance(each, HeldOutClasses)})
    raise InvalidInputError(
        "held_out must be a HeldOut (numbers) or a HeldOutClasses (labels), or map names of models to one kind of them."
    )


def _numbers(named: dict[str, HeldOut]) -> Predictions:
    headings = [
        "",
        "held-out values",
        "R²",
        "RMSE",
        "mean log density",
        "90 % intervals hold",
        "calibration error (MACE)",
    ]
    scores = [[name, *_number_scores(each)] for name, each in named.items()]
    name, first = next(iter(named.items()))
    y, mean, std = (np.asarray(part, dtype=np.float64).reshape(len(np.asarray(first.y)), -1) for part in _parts(first))
    figures = [
        _against_truth(name, y[:, c], mean[:, c], std[:, c], f", target {c}" if y.shape[1] > 1 else "")
        for c in range(min(y.shape[1], 4))
    ]
    return Predictions(headings, scores, [*figures, _calibration(named)], [], [])


def _parts(each: HeldOut) -> tuple[Array, Array, Array]:
    read_gaussian(each.y, each.mean, each.std)  # refuses what cannot be used
    return np.asarray(each.y), np.asarray(each.mean), np.asarray(each.std)


def _number_scores(each: HeldOut) -> list[str]:
    found = regression_scores(each.y, each.mean, each.std)
    y = np.asarray(each.y, dtype=np.float64)
    spread = float(np.mean((y - y.mean(axis=0)) ** 2))
    r2 = f"{1 - found['mse'] / spread:.3f}".replace("-", "−") if spread > 0 else "–"
    covered = interval_coverage(each.y, each.mean, each.std, 0.9)
    texts = [f"{y.size:,}", r2, number_text(np.sqrt(found["mse"])), number_text(found["mll"], 3)]
    return [*texts, f"{covered:.0%}", f"{found['mace']:.3f}"]


def _against_truth(name: str, y: Array, mean: Array, std: Array, which: str) -> Figure:
    kept = np.random.default_rng(0).permutation(len(y))[:MAX_DOTS]
    y, mean, half = y[kept], mean[kept], TWO_SIDED_90 * std[kept]
    low, high = float(min(y.min(), (mean - half).min())), float(max(y.max(), (mean + half).max()))
    chart = Chart((float(y.min()), float(y.max())), (low, high), ("true value", "predicted"), "predicted against true")
    chart.bars(y, mean - half, mean + half, "interval")
    ends = np.array([max(low, y.min()), min(high, y.max())])
    chart.line(ends, ends, "ideal")
    texts = (
        f"true {number_text(t)}, predicted {number_text(p)} ± {number_text(h)}"
        for t, p, h in zip(y, mean, half, strict=True)
    )
    chart.dots(y, mean, "c0", titles=texts)
    cut = f" {MAX_DOTS:,} of them, drawn at random." if len(kept) == MAX_DOTS else ""
    caption = "Bars are 90 % intervals: nine in ten should cross the dashed line, where prediction equals truth." + cut
    return Figure(f"Predicted against true{which} ({name})", chart.markup(), caption, [])


def _calibration(named: dict[str, HeldOut]) -> Figure:
    labels = ("expected share inside the interval", "observed share")
    chart = Chart((0, 1), (0, 1), labels, "calibration curve")
    chart.line([0, 1], [0, 1], "ideal")
    key = []
    for place, (name, each) in enumerate(list(named.items())[:MAX_CURVES]):
        chart.line(*calibration_curve(each.y, each.mean, each.std), f"curve c{place}")
        key.append((name, f"c{place}"))
    caption = "Above the dashed line the intervals are wider than they need be; below it they promise too much."
    return Figure("Calibration", chart.markup(), caption, key if len(key) > 1 else [])


def _classes(named: dict[str, HeldOutClasses]) -> Predictions:
    headings = ["", "held-out samples", "accuracy", "mean log probability", "Brier score", "calibration error (ECE)"]
    scores = []
    for name, each in named.items():
        found = classification_scores(each.y, each.proba, each.classes)
        texts = [f"{len(np.asarray(each.y)):,}", f"{found['accuracy']:.1%}", number_text(found["mlp"], 3)]
        scores.append([name, *texts, f"{found['brier']:.3f}", f"{found['ece']:.3f}"])
    first = next(iter(named.values()))
    codes, proba = read_probabilities(first.y, first.proba, first.classes)
    classes = [cell_text(label) for label in np.asarray(first.classes)]
    if len(classes) > MAX_CONFUSION:
        note = f"The confusion matrix of {len(classes)} classes is left out: it is drawn for at most {MAX_CONFUSION}."
        return Predictions(headings, scores, [_reliability(named)], [], [], note)
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (codes, proba.argmax(axis=1)), 1)
    return Predictions(headings, scores, [_reliability(named)], classes, counts.tolist())


def _reliability(named: dict[str, HeldOutClasses]) -> Figure:
    """Accuracy against confidence in bins of equal width, a curve a model; columns count the first one's samples."""
    chart = Chart((0, 1), (0, 1), ("confidence of the prediction", "share that is right"), "reliability diagram")
    key = []
    for place, (name, each) in enumerate(list(named.items())[:MAX_CURVES]):
        confidence, right, share = _bins(each)
        if place == 0:
            for left, part in zip(np.arange(N_BINS) / N_BINS, share, strict=True):
                chart.column((left, left + 1 / N_BINS), part, "count", f"{part:.0%} of the samples")
            chart.line([0, 1], [0, 1], "ideal")
        some = share > 0
        chart.line(confidence[some], right[some], f"curve c{place}", dots=True)
        key.append((name, f"c{place}"))
    caption = (
        "On the dashed line a prediction made with 80 % confidence is right in 80 of 100 cases; below it the model is "
        "over-confident. Grey columns: share of the samples with that confidence."
    )
    return Figure("Reliability", chart.markup(), caption, key if len(key) > 1 else [])


def _bins(each: HeldOutClasses) -> tuple[Array, Array, Array]:
    """Mean confidence, accuracy and share of the samples in each bin of confidence."""
    codes, proba = read_probabilities(each.y, each.proba, each.classes)
    confidence, right = proba.max(axis=1), (proba.argmax(axis=1) == codes).astype(np.float64)
    bins = np.searchsorted(np.linspace(0, 1, N_BINS + 1)[1:-1], confidence, side="left")
    counts = np.bincount(bins, minlength=N_BINS)
    filled = np.maximum(counts, 1)
    sums = (np.bincount(bins, weights=part, minlength=N_BINS) / filled for part in (confidence, right))
    return (*sums, counts / len(codes))  # type: ignore[return-value]
