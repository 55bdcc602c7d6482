"""The recipe of a table: how each column is encoded, learned from one file and applied to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.estimators._targets import Task
from distreduce.exceptions import InvalidInputError
from distreduce.tables.columns import (
    COMMAND_LINE,
    Advice,
    Category,
    Column,
    Date,
    Dropped,
    Number,
    Used,
    guess_column,
    is_row_number,
    pixel_columns,
)
from distreduce.tables.findings import FAR, Findings, list_counts

POLICIES = ("impute", "drop", "refuse")


@dataclass(frozen=True)
class ColumnRecipe:
    """How the columns of a table become X."""

    rules: tuple[Column, ...]  # one per column of the file, targets excluded
    targets: tuple[str, ...]
    task: Task | None  # None if the recipe belongs to no model
    missing: str = "impute"  # missing cells are filled, or "drop" leaves their rows out, or "refuse" raises an error
    image_shape: tuple[int, int] | None = None  # rows and columns
    id_column: str | None = None  # names of rows, which are carried into every table and are not a feature
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by name of the models fitted to X, if known

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
        """Columns that must be read as written."""
        ids = [] if self.id_column is None else [self.id_column]
        return ids + [rule.name for rule in self.used if isinstance(rule, Category | Date)]

    def matrix(
        self, table: pd.DataFrame, where: str, findings: Findings | None = None
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return X (n, d), and which rows are complete; add to `findings` what the user should know about the cells.

        Columns are found by name: their order does not matter, and others are ignored. If `missing` is "drop", rows
        that are not complete are NaN.
        """
        self._reject_absent(table, where)
        findings = Findings() if findings is None else findings
        findings.n_rows += len(table)
        X = np.empty((len(table), len(self.columns)))
        gaps, start = np.zeros((len(table), len(self.used)), dtype=bool), 0
        for position, rule in enumerate(self.used):
            codes = rule.read(table[rule.name])
            gaps[:, position] = np.isnan(codes)
            with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported below, with the column
                block = rule.encode(codes)
            X[:, start : start + block.shape[1]] = block
            start += block.shape[1]
            if isinstance(rule, Category) and (unknown := rule.count_unknown(table[rule.name], codes)):
                findings.unknown.setdefault(rule.name, Counter()).update(unknown)
            if type(rule) is Number:
                findings.far[rule.name] += int((np.abs(block[:, 0]) > FAR).sum())
                if rule.unit:
                    findings.units[rule.name] = rule.unit
                    findings.numbers[rule.name] += int((~np.isnan(codes)).sum())
                    findings.with_unit[rule.name] += rule.count_units(table[rule.name])
        self._reject_overflow(X, where)  # before NaN marks incomplete rows
        found = dict(zip((rule.name for rule in self.used), gaps.sum(axis=0).tolist(), strict=True))
        findings.missing.update({name: count for name, count in found.items() if count})
        incomplete = np.asarray(gaps.any(axis=1))
        if self.missing == "impute":  # encode has filled the gaps
            return X, np.ones(len(X), dtype=bool)
        if self.missing == "refuse" and incomplete.any():
            raise InvalidInputError(
                f"{where} has missing values in {list_counts(findings.missing)}. Fit with --missing impute to fill "
                "them (medians, and a column that marks them), or with --missing drop to leave those rows out."
            )
        X[incomplete] = np.nan
        return X, np.asarray(~incomplete)

    def level_novelty(self, X: Array, seen: Array) -> Array:
        """P-value of each row of X (n,) against "its levels are like those of the rows `seen`"; 1 if all are known.

        A level that the fit did not know is near every other one in X, whose columns of that category are all zero.
        Among n rows, s have a level that no other row has: the p-value of a new level is (1 + s) / (1 + n), the
        conformal one. The smallest over all categories counts.
        """
        found, start = np.ones(len(X)), 0
        for rule in self.used:
            end = start + len(rule.columns())
            if isinstance(rule, Category) and not rule.other:
                single = (np.count_nonzero(seen[:, start:end], axis=0) == 1).sum()
                known = X[:, start:end].any(axis=1)
                found = np.minimum(found, np.where(known, 1.0, (1 + single) / (1 + len(seen))))
            start = end
        return found

    def _reject_absent(self, table: pd.DataFrame, where: str) -> None:
        absent = [rule.name for rule in self.used if rule.name not in table]
        if absent:
            listed = ", ".join(map(repr, absent[:10])) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
            raise InvalidInputError(
                f"{where} lacks the column{'s' * (len(absent) > 1)} {listed}; the model needs all it was fitted to."
            )

    def _reject_overflow(self, X: Array, where: str) -> None:
        infinite = ~np.isfinite(X).all(axis=0)
        if infinite.any():
            name = self.columns[int(infinite.argmax())]
            raise InvalidInputError(
                f"Column {name!r} of {where} has numbers too far from those of the fit to be scaled; correct them, or "
                "leave the cells empty."
            )


