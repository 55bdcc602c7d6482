"""What samples say that the fit has not seen: about each prototype, and about the picture as a whole."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.numerics import nearest as find_closest
from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.text import decimal_text, number_text
from distreduce._utils.typing import Array, Index
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._evidence import LEAST_EVIDENCE, LEAST_OF_CLASSES, QUALITY
from distreduce.interop._predictor import Node
from distreduce.metrics.reduction import criticisms
from distreduce.plotting.targets import prototype_means, sample_shares
from distreduce.report.columns import cell_text
from distreduce.report.prototypes import N_BINS, Distribution

SHOWN_QUALITY = tuple(name for name in QUALITY if name != "dubious")  # a flag, not a number
MUCH = 0.1  # a difference of scores worth a warning
LITTLE = 0.03  # a difference of scores that neighbours on other samples could make
SOMETHING = 0.1  # from this share of the error without a model on, something is known of the target


def find_evidence(model: BaseReduction, y: ArrayLike | None, prototypes: Index, target: int, name: str) -> Distribution:
    """Return the target among the samples whose left-out place is nearest to each prototype."""
    table = model.prototype_evidence_.iloc[prototypes]
    means = prototype_means(model, "left_out")[prototypes]
    if hasattr(model, "classes_"):
        return Distribution(name, [cell_text(label) for label in model.classes_], means)
    of = model.target_names_[target].removeprefix("mean ")
    low, high = (table[f"{end} {of}"].to_numpy(dtype=np.float64) for end in ("5 %", "95 %"))
    shares, labels = (None, []) if y is None else _bin_nearby(model, y, prototypes, target)
    return Distribution(name, labels, shares, means[:, target], low=low, high=high)


def _bin_nearby(model: BaseReduction, y: ArrayLike, prototypes: Index, target: int) -> tuple[Array, list[str]]:
    """Return the share of each bin of a continuous target among the samples behind the evidence."""
    rows, labels, _ = sample_shares(model, y, target, N_BINS)
    known = np.flatnonzero(rows.any(axis=1))
    Z = model.embedding_left_out_[known]
    nearest = nearest_in_use(Z, model.prototypes_, model.prototype_weights_)
    counts = np.bincount(nearest, minlength=len(model.prototypes_))
    sums = np.zeros((len(model.prototypes_), rows.shape[1]))
    np.add.at(sums, nearest, rows[known])
    shares = sums[prototypes] / np.maximum(counts[prototypes], 1)[:, None]
    # Where few samples are nearest, take the nearest of all samples.
    few = np.flatnonzero(counts[prototypes] < LEAST_EVIDENCE)
    if len(few):
        found = find_closest(model.prototypes_[prototypes[few]], Z, min(LEAST_EVIDENCE, len(Z)))[1]
        shares[few] = rows[known][found].mean(axis=1)
    return shares, labels


def encode_quality(model: BaseReduction, prototypes: Index) -> Node:
    """Return count, quality and flag of the prototypes, and how many samples are taken where fewer are nearest."""
    table = model.prototype_evidence_.iloc[prototypes]
    node: Node = {"count": table["n_samples"].astype(int).tolist(), "dubious": table["dubious"].astype(bool).tolist()}
    least = LEAST_OF_CLASSES if hasattr(model, "classes_") else LEAST_EVIDENCE
    node["least"] = min(least, len(model.embedding_))
    # JSON has no infinity: the separation of a single prototype.
    names = [name for name in SHOWN_QUALITY if name in table]
    return node | {name: [float(v) if np.isfinite(v) else None for v in table[name]] for name in names}


class Criticism(NamedTuple):
    """A sample that the prototypes represent badly: its row, its nearest prototype, and why."""

    sample: int
    prototype: int
    distance: str
    surprise: str


def list_criticisms(model: BaseReduction, y: ArrayLike | None) -> list[Criticism]:
    """Return the samples that the prototypes represent worst; none for a model without evidence."""
    if not hasattr(model, "prototype_evidence_"):
        return []
    return [
        Criticism(int(row), int(found.prototype), f"{found.distance:.1f} ×", number_text(found.surprise, 2))
        for row, found in criticisms(model, y).iterrows()
    ]


class Verdict(NamedTuple):
    """A verdict, a sentence with its numbers, whether it warns, and scores: name, note, text and length of the bar."""

    verdict: str
    sentence: str
    warns: bool
    scores: list[tuple[str, str, str, float]]


def _judge_map(fitted: float, left_out: float, every: float, guess: float | None) -> tuple[str, bool]:
    """Return a verdict by the scores, and whether it warns; `guess` is that of the most frequent class, if classes."""
    # A rare class hardly moves the accuracy, even where the map tells it apart.
    if guess is not None and left_out < guess - LITTLE:
        return "On the map, neighbours tell the class of new samples worse than guessing", True
    if guess is not None and left_out < guess + LITTLE:
        return "On the map, new samples are mostly next to the most frequent class", True
    if guess is not None and left_out < guess + SOMETHING * (1.0 - guess):
        return "The map predicts new samples little better than their most frequent class does", True
    if left_out < SOMETHING:
        how = "little" if left_out >= LITTLE else "next to nothing"
        return f"The map says {how} about the target of new samples", True
    if fitted > left_out + MUCH:
        return "The fitted places promise more than new samples hold", True
    more = ", but the features know more" if every > left_out + MUCH else ""
    return f"What you see holds for new samples{more}", False


def describe_optimism(model: Any, within: str = "") -> Verdict | None:
    """Compare the scores of neighbours on the map, fitted and left out, and with all features; None without them.

    `within` names the new samples that these scores hold for, such as "of the same clinic", if not for all.
    """
    scores = getattr(model, "neighbor_scores_", None)
    if scores is None or not np.isfinite(list(scores.values())).all():
        return None
    fitted, left_out, every = (float(scores[name]) for name in ("fitted", "left_out", "all_features"))
    classes = hasattr(model, "classes_")
    # What guessing reaches: the most frequent class, or the mean of the targets.
    guess = float((model.prototype_weights_ @ model.prototype_targets_).max()) if classes else 0.0
    blind = getattr(model, "eta_", None) == 0 != model.eta
    if blind:  # few samples cannot show that there is nothing to see
        verdict, warns = "Left-out samples show nothing about the target, so the map was drawn without it", True
    else:
        verdict, warns = _judge_map(fitted, left_out, every, guess if classes else None)
    if within and not warns:
        verdict, warns = verdict.replace("new samples", f"new samples {within}"), True
    texts, score = [decimal_text(value, 2) for value in (left_out, every, fitted)], "accuracy" if classes else "R²"
    sentence = (
        f"The 10 nearest neighbours on the map predict samples left out of the fit with {score} {texts[0]}; "
        f"the 10 nearest by all features, with {texts[1]}; always guessing "
        f"the {'most frequent class' if classes else 'mean'}, with {decimal_text(guess, 2)}."
    )
    if fitted > left_out and not blind:
        sentence += f" Places of the fit, which has seen the targets, would suggest {texts[2]}."
    if within:
        sentence += " For others, look at the held-out scores."
    about = {"left out": "what the map shows", "all features": "without the map", "fitted": "places of the fit"}
    bars = [*zip(about.items(), (left_out, every, fitted), strict=True)]
    bars += [(("always guessing", "most frequent class"), guess)] if classes else []  # R² of the mean is zero
    shown = [(*names, decimal_text(value, 2), min(max(value, 0.0), 1.0)) for names, value in bars]
    return Verdict(verdict, sentence, warns, shown)
