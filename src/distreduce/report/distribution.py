"""The target on each prototype: shares of classes or bins, mean and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.plotting.targets import read_shown_targets, sample_shares
from distreduce.report.columns import Node, Rows
from distreduce.report.encode import cell_text, number_text, pack

N_BINS = 12
MAX_HEAT_MAP = 1000


@dataclass(frozen=True)
class Distribution:
    """One target on the prototypes of the page: shares (m, C) of classes or bins, means and spreads (m,)."""

    name: str
    labels: list[str]
    shares: Array | None
    mean: Array | None = None
    spread: Array | None = None

    def encode(self) -> Node:
        """Return what the page's script reads."""
        node: Node = {"name": self.name, "labels": self.labels}
        if self.shares is not None:
            node |= {"shares": pack(self.shares, "f4"), "order": _sort_columns(self.shares)}
        if self.mean is not None:
            node["mean"] = self.mean.tolist()
        if self.spread is not None:
            node["spread"] = self.spread.tolist()
        return node

    def describe(self, place: int) -> str:
        """Return mean and spread, or the most frequent class and its share."""
        if self.mean is not None:
            spread = "" if self.spread is None else f" ± {number_text(self.spread[place], 2)}"
            return number_text(self.mean[place]) + spread
        if self.shares is None:
            return ""
        main = int(self.shares[place].argmax())
        return f"{self.labels[main]} ({self.shares[place, main]:.0%})"


def find_distribution(
    model: BaseReduction, y: ArrayLike | None, prototypes: Rows, target: int, name: str
) -> Distribution:
    """Return the target on the prototypes, weighted by the coupling T.

    The share of label c on prototype j is Σ_i T_ij [y_i = c] / Σ_i T_ij over the samples i with a known target. Mean
    and spread are the mean and standard deviation of y with the same weights. Without y, a supervised model still
    knows the shares or means of its prototypes.
    """
    if y is None:
        return _recall(model, prototypes, target, name)
    rows, labels, _ = sample_shares(model, y, target, N_BINS)
    T = sparse.csc_array(model.coupling_)[:, prototypes]
    classes, values = read_shown_targets(model, y, target)
    shares = _average(T, rows, np.asarray(rows.any(axis=1)))
    if classes is not None:
        return Distribution(name, labels, shares)
    known = np.isfinite(values[:, 0])
    centre = values[known].mean()  # the difference of squares is taken near zero
    mean = _average(T, values - centre, known)[:, 0]
    square = _average(T, (values - centre) ** 2, known)[:, 0]
    return Distribution(name, labels, shares, mean + centre, np.sqrt(np.maximum(square - mean**2, 0.0)))


def _average(T: sparse.csc_array, values: Array, known: NDArray[np.bool_]) -> Array:
    mass = np.asarray(T.T @ known.astype(np.float64))[:, None]
    sums = np.asarray(T.T @ np.where(known[:, None], values, 0.0))
    return np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)


def _recall(model: BaseReduction, prototypes: Rows, target: int, name: str) -> Distribution:
    targets = model.prototype_targets_[prototypes]
    if hasattr(model, "classes_"):
        return Distribution(name, [cell_text(label) for label in model.classes_], targets)
    return Distribution(name, [], None, targets[:, target])


def _sort_columns(shares: Array) -> list[int]:
    """Sort prototypes by most frequent label, then by mean place among the labels.

    Empty beyond `MAX_HEAT_MAP` prototypes, whose columns would be thinner than a pixel.
    """
    if len(shares) > MAX_HEAT_MAP:
        return []
    steps = np.arange(shares.shape[1])
    return [int(k) for k in np.lexsort((-shares.max(axis=1), shares @ steps, shares.argmax(axis=1)))]
