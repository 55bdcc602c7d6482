"""What the page shows of a prototype: its targets, its medoid and its nearest samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.pairwise import euclidean_distances

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.text import number_text
from distreduce._utils.typing import Array, Index
from distreduce.estimators._base import BaseReduction
from distreduce.interop._predictor import Node, pack
from distreduce.plotting.targets import average_on_prototypes, choose_places, read_shown_targets, sample_shares
from distreduce.report.columns import cell_text

N_BINS = 12
MAX_HEAT_MAP = 1000  # prototypes
N_NEAREST = 5


@dataclass(frozen=True)
class Distribution:
    """One target on the prototypes of the page: shares (m, C) of classes or bins, means, spreads and ranges (m,)."""

    name: str
    labels: list[str]
    shares: Array | None
    mean: Array | None = None
    spread: Array | None = None
    low: Array | None = None
    high: Array | None = None

    def encode(self) -> Node:
        """Return what the page's script reads."""
        node: Node = {"name": self.name, "labels": self.labels}
        if self.shares is not None:
            node |= {"shares": pack(self.shares, "f4"), "order": _sort_columns(self.shares)}
        numbers = {"mean": self.mean, "spread": self.spread, "low": self.low, "high": self.high}
        return node | {name: values.tolist() for name, values in numbers.items() if values is not None}

    def describe(self, place: int) -> str:
        """Return mean with range or spread, or the most frequent class and its share."""
        if self.mean is not None:
            spread = "" if self.spread is None else f" ± {number_text(self.spread[place], 2)}"
            if self.low is not None and self.high is not None:
                spread = f" ({number_text(self.low[place], 3)} to {number_text(self.high[place], 3)})"
            return number_text(self.mean[place]) + spread
        if self.shares is None:
            return ""
        main = int(self.shares[place].argmax())
        return f"{self.labels[main]} ({self.shares[place, main]:.0%})"


def find_distribution(
    model: BaseReduction,
    y: ArrayLike | None,
    prototypes: Index,
    target: int,
    name: str,
    sample_weight: Array | None = None,
) -> Distribution:
    """Return the target on the prototypes, weighted by the coupling T and the weights w of the samples.

    The share of label c on prototype j is Σ_i w_i T_ij [y_i = c] / Σ_i w_i T_ij over the samples i with a known target.
    Mean and spread are the mean and standard deviation of y with the same weights. Without y, a supervised model still
    knows the shares or means of its prototypes.
    """
    if y is None:
        targets = model.prototype_targets_[prototypes]
        if hasattr(model, "classes_"):
            return Distribution(name, [cell_text(label) for label in model.classes_], targets)
        return Distribution(name, [], None, targets[:, target])
    rows, labels, _ = sample_shares(model, y, target, N_BINS)
    rows[~rows.any(axis=1)] = np.nan  # rows of zeros are unknown and must not count as mass
    classes, values = read_shown_targets(model, y, target)
    average = partial(average_on_prototypes, model, empty=0.0, sample_weight=sample_weight)
    shares = average(rows)[prototypes]
    if classes is not None:
        return Distribution(name, labels, shares)
    unit = np.nanmax(np.abs(values)) or 1.0  # squares of large targets would overflow
    middle = np.nanmean(values / unit)
    centred = values / unit - middle  # the difference of squares is taken near zero
    mean = average(centred)[prototypes, 0]
    square = average(centred**2)[prototypes, 0]
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return Distribution(name, labels, shares, unit * (mean + middle), unit * spread)


def _sort_columns(shares: Array) -> list[int]:
    """Sort prototypes by most frequent label, then by mean place among the labels.

    Empty beyond `MAX_HEAT_MAP` prototypes, whose columns would be thinner than a pixel.
    """
    if len(shares) > MAX_HEAT_MAP:
        return []
    steps = np.arange(shares.shape[1])
    return [int(k) for k in np.lexsort((-shares.max(axis=1), shares @ steps, shares.argmax(axis=1)))]


def assign_samples(model: BaseReduction, places: str) -> Index:
    """Return the prototype of each sample: the nearest to its left-out place, or the one that the fit chose."""
    if choose_places(model, places) == "fitted":
        return model.labels_
    return nearest_in_use(model.embedding_left_out_, model.prototypes_, model.prototype_weights_)


def find_nearest(model: BaseReduction, X: Any, prototypes: Index) -> list[list[int]]:
    """Return, for each prototype, its medoid and the samples of its own that are most like the medoid in X.

    Its own are the samples whose left-out place, if the model has them, is nearest to it. If every sample is its own
    prototype, all samples are candidates.
    """
    medoids = model.prototype_medoids_[prototypes]
    one_to_one = model.coupling_.shape[0] == model.coupling_.shape[1]
    # Samples grouped by prototype: edges[k] to edges[k + 1] are those of prototype k.
    labels = assign_samples(model, "left_out")
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(len(model.prototypes_) + 1))
    found = []
    for k, medoid in zip(prototypes, medoids, strict=True):
        own = np.arange(len(labels)) if one_to_one else order[edges[k] : edges[k + 1]]
        own = own[own != medoid]
        nearest = own[np.argsort(_measure(model, X, medoid, own), kind="stable")[:N_NEAREST]]
        found.append([int(medoid), *nearest.tolist()])
    return found


def _measure(model: BaseReduction, X: Any, medoid: int, rows: Index) -> Array:
    """Return the distances in X from a sample to others."""
    if model.metric == "precomputed":
        return np.asarray(X[medoid, rows], dtype=np.float64)
    return euclidean_distances(X[[medoid]], X[rows])[0] if len(rows) else np.empty(0)
