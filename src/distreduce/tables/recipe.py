"""The recipe: what becomes of each column, learned from one file and applied to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.tables.guess import counts_rows, guess_rule, pixel_rules
from distreduce.tables.rules import Category, Date, Dropped, Rule, Used
from distreduce.tables.target import Task

POLICIES = ("refuse", "impute", "drop")


@dataclass(frozen=True)
class Recipe:
    """Rules by column, and what is to be done with rows that have missing cells.

    Attributes
    ----------
    missing : {"refuse", "impute", "drop"}
        Refuse the file, fill the cells by the column's rule, or give such rows no place.
    """

    rules: tuple[Rule, ...]
    targets: tuple[str, ...]
    task: Task
    missing: str = "refuse"
    image_shape: tuple[int, int] | None = None

    @property
    def used(self) -> list[Used]:
        """Rules of the columns that are not left out."""
        return [rule for rule in self.rules if not isinstance(rule, Dropped)]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return [name for rule in self.used for name in rule.columns()]

    @property
    def as_text(self) -> list[str]:
        """Columns to be read as they are written."""
        return [rule.name for rule in self.used if isinstance(rule, Category | Date)]

    def matrix(self, table: pd.DataFrame, where: str) -> tuple[Array, NDArray[np.bool_]]:
        """X (n, d) and which rows are complete.

        Columns are found by name: their order is free and others do no harm. Rows that are not complete are NaN if
        `missing` is "drop".
        """
        absent = [rule.name for rule in self.used if rule.name not in table]
        if absent:
            listed = ", ".join(map(repr, absent[:10])) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
            raise InvalidInputError(
                f"{where} lacks the column{'s' * (len(absent) > 1)} {listed}; the model needs all it was fitted to."
            )
        X = np.empty((len(table), len(self.columns)))
        gaps = np.zeros((len(table), len(self.used)), dtype=bool)
        start = 0
        for position, rule in enumerate(self.used):
            values = rule.read(table[rule.name])
            with np.errstate(over="ignore", invalid="ignore"):  # refused below, by name
                block = rule.encode(values)
            X[:, start : start + block.shape[1]] = block
            gaps[:, position] = np.isnan(values)
            start += block.shape[1]
        self._refuse_overflow(X, where)
        return self._treated(X, gaps, where)

    def _refuse_overflow(self, X: Array, where: str) -> None:
        strange = ~np.isfinite(X).all(axis=0)
        if strange.any():
            name = self.columns[int(strange.argmax())]
            raise InvalidInputError(
                f"Column {name!r} of {where} has numbers too far from those of the fit to be scaled; correct them, or "
                "leave the cells empty."
            )

    def _treated(self, X: Array, gaps: NDArray[np.bool_], where: str) -> tuple[Array, NDArray[np.bool_]]:
        incomplete = np.asarray(gaps.any(axis=1))
        if self.missing == "refuse" and incomplete.any():
            raise InvalidInputError(_gaps_sentence(dict(zip(self.used, gaps.sum(axis=0), strict=True)), where))
        if self.missing == "impute":
            return X, np.ones(len(X), dtype=bool)
        X[incomplete] = np.nan
        return X, np.asarray(~incomplete)


def learn_recipe(
    features: pd.DataFrame,
    targets: Sequence[str],
    task: Task,
    where: str,
    *,
    rows: NDArray[np.bool_] | None = None,
    missing: str = "refuse",
    categories: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    image_shape: tuple[int, int] | None = None,
) -> Recipe:
    """Look at every column and decide; scales, medians and levels are those of all rows that are kept.

    Parameters
    ----------
    features : DataFrame
        All rows of the file.
    rows : (n,) array of bool, optional
        Which of them are kept; by default all.
    categories, leave_out : sequence of str
        Columns to take as categories whatever they hold, and columns not to use.
    """
    _check_names([*categories, *leave_out], features, where)
    kept = features if rows is None else features[rows]
    if image_shape is not None:
        return Recipe(tuple(pixel_rules(kept)), tuple(targets), task, missing, image_shape)
    left_out = {str(name): "counts rows" for name in features if name not in categories and counts_rows(features[name])}
    left_out |= dict.fromkeys(leave_out, "asked for")
    rules = _rules(kept, categories, left_out)
    if missing == "drop":
        gaps = [np.isnan(rule.read(kept[rule.name])) for rule in rules if not isinstance(rule, Dropped)]
        complete = ~np.any(gaps, axis=0) if gaps else np.ones(len(kept), dtype=bool)
        if not complete.any():
            raise InvalidInputError(
                f"Every row of {where} has a missing value, so none would be left: --missing impute."
            )
        rules = _rules(kept[complete], categories, left_out)
    if all(isinstance(rule, Dropped) for rule in rules):
        why = "; ".join(f"{rule.name}: {rule.describe()}" for rule in rules[:5])
        raise InvalidInputError(f"No column of {where} can be used besides the target ({why}).")
    return Recipe(tuple(rules), tuple(targets), task, missing)


def _rules(features: pd.DataFrame, categories: Sequence[str], left_out: dict[str, str]) -> list[Rule]:
    """`left_out` are names, each with the reason."""
    return [
        Dropped(str(name), left_out[str(name)])
        if name in left_out
        else guess_rule(column, as_category=name in categories)
        for name, column in features.items()
    ]


def _check_names(names: Sequence[str], features: pd.DataFrame, where: str) -> None:
    for name in names:
        if name not in features:
            raise InvalidInputError(
                f"{where} has no feature {name!r}; it has {', '.join(map(str, features.columns[:30]))}."
            )


def _gaps_sentence(counts: dict[Used, int], where: str) -> str:
    found = {rule.name: int(count) for rule, count in counts.items() if count}
    listed = ", ".join(f"{name!r} ({count})" for name, count in list(found.items())[:8])
    more = f" and {len(found) - 8} more columns" if len(found) > 8 else ""
    return (
        f"{where} has missing values in {listed}{more}. Fit with --missing impute to fill them (medians, and a column "
        "that says so), or with --missing drop to leave those rows out."
    )
