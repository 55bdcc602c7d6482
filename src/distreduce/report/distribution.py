"""What each prototype is made of: the shares of classes or bins of a target on it, its mean and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.plotting.palette import target_rows, target_values
from distreduce.report.columns import Node, Rows
from distreduce.report.encode import cell_text, number_text, packed

N_BINS = 12
MAX_HEAT_MAP = 1000


@dataclass(frozen=True)
class Distribution:
    """One target on the prototypes of the page: shares (m, C) of labels, or means and spreads (m,), or both."""

    name: str
    labels: list[str]
    shares: Array | None
    mean: Array | None = None
    spread: Array | None = None

    def node(self) -> Node:
        """As the page's script reads it."""
        node: Node = {"name": self.name, "labels": self.labels}
        if self.shares is not None:
            node |= {"shares": packed(self.shares, "f4"), "order": _order(self.shares)}
        if self.mean is not None:
            node["mean"] = self.mean.tolist()
        if self.spread is not None:
            node["spread"] = self.spread.tolist()
        return node

    def in_words(self, place: int) -> str:
        """Mean and spread, or the main class and its share."""
        if self.mean is not None:
            spread = "" if self.spread is None else f" ± {number_text(self.spread[place], 2)}"
            return number_text(self.mean[place]) + spread
        if self.shares is None:
            return ""
        main = int(self.shares[place].argmax())
        return f"{self.labels[main]} ({self.shares[place, main]:.0%})"


def distribution(model: BaseReduction, y: ArrayLike | None, prototypes: Rows, target: int, name: str) -> Distribution:
    """The target on the prototypes, by the coupling T: the share of label c on prototype j is

        s_jc = Σ_i T_ij [y_i = c] / Σ_i T_ij over the samples i whose target is known,

    and mean and spread are the mean and standard deviation of y with the same weights. Without y a model still knows
    the shares or means of its own prototypes.
    """  # fmt: skip
    if y is None:
        return _remembered(model, prototypes, target, name)
    rows, labels, _ = target_rows(model, y, target, N_BINS)
    T = sparse.csc_array(model.coupling_)[:, prototypes]
    classes, values = target_values(model, y, target)
    shares = _means(T, rows, np.asarray(rows.any(axis=1)))
    if classes is not None:
        return Distribution(name, labels, shares)
    known = np.isfinite(values[:, 0])
    centre = values[known].mean()  # the difference of squares is taken near zero
    mean = _means(T, values - centre, known)[:, 0]
    square = _means(T, (values - centre) ** 2, known)[:, 0]
    return Distribution(name, labels, shares, mean + centre, np.sqrt(np.maximum(square - mean**2, 0.0)))


def _means(T: sparse.csc_array, values: Array, known: NDArray[np.bool_]) -> Array:
    mass = np.asarray(T.T @ known.astype(np.float64))[:, None]
    sums = np.asarray(T.T @ np.where(known[:, None], values, 0.0))
    return np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)


def _remembered(model: BaseReduction, prototypes: Rows, target: int, name: str) -> Distribution:
    targets = model.prototype_targets_[prototypes]
    if hasattr(model, "classes_"):
        return Distribution(name, [cell_text(label) for label in model.classes_], targets)
    return Distribution(name, [], None, targets[:, target])


def _order(shares: Array) -> list[int]:
    """Prototypes by main label, then by mean place among the labels, as in :func:`distreduce.plotting.plot_coupling`.

    Empty beyond `MAX_HEAT_MAP` prototypes: a heat map with columns thinner than a pixel says nothing.
    """
    if len(shares) > MAX_HEAT_MAP:
        return []
    steps = np.arange(shares.shape[1])
    return [int(k) for k in np.lexsort((-shares.max(axis=1), shares @ steps, shares.argmax(axis=1)))]
