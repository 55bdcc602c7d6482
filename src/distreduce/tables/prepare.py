"""From a file to X and y, with everything that was decided on the way, and columns that give the target away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.text import count_of, list_words
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError
from distreduce.mapping.folds import are_copies, find_noisy_copies
from distreduce.sharding.merge import merge_duplicates
from distreduce.tables.aside import Aside, AsideValues
from distreduce.tables.cells import find_unknown, is_number, to_text
from distreduce.tables.columns import MAX_LEVELS, MISSING, Category, Date, Number
from distreduce.tables.findings import Findings, list_counts
from distreduce.tables.formats import TextLayout
from distreduce.tables.reading import read_table
from distreduce.tables.recipe import ColumnRecipe, learn_recipe
from distreduce.tables.target import Target, read_target
from distreduce.tables.text_file import AS_FOUND

NOTHING_ASIDE = Aside()
FEW_OF_A_CLASS = 5  # rows below which a class is named
FEW_SUMMANDS = 5
ROWS_PER_NAME = 20  # at most, in the mean: more rows would belong to a place or a brand
MAX_CODE, MIN_ROWS = 6, 60  # distinct whole numbers that may be codes, in at least so many rows


@dataclass(frozen=True)
class PreparedTable:
    """A file ready for the estimators, and what the user should know."""

    table: pd.DataFrame  # the rows as written, targets last
    recipe: ColumnRecipe
    target: Target
    X: Array  # all rows; NaN in those that are not usable
    usable: NDArray[np.bool_]  # complete or filled and, if asked for, with a target
    notes: tuple[str, ...]
    aside: AsideValues = AsideValues()

    @cached_property
    def known(self) -> Index:
        """Usable rows with a target and, if there are weights, a positive one."""
        weights = self.aside.weights
        return np.flatnonzero(self.usable & self.target.known & (True if weights is None else weights > 0))

    @cached_property
    def copies(self) -> Index:
        """For each row, the first of the known ones that it is a copy of: equal features and targets.

        Rows with equal features whose targets mostly differ are repeated measurements, not copies. Rows with nearly
        equal features are copies if their targets are alike.
        """
        found, rows = np.arange(len(self.usable)), self.known
        X, values, ones = self.X[rows], self.target.values(rows), np.ones(len(rows))
        is_class = self.target.task == "classification"
        codes = pd.factorize(values)[0][:, None] if is_class else values.reshape(len(rows), -1)
        codes = codes / np.maximum(np.ptp(codes.astype(np.float64), axis=0), np.finfo(float).tiny)
        sites = merge_duplicates(X, None, ones).group
        # One column for each class: codes of classes have no distances.
        targets = (codes == np.unique(codes)).astype(np.float64) if is_class else codes
        groups = find_noisy_copies(X, sites, targets)
        if groups is None:
            if not are_copies(sites, ones.astype(np.intp), codes):
                return found
            groups = merge_duplicates(X, codes, ones).group
        first = np.full(int(groups.max(initial=-1)) + 1, len(found))
        np.minimum.at(first, groups, rows)
        found[rows] = first[groups]
        return found


def prepare(
    path: Path,
    targets: Sequence[str],
    *,
    task: str = "auto",
    missing: str = "impute",
    unlabelled: str = "keep",
    categories: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    keep: Sequence[str] = (),
    layout: TextLayout = AS_FOUND,
    id_column: str | None = None,
    aside: Aside = NOTHING_ASIDE,
) -> PreparedTable:
    """Read a file, guess the kinds of its columns, and build X and y; see ``distreduce fit --help``."""
    table = read_table(path, targets, categories, layout=layout, id_column=id_column)
    target = read_target(table.targets, task, path.name)
    aside.check(table.frame, target.names, path.name)
    not_features = {name: reason for name, reason in aside.not_features.items() if name in table.features}
    labelled = target.known if unlabelled == "drop" else np.ones(len(table.features), dtype=bool)
    recipe = learn_recipe(
        table.features, target.names, target.task, path.name, rows=labelled, missing=missing, categories=categories,
        leave_out=dict.fromkeys(leave_out, "asked for") | not_features, keep=keep, image_shape=table.image_shape,
    )  # fmt: skip
    if table.ids is not None:
        recipe = replace(recipe, id_column=str(table.ids.name))
    if aside.time is not None:  # later rows are what such a fit is for
        rules = (replace(rule, last=None) if isinstance(rule, Date) else rule for rule in recipe.rules)
        recipe = replace(recipe, rules=tuple(rules))
    # Rows that are left out stay in X as NaN, so that its rows are those of the file.
    X = np.full((len(labelled), len(recipe.columns)), np.nan)
    usable, findings = labelled.copy(), Findings()
    X[labelled], usable[labelled] = recipe.matrix(table.features[labelled], path.name, findings)
    if (usable & target.known).sum() < 2:
        raise InvalidInputError(f"{path.name} has fewer than two rows that are complete and have a target.")
    leaks = describe_leaks(X, recipe, target, np.flatnonzero(usable & target.known))
    numbers = _read_numbers(table.features, recipe, target)
    leaks += _note_codes(numbers, recipe) + _note_totals(numbers) + _note_dates(recipe, aside)
    leaks += _note_names(table.features, recipe, aside)
    values = AsideValues.read(table.frame, aside)
    leaks += _note_words(table.features, recipe)
    found = _notes(target, labelled, usable, findings, recipe)
    notes = (*table.notes, *target.notes, *leaks, *found, *values.notes(aside))
    return PreparedTable(table.frame, recipe, target, X, usable, notes, values)


def _note_dates(recipe: ColumnRecipe, aside: Aside) -> list[str]:
    """Say that scores of rows drawn at random, among their neighbours in time, do not hold for later rows."""
    dates = [rule.name for rule in recipe.used if isinstance(rule, Date)]
    if not dates or aside.time is not None:
        return []
    return [
        f"Dates: {list_words(dates)}. To predict rows that are later than these, fit with --time {dates[0]!r}: scores "
        "and intervals of rows drawn at random do not hold for them."
    ]


def _note_names(features: pd.DataFrame, recipe: ColumnRecipe, aside: Aside) -> list[str]:
    """Name columns whose levels may be patients or customers that have several rows each."""
    counts = {rule.name: to_text(features[rule.name]).nunique() for rule in recipe.used if isinstance(rule, Category)}
    found = {name: count for name, count in counts.items() if count > max(MAX_LEVELS, len(features) / ROWS_PER_NAME)}
    if aside.group is not None or not found:
        return []
    return [
        f"Names that come again: {list_counts(found)}. If they are patients, customers or the like, fit with --group "
        f"{next(iter(found))!r}: scores and intervals of rows drawn at random do not hold for new ones."
    ]


def _read_numbers(features: pd.DataFrame, recipe: ColumnRecipe, target: Target) -> dict[str, Array]:
    """Return the known numbers of each column, targets included; none of images."""
    if recipe.image_shape is not None:
        return {}
    columns = {rule.name: rule.read(features[rule.name]) for rule in recipe.used if type(rule) is Number}
    if target.task == "regression":
        columns |= dict(zip(target.names, target.y.to_numpy().reshape(len(features), -1).T, strict=True))
    return {name: values[~np.isnan(values)] for name, values in columns.items()}


def _note_totals(numbers: dict[str, Array]) -> list[str]:
    """Name columns whose last number is the sum of all others."""
    found = [name for name, values in numbers.items() if _ends_in_sum(values)]
    said = "The last number in {} is the sum of all others: if it stands in a row of totals, delete it."
    return [said.format(list_words(found))] if found else []


def _ends_in_sum(values: Array) -> bool:
    others, last = values[:-1], values[-1:]
    several = np.count_nonzero(others) >= FEW_SUMMANDS and (last > others.max()).all()  # no sum by chance
    return bool(several and np.isclose(others.sum(), last, rtol=1e-9, atol=0.0).all())


def _notes(
    target: Target, labelled: NDArray[np.bool_], usable: NDArray[np.bool_], findings: Findings, recipe: ColumnRecipe
) -> list[str]:
    notes = []
    unknown, incomplete = int((~target.known).sum()), int((labelled & ~usable).sum())
    if incomplete:
        notes.append(f"{count_of(incomplete, 'row')} with missing values left out: {list_counts(findings.missing)}.")
    elif findings.missing:
        said = recipe.describe_missing(findings)
        notes.append(f"{said} --missing drop leaves these rows out, --missing refuse stops.")
    if unknown:
        fate = "help to draw the picture" if labelled.all() else "are left out"
        words = f" ({list_words(target.unknown_words)} among the numbers say so)" if target.unknown_words else ""
        notes.append(f"Rows without a target{words} {fate}: {unknown:,}.")
    if target.task == "classification":
        counts = target.y.value_counts()
        single = sorted(counts.index[counts == 1].tolist())  # cannot be in both parts of a split
        few = {str(name): int(count) for name, count in counts.items() if 1 < count < FEW_OF_A_CLASS}
        if single:
            who = f"Each of the classes {list_words(single)}" if len(single) > 1 else f"The class {single[0]!r}"
            notes.append(f"{who} has a single row, which is in the fit: held-out scores do not cover it.")
        if few:
            notes.append(f"Few rows: {list_counts(few)}. What is said of classes with so few rows is rough.")
    return notes


def _note_words(features: pd.DataFrame, recipe: ColumnRecipe) -> list[str]:
    """Name the words among numbers that are read as missing: one of them may be a mistake."""
    found = []
    for rule in recipe.used:
        if type(rule) is Number and not is_number(features[rule.name]):
            cells = to_text(features[rule.name])
            counts = cells[find_unknown(cells)].value_counts()
            found += [f"{word!r} in {rule.name!r} ({count})" for word, count in counts.items()]
    return [f"Words among numbers, read as missing: {', '.join(found)}."] if found else []


def _note_codes(numbers: dict[str, Array], recipe: ColumnRecipe) -> list[str]:
    """Return sentences about numbers that may be codes: few whole ones, and -999 or 99 far from all other values."""
    few, far = [], []
    plain = {rule.name for rule in recipe.used if type(rule) is Number and not rule.unit}
    for name, values in numbers.items():
        if len(values) < MIN_ROWS:
            continue
        found, counts = np.unique(values, return_counts=True)
        # Two values are the same column of X either way.
        if name in plain and 2 < len(found) <= MAX_CODE and found[0] >= 0 and (found % 1 == 0).all():
            few.append(name)
        for end, rest in ((0, found[1:]), (-1, found[:-1])):
            alone = len(rest) > 1 and np.abs(rest - found[end]).min() > np.ptp(rest)
            if alone and counts[end] > 1 and {*f"{found[end]:g}".lstrip("-")} == {"9"}:
                far.append(f"{found[end]:g} in {name!r} ({counts[end]})")
    said = "Few whole numbers, read as amounts: {}. If they are codes: --category {!r}."
    lone = "Far from all other values: {}. If this is a code for missing cells, leave them empty and fit again."
    notes = [said.format(list_words(few), few[0])] if few else []
    return [*notes, lone.format(", ".join(far))] if far else notes


MIN_LEAK_ROWS, MAX_LEAK_ROWS, MAX_LEAK_COLUMNS = 20, 1000, 500  # a tree per column takes a millisecond or two
ROWS_PER_CLASS = 5
UNEXPLAINED = 0.02  # share of the errors without a model that a column may leave
CERTAIN = 0.995  # R² of a column, which a page rounds to 1.00
MOSTLY = 0.5  # share of rows in which a column must be known


def describe_leaks(X: Array, recipe: ColumnRecipe, target: Target, rows: Array) -> list[str]:
    """Return a sentence if single columns predict the target of left-out rows almost without error."""
    if recipe.image_shape is not None or len(target.names) > 1 or len(rows) < MIN_LEAK_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(rows)[:MAX_LEAK_ROWS]
    X, y, found, start = X[rows], target.values(rows), [], 0
    for rule in recipe.used[:MAX_LEAK_COLUMNS]:
        width, gap = len(rule.columns()), [f"{rule.name} {MISSING}", f"{rule.name} = {MISSING}"]
        flags = [start + place for place, column in enumerate(rule.columns()) if column in gap]
        known = ~X[:, flags].any(axis=1)
        # It may tell the target only where it is known, or by being known.
        parts = ([known] if known.mean() >= MOSTLY else []) + ([known | True] if flags else [])
        if any(_gives_away(X[part, start : start + width], y[part], target.task) for part in parts):
            found.append(rule.name)
        start += width
    if not found:
        return []
    one = len(found) == 1
    subject = f"Column {found[0]!r} alone tells" if one else f"Columns {list_words(found)} each alone tell"
    drop = " ".join(f"--drop {name!r}" for name in found)
    which, them = ("it is", "it") if one else ("they are", "them")
    return [f"{subject} the target. If {which} not known before the target is, leave {them} out: {drop}."]


def _gives_away(x: Array, y: Array, task: str) -> bool:
    from scipy.stats import spearmanr
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    half, rest = slice(None, None, 2), slice(1, None, 2)
    if task == "classification":
        if ROWS_PER_CLASS * len(np.unique(y)) > len(y):  # too few to see a rule
            return False
        _, counts = np.unique(y[rest], return_counts=True)
        classifier = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(x[half], y[half])
        wrong = 1 - classifier.score(x[rest], y[rest])
        return bool(len(counts) > 1 and wrong <= UNEXPLAINED * (1 - counts.max() / counts.sum()))
    # A tree follows any function of the column, but only in steps: a monotone one is told by its ranks.
    if np.ptp(y) == 0 or np.ptp(x[:, 0]) == 0:
        return False
    y = y / np.abs(y).max()  # squares of very large targets would overflow
    if max(abs(spearmanr(x[:, 0], y).statistic), abs(np.corrcoef(x[:, 0], y)[0, 1])) > CERTAIN**0.5:
        return True
    tree = DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(x[half], y[half])
    return bool(tree.score(x[rest], y[rest]) > CERTAIN)
