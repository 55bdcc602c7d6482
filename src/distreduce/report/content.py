"""The data of the page: which samples and prototypes it shows, their places, colours and rows, and two tables.

Limits keep the file small and the map fluid: at most `MAX_SAMPLES` samples and `MAX_PROTOTYPES` prototypes are drawn
(the page says so if it omits some), and only medoids and their neighbours are stored as complete rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array, Index
from distreduce.estimators._base import BaseReduction
from distreduce.interop._predictor import Node, pack
from distreduce.plotting.embedding import View
from distreduce.plotting.palette import COLOUR_MAP, SHAPES, colour_by_target
from distreduce.plotting.targets import target_name
from distreduce.report.columns import Colouring, cell_text, find_contrasts, list_cells, quantise, read_columns
from distreduce.report.evidence import SHOWN_QUALITY, Criticism, encode_quality, find_evidence
from distreduce.report.prototypes import Distribution, assign_samples, find_distribution, find_nearest
from distreduce.tables.recipe import ColumnRecipe

MAX_SAMPLES = 50_000
MAX_PROTOTYPES = 2000
MAX_TARGETS = 4
MAX_ROW_COLUMNS = 100
MAX_CELLS = 400_000


@dataclass(frozen=True)
class Subject:
    """The checked arguments of the page: a fitted model, its samples, their targets, table and row numbers."""

    model: BaseReduction
    X: Any
    y: Any
    table: pd.DataFrame | None
    row_numbers: Index
    image_shape: tuple[int, int] | None
    sample_weight: Array | None = None
    within: str = ""
    n_rows: int = 0
    recipe: ColumnRecipe | None = None

    @cached_property
    def columns(self) -> pd.DataFrame | None:
        """The table as its recipe reads it; `table` has the cells as they were written."""
        return self.table if self.table is None or self.recipe is None else read_columns(self.table, self.recipe)

    @cached_property
    def selection(self) -> Selection:
        """What the page shows: one for map, tables and heat maps, which refer to each other by position."""
        return select(self.model)

    @property
    def counts(self) -> Index:
        """How many samples each prototype has."""
        return np.bincount(self.model.labels_, minlength=len(self.model.prototypes_))

    @property
    def one_to_one(self) -> bool:
        """Whether every sample is its own prototype (pure dimensionality reduction)."""
        return bool(self.model.coupling_.shape[0] == self.model.coupling_.shape[1])

    @property
    def with_evidence(self) -> bool:
        """Whether the page has evidence of left-out samples: not if every sample is its own prototype."""
        return hasattr(self.model, "prototype_evidence_") and not self.one_to_one

    def target_names(self) -> list[str]:
        """Return the names of the targets, at most `MAX_TARGETS`."""
        if self.y is None and not hasattr(self.model, "prototype_targets_"):
            return []
        # From the user's own names to made-up ones.
        if isinstance(self.y, pd.DataFrame):
            names = [str(name) for name in self.y.columns]
        elif isinstance(self.y, pd.Series) and self.y.name is not None:
            names = [str(self.y.name)]
        elif getattr(self.model, "task_", None) == "regression":
            names = [target_name(self.model, place) for place in range(len(self.model.target_names_))]
        else:
            names = [f"y{place}" for place in range(np.shape(self.y)[1])] if np.ndim(self.y) > 1 else ["y0"]
        return (["target"] if names == ["y0"] else names)[:MAX_TARGETS]

    def target_columns(self) -> list[NDArray[Any]]:
        """Return the targets as given, one array per target."""
        if self.y is None:
            return []
        y = np.asarray(self.y, dtype=object).reshape(len(self.model.embedding_), -1)
        return list(y.T[:MAX_TARGETS])


class Selection(NamedTuple):
    """What the page shows: sample indices in drawing order, and prototype indices by decreasing weight."""

    samples: Index
    prototypes: Index


def select(model: BaseReduction) -> Selection:
    """Select samples in a fixed random order, so that no class lies on top, and the heaviest prototypes."""
    rng = np.random.default_rng(0)
    samples = rng.permutation(len(model.embedding_))[:MAX_SAMPLES]
    weights = model.prototype_weights_
    # If some must be omitted, ties are broken at random: the first rows may all be of one class.
    ties = rng.permutation(len(weights)) if len(weights) > MAX_PROTOTYPES else np.arange(len(weights))
    order = np.lexsort((ties, -weights))[: np.count_nonzero(weights)]
    return Selection(samples, order[:MAX_PROTOTYPES])


@dataclass(frozen=True)
class TargetView:
    """A target on the prototypes of the page: what the fit believes, and what left-out samples show, if they do."""

    believed: Distribution
    evidence: Distribution | None

    @property
    def shown(self) -> Distribution:
        """What the page shows first."""
        return self.evidence or self.believed

    def encode(self) -> Node:
        """Return what the page's script reads."""
        return self.shown.encode() | ({} if self.evidence is None else {"believed": self.believed.encode()})


