"""Cross-fitting: every expert predicts samples that it has not seen, and is then fitted to all of them.

Everything that a stack learns about its experts (weights, scales, temperatures, tails) it learns from these left-out
predictions. Samples with equal or nearly equal features are left out together: a copy would tell the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from distreduce._utils.numerics import nearest
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index
from distreduce.gp._exact import evenly_spaced
from distreduce.gp._experts import Expert, Lesson
from distreduce.sharding.merge import merge_duplicates

FOLDS, FOLDS_OF_FEW, FEW = 5, 10, 100  # the fewer the samples, the more an expert loses with those left out
MANY = 5000  # samples from which on one part is left out once instead of every fold in turn
HELD_OUT = 5000  # samples of that part, at most
FOLD_TRAINING_ROWS = 500  # hyperparameters of the folds; those of the final experts see more samples
# Two samples nearer than this share of the median distance to the fifth neighbour are copies with noise. (The first
# neighbours may be copies themselves.)
NEARLY_EQUAL, OTHERS = 0.05, 5
COPIES_AGREE = 0.9  # share of samples with equal features that have equal targets, from which on they are copies


def find_copies(distinct: Array) -> Index:
    """Return a group number for each of the distinct, standardised samples; near copies share one."""
    n = len(distinct)
    if n < 3 or n > MANY:  # of many samples few are left out, and their copies hardly matter
        return np.arange(n)
    distance, near = nearest(distinct, distinct, min(n, 1 + OTHERS))
    limit = NEARLY_EQUAL * float(np.median(distance[:, -1]))
    rows = np.flatnonzero(distance[:, 1] < limit)
    links = sparse.coo_array((np.ones(len(rows)), (rows, near[rows, 1])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


@dataclass(frozen=True)
class Arranged:
    """Samples in an order that depends on their values alone; a sample given twice is one of weight two.

    Attributes
    ----------
    order : (k,) array
        Rows that differ from each other in features or targets, in that order.
    weights : (k,) array
        Total weight of each, without those of weight zero.
    groups : (k,) array
        Group of each, whose members are copies of each other.
    inputs : (n, d) array
        All samples as given, copies with noise replaced by the first of their group.
    distinct, copies : (m, d) and (m,) arrays
        Samples that differ in features, and their groups.
    """

    order: Index
    weights: Array
    groups: Index
    inputs: Array
    distinct: Array
    copies: Index


def arrange(inputs: Array, targets: Array, weights: Array) -> Arranged:
    """Put samples in order and find their copies, which become one sample of more weight."""
    places = merge_duplicates(inputs, None, weights)
    distinct = inputs[places.rows]
    copies = find_copies(distinct)
    order = np.lexsort((*targets.T[::-1], places.group))
    order = order[places.group[order] >= 0]
    near = copies[places.group[order]]
    if not are_copies(near, targets[order]):
        return Arranged(order, weights[order], np.arange(len(order)), inputs, distinct, copies)
    samples = merge_duplicates(inputs, targets, weights)
    once = np.lexsort((*targets[samples.rows].T[::-1], places.group[samples.rows]))
    rows, totals = samples.rows[once], samples.weights[once]
    # Copies with noise get the features of the first of them.
    used, first = places.group >= 0, np.unique(copies, return_index=True)[1]
    cleaned = inputs.copy()
    cleaned[used] = distinct[first[copies[places.group[used]]]]
    return Arranged(rows, totals, copies[places.group[rows]], cleaned, distinct, copies)


def are_copies(groups: Index, targets: Array) -> bool:
    """Whether samples with equal features, which share a group, are copies: they agree in y as well.

    Equal features with targets that differ are repeated measurements: each of them is as new to an expert as the next
    sample with these features will be.
    """
    order = np.argsort(groups, kind="stable")
    same = np.diff(groups[order]) == 0
    agree = np.all(np.abs(np.diff(targets[order], axis=0)) < 1e-6, axis=1)[same]
    return not same.any() or float(np.mean(agree)) > COPIES_AGREE


def assign_folds(groups: Index) -> Index:
    """Return the fold of each sample; with many samples 0 for the part that is left out once and −1 for the others."""
    n_groups = int(groups.max()) + 1
    # Always the same split, so that a fit depends on the samples only.
    place = check_random_state(0).permutation(n_groups)
    if len(groups) <= MANY:
        folds = min(n_groups, FOLDS_OF_FEW if len(groups) < FEW else FOLDS)
        return np.asarray((place % folds)[groups])
    share = min(0.2, HELD_OUT / len(groups))
    return np.where(place < max(1, round(share * n_groups)), 0, -1)[groups]


@dataclass(frozen=True)
class CrossFit:
    """Experts fitted to all samples, and what they said of the left-out `rows` when these were new to them."""

    predictors: Mapping[str, Any]
    left_out: Mapping[str, tuple[Array, ...]]
    rows: Index


def cross_fit(experts: Mapping[str, Expert], lessons: Mapping[str, Lesson], folds: Index, pool: Workers) -> CrossFit:
    """Fit every expert without each fold and to all samples; one task each."""
    used = [int(fold) for fold in np.unique(folds) if fold >= 0]
    tasks = [(name, fold) for name in experts for fold in (*used, None)]

    def run(task: int, _: int) -> Any:
        name, fold = tasks[task]
        lesson = lessons[name]
        if fold is None:
            return experts[name](lesson)
        few = lesson.training_rows if len(used) == 1 else min(lesson.training_rows, FOLD_TRAINING_ROWS)
        taught = replace(lesson.take(np.flatnonzero(folds != fold)), training_rows=few)
        return predict(experts[name](taught), lesson.inputs[folds == fold], is_class=lesson.is_class)

    found = dict(zip(tasks, pool.run(run, len(tasks)), strict=True))
    rows = np.flatnonzero(folds >= 0)
    left_out = {}
    for name in experts:
        parts = [found[name, fold] for fold in used]
        whole = tuple(np.empty((len(folds), *part.shape[1:])) for part in parts[0])
        for fold, part in zip(used, parts, strict=True):
            for all_rows, own in zip(whole, part, strict=True):
                all_rows[folds == fold] = own
        left_out[name] = tuple(part[rows] for part in whole)
    return CrossFit({name: found[name, None] for name in experts}, left_out, rows)


def predict(predictor: Any, inputs: Array, *, is_class: bool) -> tuple[Array, ...]:
    """Scores of classes, or means and variances of numbers."""
    return (predictor.scores(inputs),) if is_class else tuple(predictor.moments(inputs))


def thin_reference(scores: Array, size: int) -> Array:
    """At most `size` of the scores, sorted: what new samples are compared with."""
    ordered = np.sort(scores)
    return np.asarray(ordered[evenly_spaced(len(ordered), size)])
