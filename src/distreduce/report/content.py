"""The numbers of the page: which samples and prototypes it shows, where, what colours them and what each stands for.

Limits keep the file small and the map fluid: at most `MAX_SAMPLES` samples and `MAX_PROTOTYPES` prototypes are drawn
(the page says so where it leaves some out), and only the rows of medoids and their neighbours are carried in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce.estimators._base import BaseReduction
from distreduce.plotting._plots import View
from distreduce.plotting.markers import SHAPES
from distreduce.plotting.palette import COLOUR_MAP, target_colours
from distreduce.report.columns import Colouring, Node, Rows
from distreduce.report.distribution import Distribution, distribution
from distreduce.report.encode import in_steps, packed
from distreduce.report.rows import details, nearest_rows

MAX_SAMPLES = 50_000
MAX_PROTOTYPES = 2000
MAX_TARGETS = 4


@dataclass(frozen=True)
class Subject:
    """What the page is about, checked: a fitted model, its samples, their targets, table and row numbers."""

    model: BaseReduction
    X: Any
    y: Any
    table: pd.DataFrame | None
    row_numbers: Rows
    image_shape: tuple[int, int] | None

    @property
    def one_to_one(self) -> bool:
        """Whether every sample is a prototype of its own (pure dimensionality reduction)."""
        return bool(self.model.coupling_.shape[0] == self.model.coupling_.shape[1])

    def target_names(self) -> list[str]:
        """Names of the targets, at most `MAX_TARGETS`; none if there are no targets."""
        if self.y is None and not hasattr(self.model, "prototype_targets_"):
            return []
        if isinstance(self.y, pd.DataFrame):
            names = [str(name) for name in self.y.columns]
        elif isinstance(self.y, pd.Series) and self.y.name is not None:
            names = [str(self.y.name)]
        elif getattr(self.model, "task_", None) == "regression":
            names = [name.removeprefix("mean ") for name in self.model.target_names_]
        else:
            names = [f"y{place}" for place in range(np.shape(self.y)[1])] if np.ndim(self.y) > 1 else ["y0"]
        return (["target"] if names == ["y0"] else names)[:MAX_TARGETS]

    def target_columns(self) -> list[NDArray[Any]]:
        """The targets as given, a column each."""
        if self.y is None:
            return []
        y = np.asarray(self.y, dtype=object).reshape(len(self.model.embedding_), -1)
        return list(y.T[:MAX_TARGETS])


@dataclass(frozen=True)
class Choice:
    """The rows of samples, in the order they are drawn, and the numbers of prototypes, heaviest first, of the page."""

    samples: Rows
    prototypes: Rows


def choose(model: BaseReduction) -> Choice:
    """Samples in a fixed random order, so that no class lies on top; prototypes by weight."""
    rng = np.random.default_rng(0)
    samples = rng.permutation(len(model.embedding_))[:MAX_SAMPLES]
    weights = model.prototype_weights_
    # Where some must be left out, equal ones are chosen at random: the first rows may all be of one class.
    ties = rng.permutation(len(weights)) if len(weights) > MAX_PROTOTYPES else np.arange(len(weights))
    order = np.lexsort((ties, -weights))[: np.count_nonzero(weights)]
    return Choice(samples, order[:MAX_PROTOTYPES])


def distributions(subject: Subject, choice: Choice) -> list[Distribution]:
    """Every target on the prototypes of the page."""
    names = subject.target_names()
    return [distribution(subject.model, subject.y, choice.prototypes, c, name) for c, name in enumerate(names)]


def document(subject: Subject, choice: Choice, found: list[Distribution]) -> Node:
    """All that the page's script reads."""
    model, names = subject.model, subject.target_names()
    colouring = Colouring(model, choice.samples, choice.prototypes)
    colourings = [colouring.target(subject.y, place, name) for place, name in enumerate(names)]
    if subject.table is not None:
        colourings += colouring.columns(subject.table, set(names))
    nearest = nearest_rows(model, choice.prototypes)
    return {
        "places": _places(subject, choice),
        "rows": packed(subject.row_numbers[choice.samples], "u4"),
        "labels": packed(_on_page(choice, len(model.prototypes_))[model.labels_[choice.samples]], "u2"),
        "prototypes": _prototypes(model, choice),
        "colourings": colourings,
        "nTargets": len(names),
        "distributions": [each.node() for each in found],
        "details": details(
            nearest, subject.X, subject.target_columns(), subject.table, subject.row_numbers, subject.image_shape
        ),
        "oneToOne": subject.one_to_one,
        "scale": _colour_map(),
        "shapes": [None if corners is None else corners.round(4).tolist() for corners in SHAPES],
    }


def _places(subject: Subject, choice: Choice) -> Node:
    """Coordinates as steps of 1/65534 of the picture's box: under half a pixel even when zoomed in thirty times."""
    view = View(subject.model, target_colours(subject.model, subject.y, 0), None)
    samples, prototypes = view.samples()[choice.samples], view.prototypes()[choice.prototypes]
    both = np.r_[samples, prototypes]
    low, high = both.min(axis=0), both.max(axis=0)
    node: Node = {"box": [float(low[0]), float(high[0]), float(low[1]), float(high[1])], "line": view.line}
    for a, axis in enumerate("xy"):
        node[axis] = packed(in_steps(samples[:, a], low[a], high[a]), "u2")
        node["p" + axis] = packed(in_steps(prototypes[:, a], low[a], high[a]), "u2")
    return node | {"axes": [*view.labels, *subject.target_names(), ""][:2]}


def _on_page(choice: Choice, n_prototypes: int) -> NDArray[np.int64]:
    """For each prototype its place among those on the page, or their number if it is not among them."""
    found = np.full(n_prototypes, len(choice.prototypes))
    found[choice.prototypes] = np.arange(len(choice.prototypes))
    return found


def _prototypes(model: BaseReduction, choice: Choice) -> Node:
    counts = np.bincount(model.labels_, minlength=len(model.prototypes_))
    return {
        "number": choice.prototypes.tolist(),
        "weight": [float(f"{weight:.6g}") for weight in model.prototype_weights_[choice.prototypes]],
        "count": counts[choice.prototypes].tolist(),
    }


def _colour_map() -> list[list[int]]:
    from matplotlib import colormaps

    stops = 255 * colormaps[COLOUR_MAP](np.linspace(0, 1, 33))[:, :3]
    return [[round(float(part)) for part in stop] for stop in stops]
