"""Cross-fitting: every expert predicts samples that it has not seen, and is then fitted to all of them.

Everything that a stack learns about its experts (weights, scales, temperatures, tails) it learns from these left-out
predictions. Samples with equal or nearly equal features are left out together: a copy would tell the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from distreduce._utils.numerics import evenly_spaced, nearest
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index
from distreduce.gp._experts import CHAIN, Expert, Lesson
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.mapping.folds import are_copies, find_near_copies
from distreduce.sharding.merge import join_groups, merge_duplicates

FOLDS, FOLDS_OF_FEW, FEW = 5, 10, 100  # the fewer the samples, the more an expert loses with those left out
MANY = 5000  # samples from which on one part is left out once instead of every fold in turn
HELD_OUT = 5000  # samples of that part, at most
ENOUGH_TO_JUDGE = 100  # left-out samples after which experts that will get no weight are given up
FOLD_TRAINING_ROWS = 500  # hyperparameters of the folds; those of the final experts see more samples
NEAREST_OTHERS = 5  # neighbours whose distance tells how new a sample is
LIKE_THESE = 5000  # training samples that new ones are compared with


@dataclass(frozen=True)
class Arranged:
    """Samples in an order that depends on their values alone; a sample given twice is one of weight two.

    Errors of one given group are alike, so that as evidence each group, large or small, counts as one sample: a model
    that lacks the largest group is unlike the one that will predict.
    """

    order: Index  # (k,), rows that differ from each other in features or targets, in that order
    weights: Array  # (k,), total weight of each, without those of weight zero
    groups: Index  # (k,), what leaves as a whole: copies of each other, or the groups that were given
    evidence: Array  # (k,), weights in what left-out samples teach
    inputs: Array  # (n, d), all samples as given, copies with noise replaced by the first of their group
    distinct: Array  # (m, d), samples that differ in features
    copies: Index  # (m,), the same number for near copies
    given: Index | None = None  # (m,), the groups that were given


def arrange(
    inputs: Array, targets: Array, weights: Array, groups: Index | None = None, *, periods: bool = False
) -> Arranged:
    """Put samples in order and find their copies, which become one sample of more weight.

    With `groups`, whole groups are left out, and those that share copies with noise leave together. If they are
    `periods`, which nobody drew, their samples are evidence one by one.
    """
    # Samples that differ in features, in an order by value, and which of them are copies.
    places = merge_duplicates(inputs, None, weights)
    distinct = inputs[places.rows]
    copies = find_near_copies(distinct)
    order = np.lexsort((*targets.T[::-1], places.group))
    order = order[places.group[order] >= 0]
    copied = are_copies(copies[places.group[order]], np.ones(len(order), np.intp), targets[order])
    totals, leaving, cleaned = weights[order], np.arange(len(inputs)), inputs
    if copied:
        samples = merge_duplicates(inputs, targets, weights)
        once = np.lexsort((*targets[samples.rows].T[::-1], places.group[samples.rows]))
        order, totals, leaving = samples.rows[once], samples.weights[once], copies[places.group]
        # Copies with noise get the features of the first of them.
        used, first = places.group >= 0, np.unique(copies, return_index=True)[1]
        cleaned = inputs.copy()
        cleaned[used] = distinct[first[copies[places.group[used]]]]
    if groups is None:
        return Arranged(
            order, totals, leaving[order] if copied else np.arange(len(order)), totals, cleaned, distinct, copies
        )
    # What leaves together, and what each group counts.
    joined = join_groups(groups, leaving)
    own = pd.factorize((joined if np.ptp(joined) > 0 else groups)[order])[0]
    evidence = totals if periods else totals / np.bincount(own, totals)[own]
    return Arranged(order, totals, own, evidence, cleaned, distinct, copies, groups[places.rows])


def number_folds(groups: Index) -> Index:
    """Return the fold of each sample; with many samples 0 for the part that is left out once and −1 for the others."""
    n_groups = int(groups.max()) + 1
    # Always the same split, so that a fit depends on the samples only.
    place = check_random_state(0).permutation(n_groups)
    if len(groups) <= MANY:
        folds = min(n_groups, FOLDS_OF_FEW if len(groups) < FEW else FOLDS)
        return np.asarray((place % folds)[groups])
    share = min(0.2, HELD_OUT / len(groups))
    return np.where(place < max(1, round(share * n_groups)), 0, -1)[groups]


Said = Mapping[str, tuple[Array, ...]]  # what experts predict for some rows
Keep = Callable[[Said, Index], Collection[str]]  # the experts to continue with, from what they predict for some rows


@dataclass(frozen=True)
class CrossFit:
    """What the experts predict for the left-out `rows`, which are new to them, and the first fold's predictors.

    `noise` is the relative variance n(x) of the noise at these rows, which are new to it as well.
    """

    left_out: Said
    rows: Index
    first: Mapping[str, Any] = field(default_factory=dict)
    noise: Array | float = 1.0

    def take(self, part: NDArray[np.bool_]) -> CrossFit:
        """The predictions for a part of these rows, whose noise is that of all others."""
        said = {name: tuple(column[part] for column in own) for name, own in self.left_out.items()}
        return CrossFit(said, self.rows[part])


Found = dict[tuple[str, int], tuple[Any, tuple[Array, ...]]]  # predictors without a fold, and what they say of it


@dataclass(frozen=True)
class CrossFitter:
    """Experts by name, what each of them learns from, and the fold of each sample."""

    experts: Mapping[str, Expert]
    lessons: Mapping[str, Lesson]
    folds: Index
    pool: Workers

    def leave_out(self, keep: Keep | None = None) -> CrossFit:
        """Fit every expert without each fold; after the first folds continue with those that `keep` returns."""
        used = [int(fold) for fold in np.unique(self.folds) if fold >= 0]
        sizes = np.cumsum([np.sum(self.folds == fold) for fold in used])
        tried = used[: 1 + int(np.searchsorted(sizes, ENOUGH_TO_JUDGE))]
        names, found = list(self.experts), self._fit_folds(list(self.experts), tried)
        if keep is not None and len(tried) < len(used):
            rows = np.flatnonzero(np.isin(self.folds, tried))
            names = _with_links(names, keep(self._collect(found, names, tried), rows))
        found |= self._fit_folds(names, used[len(tried) :])
        first = {name: found[name, used[0]][0] for name in names}
        return CrossFit(self._collect(found, names, used), np.flatnonzero(self.folds >= 0), first)

    def fit_all(self, names: Collection[str], earlier: Mapping[str, Any]) -> dict[str, Any]:
        """Fit these experts to all samples; hyperparameters start at those of `earlier` predictors."""
        tasks = list(names)

        def run(task: int, _: int) -> Any:
            known = getattr(earlier[tasks[task]], "hyperparameters", None)
            return self.experts[tasks[task]](replace(self.lessons[tasks[task]], known=known))

        return dict(zip(tasks, self.pool.run(run, len(tasks)), strict=True))

    def _fit_folds(self, names: list[str], folds: list[int]) -> Found:
        """Fit experts without each fold; those that start from each other are one task."""
        linked = [name for name in CHAIN if name in names]
        chains = [chain for chain in (linked, *([name] for name in names if name not in CHAIN)) if chain]
        tasks = [(chain, fold) for fold in folds for chain in chains]

        def run(task: int, _: int) -> Found:
            known, found, (chain, fold) = None, {}, tasks[task]
            for name in chain:
                found[name, fold] = self._fit_fold(name, fold, known)
                known = getattr(found[name, fold][0], "hyperparameters", None)
            return found

        return {key: own for part in self.pool.run(run, len(tasks)) for key, own in part.items()}

    def _fit_fold(self, name: str, fold: int, known: Hyperparameters | None) -> tuple[Any, tuple[Array, ...]]:
        """An expert without a fold, and what it says of it."""
        lesson, left_out = self.lessons[name], self.folds == fold
        in_turn = self.folds.min() >= 0  # every fold is left out, not one part alone
        rows = min(lesson.training_rows, FOLD_TRAINING_ROWS) if in_turn else lesson.training_rows
        fitted = self.experts[name](replace(lesson.take(np.flatnonzero(~left_out)), training_rows=rows, known=known))
        new = lesson.inputs[left_out]
        return fitted, (fitted.scores(new),) if lesson.is_class else tuple(fitted.moments(new))

    def _collect(self, found: Found, names: list[str], folds: list[int]) -> Said:
        """Put the predictions of the folds together, in the order of the samples."""
        order = np.argsort(np.concatenate([np.flatnonzero(self.folds == fold) for fold in folds]))
        parts = {name: zip(*(found[name, fold][1] for fold in folds), strict=True) for name in names}
        return {name: tuple(np.concatenate(column)[order] for column in own) for name, own in parts.items()}


def _with_links(names: list[str], kept: Collection[str]) -> list[str]:
    """The experts that are kept, and those that they start from."""
    linked = [name for name in CHAIN if name in names]
    needed = max((k for k, name in enumerate(linked) if name in kept), default=-1)
    return [name for name in names if name in kept or name in linked[: needed + 1]]


@dataclass(frozen=True)
class Novelty:
    """Distinct training samples (k, d), and sorted mean distances of each to its nearest others (k,)."""

    inputs: Array
    distances: Array

    @classmethod
    def of(cls, distinct: Array, copies: Index, groups: Index | None = None) -> Novelty:
        """From distinct standardised samples; near copies count once, and others are those of other groups, if any."""
        first = np.unique(copies, return_index=True)[1]
        chosen = first[evenly_spaced(len(first), LIKE_THESE)]
        inputs = distinct[chosen]
        k = min(NEAREST_OTHERS, len(inputs) - 1)
        if k == 0:
            return cls(inputs, np.zeros(1))
        if groups is None or np.ptp(groups[chosen]) == 0:
            distance = nearest(inputs, inputs, k + 1)[0][:, 1:].mean(axis=1)  # without itself
            return cls(inputs, np.sort(distance))
        parts = [groups[chosen] == group for group in np.unique(groups[chosen])]
        found = [nearest(inputs[own], inputs[~own], min(k, int((~own).sum())))[0].mean(axis=1) for own in parts]
        return cls(inputs, np.sort(np.concatenate(found)))

    def __call__(self, inputs: Array) -> Array:
        k = max(1, min(NEAREST_OTHERS, len(self.inputs) - 1))
        distance = nearest(inputs, self.inputs, k)[0].mean(axis=1)
        farther = len(self.distances) - np.searchsorted(self.distances, distance, side="left")
        return np.asarray((1 + farther) / (1 + len(self.distances)))
