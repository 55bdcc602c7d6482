"""The recipe of a table: how each column is encoded, learned from one file and applied to others.

recipe.json holds it as plain JSON; every value is checked when it is read back.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.tensor_file import RefusedError, require
from distreduce._utils.text import did_you_mean, list_words
from distreduce._utils.typing import Array
from distreduce.estimators._targets import Task
from distreduce.exceptions import InvalidCellError, InvalidInputError, ModelFileError
from distreduce.tables.cells import DATE_FORMATS
from distreduce.tables.columns import (
    COMMAND_LINE,
    MAX_LEVELS,
    MAX_RARE,
    Advice,
    Boolean,
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
COLUMNS_BY_NAME = ("categories", "leave_out", "keep")  # parameters of a TablePreparer


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
    given: Mapping[str, list[str]] = field(default_factory=dict)  # what a TablePreparer was told of columns

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
            if isinstance(rule, Date) and (later := rule.count_later(codes)):
                findings.later[rule.name] += later
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

    def describe_missing(self, findings: Findings) -> str:
        """Say which missing cells are filled, and which are a level."""
        levels, texts = {rule.name: rule.flag for rule in self.used if isinstance(rule, Category)}, []
        for fate, flag in (("filled", None), ('a level of their own, "missing"', True), ("none of the levels", False)):
            part = {name: count for name, count in findings.missing.items() if levels.get(name) == flag}
            texts += [f"Missing cells are {fate}: {list_counts(part)}."] if part else []
        return " ".join(texts)

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
            hint = did_you_mean(absent[0], [name for name in table if name not in {rule.name for rule in self.rules}])
            what = f"column{'s' * (len(absent) > 1)} {listed}"
            raise InvalidInputError(f"{where} lacks the {what}. {hint}The model needs all that it was fitted to.")

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
    found: list[Column] = []
    errors: dict[str, InvalidCellError] = {}
    for name, column in features.items():
        try:
            found.append(
                Dropped(name=str(name), reason=reasons[str(name)])
                if name in reasons
                else guess_column(column, as_category=name in categories, advice=advice)
            )
        except InvalidCellError as error:
            errors[str(name)] = error
    if errors:
        (_, first), *others = errors.items()
        more = f" Such cells are also in {list_words([name for name, _ in others])}." if others else ""
        raise InvalidCellError(f"{first}{more}", first.row) from first
    return found


FORMAT, VERSION = "distreduce recipe", 1
MAX_BYTES = 64 * 2**20
KINDS: dict[str, Any] = {rule.kind: rule for rule in (Number, Boolean, Category, Date, Dropped)}


def _is_finite(value: Any) -> bool:
    """Return whether it is a number that float64 can hold; JSON allows integers of any length."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


# The test that a field of a rule must pass, by its name.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str), "reason": lambda value: isinstance(value, str),
    "unit": lambda value: isinstance(value, str),
    "layout": lambda value: isinstance(value, str) and value in DATE_FORMATS,
    "center": _is_finite, "fill": _is_finite, "scale": _is_positive,
    "flag": lambda value: isinstance(value, bool), "other": lambda value: isinstance(value, bool),
    # At most as many as a fit keeps: each becomes a column of X, in memory.
    "levels": lambda value: _are_texts(value) and len(value) <= MAX_LEVELS and len(set(value)) == len(value),
    "rare": lambda value: value == [] or (_are_texts(value) and len(value) <= MAX_RARE),
    "last": lambda value: value is None or _is_finite(value),
    "cycles": lambda value: isinstance(value, list) and all(map(_is_positive, value)),
}  # fmt: skip


def write_recipe(recipe: ColumnRecipe, path: Path) -> None:
    plain = ("task", "targets", "missing", "image_shape", "id_column", "files", "given")
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, **{name: getattr(recipe, name) for name in plain}}
    content["columns"] = [{"kind": rule.kind, **asdict(rule)} for rule in recipe.rules]
    # allow_nan=False: NaN is not JSON, and no rule may hold it.
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_recipe(path: Path) -> ColumnRecipe:
    """Read what :func:`write_recipe` wrote; raise ModelFileError with the reason for anything else."""
    try:
        # A recipe may come from a stranger: bound the memory, and check every field.
        require(path.stat().st_size <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
        return _parse_recipe(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ModelFileError(f"There is no {path}; name a folder that `distreduce fit` wrote.") from error
    except (RefusedError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path} is not a recipe of distreduce ({error}); fit again.") from error


def _parse_recipe(content: Any) -> ColumnRecipe:
    require(isinstance(content, dict) and content.get("format") == FORMAT, "its format is another one")
    version = content.get("version")
    require(version == VERSION, f"its version is {version!r}, this distreduce reads {VERSION}")
    require(content.get("task") in ("regression", "classification", None), "its task is unknown")
    require(content.get("missing") in POLICIES, "its policy for missing values is unknown")
    # JSON has lists where the recipe has tuples.
    targets, shape, columns = content.get("targets"), content.get("image_shape"), content.get("columns")
    require(_are_texts(targets) or (targets == [] and content.get("task") is None), "it has no targets")
    valid = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int and side > 0 for side in shape)
    require(shape is None or valid, "its image shape is not two positive integers")
    require(isinstance(columns, list), "it has no columns")
    id_column, files = content.get("id_column"), content.get("files", {})  # older recipes have neither
    require(id_column is None or isinstance(id_column, str), "its id column is not a name")
    require(isinstance(files, dict) and all(isinstance(sha, str) for sha in files.values()), "its files are not text")
    given = content.get("given", {})
    known = isinstance(given, dict) and set(given) <= set(COLUMNS_BY_NAME) and all(map(_are_texts, given.values()))
    require(known, "its parameters are not names of columns")
    rules = tuple(_parse_rule(column) for column in columns)
    # Together: X needs a column, and columns are found by name.
    require(any(not isinstance(rule, Dropped) for rule in rules), "it uses no column")
    require(len({rule.name for rule in rules}) == len(rules), "it names a column twice")
    image_shape = (shape[0], shape[1]) if shape else None
    task, missing = content.get("task"), content["missing"]
    return ColumnRecipe(rules, tuple(targets), task, missing, image_shape, id_column, files, given)


def _parse_rule(content: Any) -> Column:
    require(isinstance(content, Mapping) and str(content.get("kind")) in KINDS, "it has a column of an unknown kind")
    kind = KINDS[content["kind"]]
    names = {field.name for field in fields(kind)}
    # Exactly the fields of the class: others would reach its constructor. Older recipes lack three of them.
    given = set(content) - {"kind"}
    require(
        given <= names <= given | {"unit", "rare", "last"},
        f"a column of kind {kind.kind!r} has other fields than it should",
    )
    for name in given:
        require(CHECKS[name](content[name]), f"{name!r} of column {content.get('name')!r} is {content[name]!r:.40}")
    return kind(**{name: _convert(content[name]) for name in given})


def _convert(value: Any) -> Any:
    """Return integers as floats, because they may be too long for NumPy, and lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_convert, value))
    return float(value) if type(value) is int else value