def learn_recipe(
    features: pd.DataFrame,
    targets: Sequence[str],
    task: Task | None,
    where: str,
    *,
    rows: NDArray[np.bool_] | None = None,
    missing: str = "impute",
    categories: Sequence[str] = (),
    leave_out: Sequence[str] | Mapping[str, str] = (),
    keep: Sequence[str] = (),
    image_shape: tuple[int, int] | None = None,
    advice: Advice = COMMAND_LINE,
) -> ColumnRecipe:
    """Guess the kind of every column; scales, medians and levels are those of the `rows` that are kept.

    `features` are all rows of the file `where`. `categories` are columns to take as such whatever they hold,
    `leave_out` those to leave out (and why), `keep` those to use although they number the rows. With an `image_shape`
    the features are pixels. `advice` says how the user asks for a category, or to leave a column out or keep it.
    """
    for name in (*categories, *leave_out, *keep):
        if name not in features:
            raise InvalidInputError(
                f"{where} has no feature {name!r}; it has {', '.join(map(str, features.columns[:30]))}."
            )
    kept = features if rows is None else features[rows]
    if image_shape is not None:  # no pixel is left out, so that the page can draw the images
        return ColumnRecipe(tuple(pixel_columns(kept)), tuple(targets), task, missing, image_shape)
    # Row numbers are recognised in the whole file: within some of its rows they are not consecutive any more.
    reasons = {
        str(name): f"numbers the rows; {advice[2].format(str(name))} uses it"
        for name in features
        if name not in (*categories, *keep) and is_row_number(features[name])
    }
    # The user's word comes last: it replaces the reason found above.
    reasons |= leave_out if isinstance(leave_out, Mapping) else dict.fromkeys(leave_out, "asked for")
    rules = _guess_columns(kept, categories, reasons, advice)
    # Dropping rows changes scales and levels: find the complete rows by a first guess, then guess again.
    if missing == "drop":
        gaps = [np.isnan(rule.read(kept[rule.name])) for rule in rules if not isinstance(rule, Dropped)]
        complete = ~np.any(gaps, axis=0) if gaps else np.ones(len(kept), dtype=bool)
        if not complete.any():
            raise InvalidInputError(
                f"Every row of {where} has a missing value, so none would be left: --missing impute."
            )
        rules = _guess_columns(kept[complete], categories, reasons, advice)
    if all(isinstance(rule, Dropped) for rule in rules):
        why = "; ".join(f"{rule.name}: {rule.describe()}" for rule in rules[:5])
        raise InvalidInputError(f"No column of {where} can be used besides the target ({why}).")
    return ColumnRecipe(tuple(rules), tuple(targets), task, missing)


def _guess_columns(
    features: pd.DataFrame, categories: Sequence[str], reasons: dict[str, str], advice: Advice
) -> list[Column]:
    """Guess all columns except those in `reasons`, which says why they are left out."""
    return [
        Dropped(name=str(name), reason=reasons[str(name)])
        if name in reasons
        else guess_column(column, as_category=name in categories, advice=advice)
        for name, column in features.items()
    ]
