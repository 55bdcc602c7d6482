"""Held-out predictions on the page: scores of every model, calibration of all, and the first one's predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import classification_scores
from distreduce.metrics.calibration import read_probabilities
from distreduce.report.encode import cell_text
from distreduce.report.figures import MAX_CURVES, Figure, Predictions, score_text
from distreduce.report.held_out import HeldOut, HeldOutClasses
from distreduce.report.numbers import of_numbers
from distreduce.report.svg import Chart

Given = HeldOut | HeldOutClasses

MAX_CONFUSION = 30
N_BINS = 10


def predictions(given: Given | Mapping[str, Given] | None) -> Predictions | None:
    """What the page says about held-out predictions; None without any."""
    if given is None:
        return None
    named = given if isinstance(given, Mapping) else {"model": given}
    if named and all(isinstance(each, HeldOut) for each in named.values()):
        return of_numbers({str(name): each for name, each in named.items() if isinstance(each, HeldOut)})
    if named and all(isinstance(each, HeldOutClasses) for each in named.values()):
        return _classes({str(name): each for name, each in named.items() if isinstance(each, HeldOutClasses)})
    raise InvalidInputError(
        "held_out must be a HeldOut (numbers) or a HeldOutClasses (labels), or map names of models to one kind of them."
    )


def _classes(named: dict[str, HeldOutClasses]) -> Predictions:
    headings = ["", "held-out rows", "accuracy", "mean log probability", "Brier score", "calibration error (ECE)"]
    scores = []
    for name, each in named.items():
        found = classification_scores(each.y, each.proba, each.classes)
        texts = [score_text(found[key]) for key in ("accuracy", "mlp", "brier", "ece")]
        scores.append([name, f"{len(np.asarray(each.y)):,}", *texts])
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
