"""What tells a prototype from the rest, in words: the columns in which its samples differ most from all others."""

from __future__ import annotations

from datetime import datetime, timezone

import numpy as np
import pandas as pd

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array, Index
from distreduce.report.columns import MAX_CATEGORIES, read_numbers
from distreduce.report.encode import cell_text

MAX_CONTRASTS = 5
MAX_COLUMNS = 2000
LEAST = 0.3  # differences, in standard deviations, that are worth a word

Contrast = tuple[Array, list[str]]  # size and text by prototype


def find_contrasts(
    table: pd.DataFrame, own: Index, prototypes: Index, sample_weight: Array | None = None
) -> list[list[tuple[str, str]]]:
    """Return names and texts of the columns that differ most, for each of the prototypes, at most five, largest first.

    They look like ("bmi", "high (31 against 26)") or ("sex", "female (92 % against 53 %)"): the mean or share of its
    `own` samples against that of all others. A difference counts in standard deviations of the column, and a category
    by its most over-represented level. Columns after the first 2,000 are omitted.
    """
    weights = np.ones(len(own)) if sample_weight is None else sample_weight
    found: list[tuple[str, Contrast]] = []
    for place in range(min(table.shape[1], MAX_COLUMNS)):
        column = table.iloc[:, place]
        numbers = read_numbers(column)
        if numbers is None:
            part = _compare_levels(column, own, prototypes, weights)
        else:
            part = _compare_numbers(*numbers, own, prototypes, weights)
        if part is not None:
            found.append((str(table.columns[place]), part))
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
    show = _date_text if kind == "date" else number_text
    words = ("early", "late") if kind == "date" else ("low", "high")
    texts = [
        f"{words[int(a > b)]} ({show(size * a, 3)} against {show(size * b, 3)})" if a != b else ""
        for a, b in zip(inside, outside, strict=True)
    ]
    return np.nan_to_num(np.abs(inside - outside) / spread), texts


def _compare_levels(column: pd.Series, own: Index, prototypes: Index, weights: Array) -> Contrast | None:
    codes, levels = pd.factorize(column.map(cell_text, na_action="ignore").astype(object))
    if not 2 <= len(levels) <= MAX_CATEGORIES:
        return None
    sizes, texts = np.zeros(len(prototypes)), [""] * len(prototypes)
    for code, level in enumerate(levels):
        values = np.where(codes < 0, np.nan, codes == code)
        inside, outside, spread = _average(values, own, prototypes, weights)
        gain = np.nan_to_num((inside - outside) / (spread or 1.0))
        for k in np.flatnonzero(gain > sizes):
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