def find_targets(subject: Subject) -> list[TargetView]:
    """Return every target on the prototypes of the page."""
    found = []
    for place, name in enumerate(subject.target_names()):
        asked = (subject.model, subject.y, subject.selection.prototypes, place, name)
        evidence = find_evidence(*asked) if subject.with_evidence else None
        found.append(TargetView(find_distribution(*asked, subject.sample_weight), evidence))
    return found


def encode_page(subject: Subject, found: list[TargetView], worst: Sequence[Criticism] = ()) -> Node:
    """Return everything that the page's script reads; `worst` are samples whose rows it shows besides."""
    model, selection, names = subject.model, subject.selection, subject.target_names()
    # Targets first: the script finds them by `nTargets`.
    colouring = Colouring(model, *selection, subject.with_evidence, subject.sample_weight)
    colourings = [colouring.encode_target(subject.y, place, name) for place, name in enumerate(names)]
    if subject.columns is not None:
        colourings += colouring.encode_columns(subject.columns, set(names))
    # Rows are stored for prototypes and criticisms only, other samples show their number.
    rows = [*find_nearest(model, subject.X, selection.prototypes), [each.sample for each in worst]]
    details = collect_rows(rows, subject)
    return {
        **_encode_places(subject),
        "rows": pack(subject.row_numbers[selection.samples], "u4"),
        "prototypes": {
            "number": selection.prototypes.tolist(),
            "weight": [float(f"{weight:.6g}") for weight in model.prototype_weights_[selection.prototypes]],
            "count": subject.counts[selection.prototypes].tolist(),
        },
        "evidence": encode_quality(model, selection.prototypes) if subject.with_evidence else None,
        "colourings": colourings,
        "nTargets": len(names),
        "nColumns": 0 if subject.table is None else subject.table.shape[1],
        "distributions": [each.encode() for each in found],
        "details": details | {"nearest": details["nearest"][:-1], "worst": details["nearest"][-1]},
        "apart": _find_contrasts(subject),
        "oneToOne": subject.one_to_one,
        "scale": _sample_colour_map(),
        "shapes": [None if corners is None else corners.round(4).tolist() for corners in SHAPES],
    }


