"""Columns that give the target away, such as a copy of it under another name."""

from __future__ import annotations

import numpy as np

from distreduce._utils.text import list_words
from distreduce._utils.typing import Array
from distreduce.tables.recipe import ColumnRecipe
from distreduce.tables.target import Target

MIN_ROWS, MAX_ROWS, MAX_COLUMNS = 20, 1000, 500  # a tree per column takes a millisecond or two
ROWS_PER_CLASS = 5
UNEXPLAINED = 0.02  # share of the errors without a model that a column may leave


def describe_leaks(X: Array, recipe: ColumnRecipe, target: Target, rows: Array) -> list[str]:
    """Return a sentence if single columns predict the target of left-out rows almost without error."""
    if recipe.image_shape is not None or len(target.names) > 1 or len(rows) < MIN_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(rows)[:MAX_ROWS]
    y, found, start = target.values(rows), [], 0
    for rule in recipe.used[:MAX_COLUMNS]:
        width = len(rule.columns())
        if _gives_away(X[rows, start : start + width], y, target.task):
            found.append(rule.name)
        start += width
    if not found:
        return []
    subject = f"Column {found[0]!r} alone tells" if len(found) == 1 else f"Columns {list_words(found)} each alone tell"
    return [f"{subject} the target. If it is not known before the target is, leave it out: --drop {found[0]!r}."]


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
    if abs(spearmanr(x[:, 0], y).statistic) > 1 - UNEXPLAINED / 20:
        return True
    y = y / np.abs(y).max()  # squares of very large targets would overflow
    tree = DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(x[half], y[half])
    return bool(tree.score(x[rest], y[rest]) > 1 - UNEXPLAINED / 20)
