"""Which rows ``distreduce fit`` holds out: drawn at random, whole groups, or the latest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from distreduce._utils.text import count_of
from distreduce._utils.typing import Array, Index
from distreduce.cli._models import FitOptions
from distreduce.exceptions import InvalidInputError
from distreduce.sharding.merge import join_groups, merge_duplicates
from distreduce.tables.prepare import PreparedTable

MIN_ROWS = 10  # with fewer known targets, held-out scores say nothing
MAX_TEST_ROWS = 10_000
# Parts of a numeric target that are held out in equal shares: the R² of 60 normal rows scatters a third less between
# splits, that of 216 skewed ones two fifths less (benchmarks/certainty.py).
STRATA = 10


def split_rows(data: PreparedTable, options: FitOptions) -> tuple[Index, Index, str]:
    """Return training rows, held-out rows, and how they were chosen; both are empty if too few have a target."""
    known, nothing, labels = data.known, np.empty(0, dtype=np.intp), data.target.labels
    if not options.test_size or len(known) < MIN_ROWS:
        return nothing, nothing, ""
    if data.aside.times is not None:
        chosen, how = _hold_out_latest(data.aside.times[known], options)
    elif data.aside.groups is not None:
        chosen, how = _hold_out_groups(data, known, options)
    else:
        chosen, how = _hold_out_at_random(data, known, options), "They were drawn at random."
    train = known[~chosen]
    test = draw_rows(known[chosen], labels, MAX_TEST_ROWS, options.seed)
    if labels is not None:  # no model can predict a class that is not among the training rows
        test = test[np.isin(labels[test].astype(str), labels[train].astype(str))]
    return (train, test, how) if len(test) > 1 else (nothing, nothing, "")


def _hold_out_at_random(data: PreparedTable, known: Index, options: FitOptions) -> NDArray[np.bool_]:
    # Rows are drawn once each, and their copies follow them: in the other part, a copy would tell the answer.
    copies = data.copies[known]
    once = known[copies == known]
    size, labels = round(options.test_size * len(once)), data.target.labels
    strata = _cut_numbers(data, once, min(STRATA, size, len(once) - size)) if labels is None else labels
    return ~np.isin(copies, draw_rows(once, strata, len(once) - size, options.seed))


def _cut_numbers(data: PreparedTable, rows: Index, n: int) -> Index:
    """Return, for all rows of the file, which of n equal parts of the (first) target a row lies in."""
    found = np.zeros(len(data.usable), dtype=np.intp)
    order = np.argsort(data.target.values(rows).reshape(len(rows), -1)[:, 0], kind="stable")
    found[rows[order]] = np.arange(len(rows)) * max(n, 1) // len(rows)
    return found


def _hold_out_latest(times: Array, options: FitOptions) -> tuple[NDArray[np.bool_], str]:
    """Hold out the latest share of the rows; rows of one time stay together."""
    size = max(1, round(options.test_size * len(times)))
    first = np.sort(times)[len(times) - size]
    chosen = times >= first if (times < first).any() else times > first
    if not chosen.any():
        raise InvalidInputError(f"--time {options.time!r} is the same in every row with a target; name another column.")
    return chosen, f"They are the latest by {options.time}: every training row is earlier."


def _hold_out_groups(data: PreparedTable, known: Index, options: FitOptions) -> tuple[NDArray[np.bool_], str]:
    """Hold out groups drawn at random, until they are the share of the rows that was asked for."""
    groups = np.asarray(data.aside.groups)[known]
    # Groups that share copies of a row are one: a copy in the other part would tell the answer.
    n = len(known)
    names, codes = np.unique(join_groups(groups, data.copies[known]), return_inverse=True)
    if len(names) < 2:
        raise InvalidInputError(
            f"--group {options.group!r}: all rows with a target are in one group, or in groups that share copies of "
            "rows, so that none can be held out; name another column."
        )
    order = np.random.default_rng(options.seed).permutation(len(names))
    total = np.cumsum(np.bincount(codes)[order])
    # At least one group, and not all: as near to the share as whole groups allow.
    count = 1 + int(np.abs(total[:-1] - options.test_size * n).argmin())
    chosen = np.isin(codes, order[:count])
    held = len(np.unique(groups[chosen]))
    return chosen, f"They are {count_of(held, 'whole group')} of {options.group}: no group is in both parts."


def find_units(data: PreparedTable, rows: Index) -> Index | None:
    """Number the rows so that those of one group, and copies, share a number; None if every row stands for itself."""
    units = data.copies[rows]
    if data.aside.groups is not None:
        units = join_groups(data.aside.groups[rows], units)
    found, codes = np.unique(units, return_inverse=True)
    return None if len(found) == len(rows) else codes.ravel()


def describe_repeats(data: PreparedTable, rows: Index, *, split: bool = True) -> list[str]:
    """Return a sentence that says how rows with equal features were read, none without such rows."""
    repeats = len(rows) - len(merge_duplicates(data.X[rows], None, np.ones(len(rows))).rows)
    copies = rows[data.copies[rows] != rows]
    if not repeats and not len(copies):
        return []
    if not len(copies):
        alone = " They are held out one by one." if split and data.aside.blocks is None else ""
        return [
            f"{count_of(repeats, 'row')} with the features of another, but mostly other targets: read as repeated "
            f"measurements, not as copies.{alone}"
        ]
    nearly = ", or nearly so" if len(copies) > repeats else ""
    said = f"{count_of(len(copies), 'row')} with features and target of another{nearly}: read as copies."
    return [f"{said} They are left out together, so that they do not tell the answer. {_name_copies(data, copies)}"]


def _name_copies(data: PreparedTable, rows: Index) -> str:
    """Name the first three copies, and what they are copies of, as the tables of the folder name rows."""
    by = data.recipe.id_column
    names = range(len(data.usable)) if by is None else [f"{str(each)!r:.40}" for each in data.table[by]]
    pairs = ", ".join(f"{names[row]} (like {names[data.copies[row]]})" for row in rows[:3])
    return f"{'Rows, counted from 0' if by is None else f'By {by!r}'}: {pairs}{', …' if len(rows) > 3 else '.'}"


def draw_rows(rows: Index, labels: NDArray[Any] | None, size: int, seed: int) -> Index:
    """Draw `size` of the rows at random, sorted; classes keep their shares, and classes of a single row are kept.

    `labels` are those of all rows of the file; rows without a label are a class of their own.
    """
    if size >= len(rows):
        return rows
    if labels is not None:
        # Classes of a single row cannot be stratified: take them first, and draw the others by their shares.
        codes = pd.factorize(labels[rows], use_na_sentinel=False)[0]
        single = np.bincount(codes)[codes] == 1
        kept, rest, codes = rows[single], rows[~single], codes[~single]
        wanted = size - len(kept)
        if wanted > 0:
            n_classes = len(np.unique(codes))
            # Stratifying needs room for every class in both parts.
            shares = codes if min(wanted, len(rest) - wanted) >= n_classes else None
            part, _ = train_test_split(rest, train_size=wanted, stratify=shares, random_state=seed)
            return np.sort(np.concatenate([kept, part]))
    # Numbers, or nearly every row is a class of its own.
    return np.sort(np.random.default_rng(seed).choice(rows, size=size, replace=False))
