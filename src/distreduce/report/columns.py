"""What the columns of a table say: their cells on the page, colours of the map, and what tells a prototype apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array, Index
from distreduce.estimators._base import BaseReduction
from distreduce.interop._predictor import Node, pack
from distreduce.plotting.palette import OKABE_ITO, class_palette, class_shapes, colour_by_target
from distreduce.plotting.targets import average_on_prototypes, prototype_means, scale_edges
from distreduce.tables.cells import to_levels
from distreduce.tables.columns import Category, Date, Number
from distreduce.tables.recipe import ColumnRecipe

LEAST_COLUMNS = 36
MAX_VALUES = 400_000  # of all columns together: two megabytes
MAX_CATEGORIES = 60  # a text column with more distinct values holds names, not categories
NAMED = len(OKABE_ITO) - 1  # all other categories share the last colour
YEARS = (1500, 2100)  # whole numbers of a column that lies between these are years, without thousands marks


@dataclass(frozen=True)
class Colouring:
    """Encode the values of all samples as colours of the samples and prototypes that the page shows."""

    model: BaseReduction
    samples: Index
    prototypes: Index
    with_evidence: bool = False
    sample_weight: Array | None = None

    def _average(self, values: Array) -> Array:
        return average_on_prototypes(self.model, values, empty=np.nan, sample_weight=self.sample_weight)

    def encode_target(self, y: ArrayLike | None, target: int, name: str) -> Node:
        """Encode a target with what left-out samples show on the prototypes, if they do, and what the fit believes."""
        fitted = self._encode_view(y, target, name, "fitted")
        if not self.with_evidence:
            return fitted
        return self._encode_view(y, target, name, "left_out") | {"believed": fitted["prototypes"]}

    def _encode_view(self, y: ArrayLike | None, target: int, name: str, places: str) -> Node:
        """Encode a target, coloured as in :mod:`distreduce.plotting`; the page fades mixed classes."""
        # The kind decides what the script needs: nothing, numbers on a scale, or classes with shares.
        colours = colour_by_target(self.model, y, target, places)
        if colours.sample_values is None or colours.prototype_values is None:
            return {"name": "", "kind": "none"}
        if colours.classes is None:
            return self._encode_numbers(name, colours.sample_values, colours.prototype_values)
        codes = colours.sample_values
        shares = (
            prototype_means(self.model, places)
            if hasattr(self.model, "prototype_targets_")
            else self._average(_encode_one_hot(codes, len(colours.classes)))
        )
        return self._encode_classes(name, codes, [cell_text(label) for label in colours.classes], shares)

    def encode_columns(self, table: pd.DataFrame, leave_out: set[str]) -> list[Node]:
        """Encode the first columns that colours can show: the fewer samples, the more columns."""
        most = max(LEAST_COLUMNS, MAX_VALUES // max(len(self.samples), 1))
        columns = ((str(name), table.iloc[:, place]) for place, name in enumerate(table.columns))
        nodes = (self._encode_column(name, column) for name, column in columns if name not in leave_out)
        return list(islice(filter(None, nodes), most))

    def _encode_column(self, name: str, column: pd.Series) -> Node | None:
        numbers = read_numbers(column)
        if numbers is None:
            return self._encode_categories(name, column)
        values, kind = numbers
        known = values[~np.isnan(values)]
        # Halves, because the range of very large numbers overflows; the script cannot draw such a scale either.
        if not len(known) or not 0 < known.max() / 2 - known.min() / 2 < np.finfo(np.float64).max / 2:
            return None
        return self._encode_numbers(name, values, self._average(values[:, None])[:, 0], kind)

    def _encode_categories(self, name: str, column: pd.Series) -> Node | None:
        texts = column.map(cell_text, na_action="ignore").astype(object)
        counts = texts.value_counts()
        if not 2 <= len(counts) <= MAX_CATEGORIES:
            return None
        # The most frequent categories keep their colours; the alphabet breaks ties, so that pages repeat.
        named = sorted(counts.index, key=lambda text: (-counts[text], text))
        rest = len(named) - NAMED
        if rest > 1:  # a single further category may as well have the last colour itself
            named, rest_name = named[:NAMED], f"{rest} others"
            texts = texts.where(texts.isin(named) | texts.isna(), rest_name)
            named.append(rest_name)
        codes = pd.Index(named).get_indexer(pd.Index(texts)).astype(np.float64)
        codes[codes < 0] = np.nan  # −1: get_indexer did not find it, so it is missing
        return self._encode_classes(name, codes, named, self._average(_encode_one_hot(codes, len(named))))

    def _encode_numbers(self, name: str, values: Array, means: Array, kind: str = "number") -> Node:
        known = values[np.isfinite(values)] if np.isfinite(values).any() else means
        low, high = float(known.min()), float(known.max())
        # Dates (in ms), large and tiny numbers, and those that hardly differ, need more than seven digits.
        single = kind != "date" and high - low > 1e-30 and max(-low, high) < min(100 * (high - low), 2**24)
        return {
            "name": name, "kind": kind, "low": low, "high": high, "shown": scale_edges(known),
            "samples": pack(values[self.samples], "f4" if single else "f8"),
            "prototypes": [None if np.isnan(mean) else float(mean) for mean in means[self.prototypes]],
        }  # fmt: skip

    def _encode_classes(self, name: str, codes: Array, labels: list[str], shares: Array) -> Node:
        from matplotlib.colors import to_hex

        # Palette and shapes come along: the script need not know the rules of plotting.
        kept = codes[self.samples]
        return {
            "name": name, "kind": "class", "labels": labels,
            "palette": [to_hex(colour) for colour in class_palette(len(labels))],
            "shapes": class_shapes(len(labels)).tolist(),
            "samples": pack(np.where(np.isnan(kept), MISSING, kept), "u2"),
            "prototypes": pack(np.clip(shares[self.prototypes], 0, 1), "f4"),
        }  # fmt: skip


def read_numbers(column: pd.Series) -> tuple[Array, str] | None:
    """Return a column as numbers, NaN where unknown, and "number", "year" or "date" (ms); None for categories."""
    types = pd.api.types
    if types.is_datetime64_any_dtype(column):
        moments = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy("datetime64[ms]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), "date"
    if not types.is_numeric_dtype(column) or types.is_bool_dtype(column) or types.is_complex_dtype(column):
        return None
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = values[np.isfinite(values)]
    years = len(known) and ((known >= YEARS[0]) & (known <= YEARS[1]) & (known % 1 == 0)).all()
    return np.where(np.isfinite(values), values, np.nan), "year" if years else "number"


def read_columns(table: pd.DataFrame, recipe: ColumnRecipe) -> pd.DataFrame:
    """Return the table with its columns as the recipe reads them, such as texts that are dates or have a unit."""
    found = table.copy(deep=False)
    for rule in recipe.used:
        if isinstance(rule, Category) and rule.name in table:
            found[rule.name] = to_levels(table[rule.name])
        elif isinstance(rule, Number) and rule.name in table and read_numbers(table[rule.name]) is None:
            codes = rule.read(table[rule.name])
            days = isinstance(rule, Date)
            found[rule.name] = pd.to_datetime((codes * 864e5).round(), unit="ms", errors="coerce") if days else codes
    return found


def _encode_one_hot(codes: Array, n_classes: int) -> Array:
    return np.where(np.isnan(codes)[:, None], np.nan, codes[:, None] == np.arange(n_classes))


MAX_CONTRASTS = 5
MAX_COLUMNS = 2000
MOSTLY = 0.5  # share of missing cells that is worth a word: of few samples a single one may lack what others have
LEAST = 0.3  # differences, in standard deviations, that are worth a word

Contrast = tuple[Array, list[str]]  # size and text by prototype


def find_contrasts(
    table: pd.DataFrame, own: Index, prototypes: Index, sample_weight: Array | None = None
) -> list[list[tuple[str, str]]]:
    """Return names and texts of the columns that differ most, for each of the prototypes, at most five, largest first.

    They look like ("bmi", "high (31 against 26)") or ("sex", "female (92 % against 53 %)"): the mean or share of its
    `own` samples against that of all others. A difference counts in standard deviations of the column, and a category
    by its most over-represented level; cells that are mostly missing count as a level.
    Columns after the first 2,000 are omitted.
    """
    groups = own, prototypes, np.ones(len(own)) if sample_weight is None else sample_weight
    found: list[tuple[str, Contrast]] = []
    for place in range(min(table.shape[1], MAX_COLUMNS)):
        column = table.iloc[:, place]
        numbers = read_numbers(column)
        part = (
            _compare_levels(column, *groups) if numbers is None else _compare_numbers(numbers[0], numbers[1], *groups)
        )
        missing = column.isna().to_numpy()
        gaps = _compare_shares({"missing": missing.astype(np.float64)}, *groups, MOSTLY) if missing.any() else None
        found += [(str(table.columns[place]), each) for each in (part, gaps) if each is not None]
    if not found:
        return [[] for _ in prototypes]
    sizes = np.array([sizes for _, (sizes, _) in found])
    best = np.argsort(-sizes, axis=0, kind="stable")[:MAX_CONTRASTS]
    return [
        [(found[c][0], found[c][1][1][k]) for c in best[:, k] if sizes[c, k] >= LEAST] for k in range(len(prototypes))
    ]


def _compare_numbers(values: Array, kind: str, own: Index, prototypes: Index, weights: Array) -> Contrast | None:
    known = ~np.isnan(values)
    size = np.abs(values[known]).max(initial=0.0)
    inside, outside, spread = _average(values / (size or 1.0), own, prototypes, weights)
    if not spread > 0:
        return None
    show = {"date": _date_text, "year": "{:.0f}".format}.get(kind, number_text)
    words = ("early", "late") if kind == "date" else ("low", "high")
    texts = [
        f"{words[int(a > b)]} ({show(size * a, 3)} against {show(size * b, 3)})" if abs(a - b) > 0 else ""
        for a, b in zip(inside, outside, strict=True)
    ]
    return np.nan_to_num(np.abs(inside - outside) / spread), texts


def _compare_levels(column: pd.Series, own: Index, prototypes: Index, weights: Array) -> Contrast | None:
    codes, levels = pd.factorize(column.map(cell_text, na_action="ignore").astype(object))
    if not 2 <= len(levels) <= MAX_CATEGORIES:
        return None
    shares = {level: np.where(codes < 0, np.nan, codes == code) for code, level in enumerate(levels)}
    return _compare_shares(shares, own, prototypes, weights)


def _compare_shares(
    shares: dict[str, Array], own: Index, prototypes: Index, weights: Array, least: float = 0.0
) -> Contrast:
    sizes, texts = np.zeros(len(prototypes)), [""] * len(prototypes)
    for level, values in shares.items():
        inside, outside, spread = _average(values, own, prototypes, weights)
        gain = np.nan_to_num((inside - outside) / (spread or 1.0))
        for k in np.flatnonzero((gain > sizes) & (inside >= least)):
            text = f"{level} ({inside[k]:.0%} against {outside[k]:.0%})"
            sizes[k], texts[k] = gain[k], text.replace("%", "\N{NO-BREAK SPACE}%")
    return sizes, texts


def _average(values: Array, own: Index, prototypes: Index, weights: Array) -> tuple[Array, Array, float]:
    """Return the means over the samples of each prototype and over all others, and the standard deviation of all."""
    known = ~np.isnan(values) & (weights > 0)
    values, own, weights = values[known], own[known], weights[known]
    size = int(max(prototypes.max(initial=0), own.max(initial=0))) + 1
    mass, sums = (np.bincount(own, weights=part, minlength=size)[prototypes] for part in (weights, weights * values))
    total, mean = weights.sum(), float(np.average(values, weights=weights)) if len(values) else 0.0
    rest = np.where(total - mass > 1e-12 * total, total - mass, np.nan)  # NaN for a prototype with all samples, or none
    inside, outside = sums / np.where(mass > 0, mass, np.nan), (mean * total - sums) / rest
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weights))) if len(values) else 0.0
    return inside, outside, spread


def _date_text(moment: float, _: int) -> str:
    return datetime.fromtimestamp(moment / 1000, timezone.utc).date().isoformat()


MISSING = 65535  # the sixteen-bit code of a missing value
LONGEST_TEXT = 200


def quantise(values: Array, low: float, high: float) -> NDArray[np.uint16]:
    """Return numbers as steps 0 … 65534 from low to high, `MISSING` where they are NaN or infinite."""
    known = np.isfinite(values)
    half = (high / 2 - low / 2) or 1.0  # halves: the difference of two large numbers may overflow
    share = (np.where(known, values, low) / 2 - low / 2) / half
    return np.where(known, np.round(np.clip(share, 0, 1) * (MISSING - 1)), MISSING).astype(np.uint16)


def list_cells(column: pd.Series, rows: Sequence[int]) -> list[str]:
    """Return some cells of a column as people read them: years without thousands marks."""
    numbers = read_numbers(column)
    if numbers is None or numbers[1] != "year":
        return [cell_text(value) for value in column.iloc[rows].tolist()]
    return ["–" if np.isnan(year) else f"{year:.0f}" for year in numbers[0][rows]]


def cell_text(value: Any) -> str:
    """Return one value of a table as people read it."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number_text(float(value))
    # A date without a time is shown as a date.
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second or value.microsecond):
        return value.date().isoformat()
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