def collect_rows(nearest: list[list[int]], subject: Subject) -> Node:
    """Return the rows that `nearest` names, each once, with their numbers, targets, cells and images."""
    table = subject.table
    # Neighbours are shared by many prototypes: store each row once and refer to its place.
    wanted = sorted({row for rows in nearest for row in rows})
    place = {row: k for k, row in enumerate(wanted)}
    node: Node = {
        "nearest": [[place[row] for row in rows] for rows in nearest],
        "rows": subject.row_numbers[wanted].tolist(),
        "targets": [
            ["not known" if pd.isna(column[row]) else cell_text(column[row]) for row in wanted]
            for column in subject.target_columns()
        ],
    }
    if table is not None:
        # A wide table is cut, so that the page stays small.
        part = table.iloc[wanted, : max(1, min(MAX_ROW_COLUMNS, MAX_CELLS // len(wanted)))]
        node["columns"] = [str(name) for name in part.columns]
        node["leftOut"] = table.shape[1] - part.shape[1]
        node["cells"] = [list_cells(table.iloc[:, c], wanted) for c in range(part.shape[1])]
        if not isinstance(table.index, pd.RangeIndex):  # the user's own names of the rows
            node["names"] = [cell_text(name) for name in part.index]
    if subject.image_shape is not None:
        node["images"] = _encode_images(subject.X[wanted], subject.image_shape)
    return node


def _encode_images(rows: Any, shape: tuple[int, int]) -> Node:
    pixels = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    low, high = float(pixels.min()), float(pixels.max())
    shades = np.round((pixels - low) / ((high - low) or 1.0) * 255)  # all pixels may be equal
    return {"height": shape[0], "width": shape[1], "pixels": pack(shades, "u1")}


def _find_contrasts(subject: Subject) -> list[list[tuple[str, str]]]:
    """Return what tells each prototype of the page from the rest; nothing without columns to name."""
    if subject.columns is None or subject.one_to_one:
        return []
    own = assign_samples(subject.model, "left_out")
    table = subject.columns.drop(columns=subject.target_names(), errors="ignore")
    return find_contrasts(table, own, subject.selection.prototypes, subject.sample_weight)


def _encode_places(subject: Subject) -> Node:
    """Encode coordinates as steps of 1/65534 of the map's box: below half a pixel even when zoomed in thirty times."""
    # The view that the page opens with comes first; that of the fit is a switch, if it differs.
    selection = subject.selection
    names = ["left_out", "fitted"] if hasattr(subject.model, "embedding_left_out_") else ["fitted"]
    found = [_find_places(subject, name) for name in names]
    shown = [(samples[selection.samples], marks[selection.prototypes]) for _, samples, marks in found]
    # One box around everything: all places are steps of the same grid, and the switch moves nothing else.
    everything = np.concatenate([part for pair in shown for part in pair])
    low, high = everything.min(axis=0), everything.max(axis=0)
    # The position of each prototype among those on the page, or their number if it is not among them.
    where = np.full(len(subject.model.prototypes_), len(selection.prototypes))
    where[selection.prototypes] = np.arange(len(selection.prototypes))
    nodes: list[Node] = []
    for name, (samples, marks) in zip(names, shown, strict=True):
        node: Node = {"labels": pack(where[assign_samples(subject.model, name)[selection.samples]], "u2")}
        for a, axis in enumerate("xy"):
            node[axis] = pack(quantise(samples[:, a], low[a], high[a]), "u2")
            node["p" + axis] = pack(quantise(marks[:, a], low[a], high[a]), "u2")
        nodes.append(node)
    view = found[0][0]
    return {
        "box": [float(low[0]), float(high[0]), float(low[1]), float(high[1])],
        "line": view.line,
        "axes": [*view.labels, *subject.target_names(), ""][:2],
        "places": nodes[0],
        "fittedPlaces": nodes[1] if len(nodes) > 1 else None,
    }


def _find_places(subject: Subject, name: str) -> tuple[View, Array, Array]:
    """Return the plane, the places of the samples on it, left out or fitted, and those of the prototypes."""
    model, view = subject.model, find_view(subject, name)
    # A sample that is its own prototype has one mark, which lies where the sample does.
    own = subject.one_to_one and name == "left_out"
    marks = view.prototypes(model.embedding_left_out_[model.prototype_medoids_] if own else None)
    return view, view.samples(name), marks


def find_view(subject: Subject, name: str = "left_out") -> View:
    """Return the plane of the map: always on the axes of the places that are shown first."""
    colours = colour_by_target(subject.model, subject.y, 0, name if subject.with_evidence else "fitted")
    return View(subject.model, colours)


def _sample_colour_map() -> list[list[int]]:
    from matplotlib import colormaps

    stops = 255 * colormaps[COLOUR_MAP](np.linspace(0, 1, 33))[:, :3]  # the script interpolates between these stops
    return [[round(float(part)) for part in stop] for stop in stops]


def list_prototypes(subject: Subject, found: Sequence[TargetView]) -> list[dict[str, Any]]:
    """Return the rows of the table of prototypes: the evidence, then what the fit believes."""
    model, prototypes, counts = subject.model, subject.selection.prototypes, subject.counts
    lines: list[dict[str, Any]] = [
        {
            "number": int(k),
            "weight": f"{100 * model.prototype_weights_[k]:.2f} %",
            "count": f"{counts[k]:,}",
            "medoid": int(subject.row_numbers[model.prototype_medoids_[k]]),
            "targets": [each.believed.describe(place) for each in found],
        }
        for place, k in enumerate(prototypes)
    ]
    if subject.with_evidence:
        table = model.prototype_evidence_.iloc[prototypes]
        for place, (line, (_, row)) in enumerate(zip(lines, table.iterrows(), strict=True)):
            line["nearby"] = f"{int(row['n_samples']):,}"
            line["evidence"] = [each.shown.describe(place) for each in found]
            texts = {name: f"{row[name]:.2f}".replace("-", "−") for name in SHOWN_QUALITY if name in row}
            if "purity low" in texts:
                texts["purity"] += f" ({texts.pop('purity low')} to {texts.pop('purity high')})"
            line["quality"] = list(texts.values())
            line["dubious"] = bool(row["dubious"])
    return lines


def describe_criticisms(subject: Subject, worst: Sequence[Criticism]) -> list[dict[str, Any]]:
    """Return the rows of the table of criticisms; `place` and `opens` are None for what the map does not draw."""
    samples, prototypes = ({int(each): place for place, each in enumerate(shown)} for shown in subject.selection)
    columns = subject.target_columns()
    nearest = np.array([each.prototype for each in worst], dtype=np.intp)
    expected = [find_evidence(subject.model, None, nearest, t, "") for t in range(len(columns))] if worst else []
    return [
        {
            **each._asdict(),
            "row": int(subject.row_numbers[each.sample]),
            "place": samples.get(each.sample),
            "opens": prototypes.get(each.prototype),
            "targets": [cell_text(column[each.sample]) for column in columns],
            "expected": [target.describe(k) for target in expected],
        }
        for k, each in enumerate(worst)
    ]
