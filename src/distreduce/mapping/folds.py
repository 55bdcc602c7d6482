"""Folds: which samples, or which part of their weight, are left out together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from distreduce._utils.typing import Array, Index
from distreduce.losses import supervised_rows
from distreduce.sharding.merge import join_groups, row_keys

FOLDS = 5
# Samples of equal features are copies if they differ in y at most this often, relative to any two samples.
COPIES_DIFFER = 0.25
# Two samples nearer than this share of the median distance to the fifth neighbour are copies with noise. (The first
# neighbours may be copies themselves.)
NEARLY_EQUAL, FIFTH = 0.05, 5
MOST_COMPARED = 5000  # of more samples few are left out, and their copies hardly matter
# A mean over this many differs little from what any one of them is left out of; over fewer it gives them away.
MANY_MEASUREMENTS = 10
# What alone decides its place cannot be left out: the largest leverages, where they are estimated and where computed.
MOST_LEVERAGE, NEARLY_ALL = 0.9, 1.0 - 1e-9


@dataclass(frozen=True)
class Folds:
    """The parts of a weighted sample that leave with each fold.

    A sample is one part as a rule. A sample that stands for several equal measurements has parts in several folds: with
    each of them, some of its weight leaves and the rest stays.
    """

    sample: Index  # (k,), number of the sample that each part belongs to, ascending
    fold: Index  # (k,), in which it leaves
    weights: Array  # (k,)
    sites: Index  # (n,), the same number for samples with equal features, which no map can tell apart
    units: Index | None = None  # (n,), the same number for samples of one group; None without groups

    @property
    def numbers(self) -> list[int]:
        """The folds that hold any sample."""
        return [int(fold) for fold in np.unique(self.fold)]

    def out(self, fold: int) -> Index:
        """Return the parts that leave."""
        return np.flatnonzero(self.fold == fold)

    def rest(self, fold: int) -> tuple[Index, Array]:
        """Return the samples that stay, and their weight that stays."""
        kept = self.fold != fold
        weights = np.bincount(self.sample[kept], self.weights[kept], minlength=len(self.sites))
        rows = np.flatnonzero(weights)
        return rows, weights[rows]

    def take(self, rows: Index) -> Folds:
        """Return the folds of some samples, whose numbers are ascending."""
        place = np.full(len(self.sites), -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.sample] >= 0
        units = None if self.units is None else self.units[rows]
        return Folds(place[self.sample[kept]], self.fold[kept], self.weights[kept], self.sites[rows], units)

    def without(self, fold: int) -> Folds:
        """Return the folds of the samples that stay."""
        kept = self.fold != fold
        stay = Folds(self.sample[kept], self.fold[kept], self.weights[kept], self.sites, self.units)
        return stay.take(self.rest(fold)[0])

    def average(self, values: Array) -> Array:
        """Return, for each sample, the mean (n, c) over its site of what the parts have (k, c).

        One value for the site, as for a new sample there: small differences between the parts, each of which was left
        out of its own value, would give their targets away.
        """
        if len(np.unique(self.sites)) == len(values):  # nothing to average
            return values
        site = self.sites[self.sample]
        totals, mass = np.zeros((site.max() + 1, values.shape[1])), np.bincount(site, self.weights)
        np.add.at(totals, site, self.weights[:, None] * values)
        return np.asarray(totals[self.sites] / mass[self.sites, None])


def leave_out(
    F: Array, fitted: Array, leverages: Array, folds: Folds | None = None, most: float = MOST_LEVERAGE
) -> Array:
    r"""Values (n, p) of a linear smoother of F for samples that it has not seen, from its values and leverages.

    .. math:: z_{-G} = \frac{z_G - \sum_{i \in G} \ell_i f_i}{1 - \sum_{i \in G} \ell_i}

    G is a sample. With folds it is what leaves the samples of equal features, which have one value z_G, with one fold;
    these samples then get the mean of what they are left out with. `most` is the largest leverage of any G.
    """
    left_out: Array = F - (F - fitted) / (1.0 - np.minimum(leverages, most))[:, None]
    if folds is None:
        return left_out
    sample, site = folds.sample, folds.sites[folds.sample]
    groups, of_part = np.unique(site * FOLDS + folds.fold, return_inverse=True)
    # A part of a sample has as much of its leverage as of its weight.
    parts = leverages[sample] * folds.weights / np.bincount(sample, folds.weights)[sample]
    total, sums = np.bincount(of_part, parts), np.zeros((len(groups), F.shape[1]))
    np.add.at(sums, of_part, parts[:, None] * F[sample])
    kept = most / np.maximum(total, most)
    without = (fitted[sample] - (kept[:, None] * sums)[of_part]) / (1.0 - kept * total)[of_part, None]
    shared = np.bincount(site, minlength=len(groups))[folds.sites] > 1
    return np.where(shared[:, None], folds.average(without), left_out)


def find_sites(features: Any, *, precomputed: bool = False) -> Index:
    """Return a number for each sample, the same for samples with equal features."""
    if precomputed:
        first = (features == 0).argmax(axis=1)  # of the samples at distance zero
        # Numbered by their distances to the others, which do not depend on the order of the rows.
        return np.unique(np.sort(features, axis=1).sum(axis=1)[first], return_inverse=True)[1].ravel()
    # Rows of a merged sample are sorted: by first appearance the numbers do not depend on units.
    _, first, inverse = np.unique(row_keys(features), axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]


def find_near_copies(features: Any) -> Index:
    """Return a number for each standardised sample, the same for samples that are nearly equal."""
    n = len(features)
    if n < 3 or n > MOST_COMPARED:
        return np.arange(n)
    distance, near = NearestNeighbors(n_neighbors=min(n - 1, FIFTH), algorithm="brute").fit(features).kneighbors()
    limit = NEARLY_EQUAL * float(np.median(distance[:, -1]))
    # All near ones are linked: of four copies, the nearest alone would link two pairs.
    rows, place = np.nonzero(distance < limit)
    links = sparse.coo_array((np.ones(len(rows)), (rows, near[rows, place])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def find_noisy_copies(features: Any, sites: Index, targets: Array) -> Index | None:
    """Return a number for each sample, the same for nearly equal ones; None if there are none, or their targets differ.

    Copies have like targets: the variance of y among them is at most `COPIES_DIFFER` of that among all samples.
    Samples of a single site do not count: they may be repeated measurements.
    """
    if sparse.issparse(features):
        return None
    largest = np.abs(features).max(axis=0)  # first, because squares of very large numbers overflow
    rows = np.asarray(features / np.where(largest > 0, largest, 1.0), dtype=np.float64)
    scale = rows.std(axis=0)
    near = find_near_copies((rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
    copies = join_groups(sites, near)
    if len(np.unique(copies)) == len(np.unique(sites)):
        return None
    known = supervised_rows(targets)
    Y, numbers = targets[known], np.unique(copies[known], return_inverse=True)[1].ravel()
    n, k = len(Y), int(numbers.max(initial=-1)) + 1
    if k == n:  # nothing is known of any two of them
        return copies
    means = np.stack([np.bincount(numbers, column) for column in Y.T], axis=1) / np.bincount(numbers)[:, None]
    within = ((Y - means[numbers]) ** 2).sum() / (n - k)
    return copies if within <= COPIES_DIFFER * ((Y - Y.mean(axis=0)) ** 2).sum() / (n - 1) else None


def assign_folds(
    sites: Index,
    weights: Array,
    targets: Array,
    counts: Index,
    groups: Index | None = None,
    copies: Index | None = None,
) -> Folds:
    """Assign samples to folds at random, but always in the same way.

    With `groups` whole groups leave together, and those that share noisy `copies`. Without, samples with equal features
    do, and noisy `copies` of each other, unless they are repeated measurements and many: new samples will have the same
    features again. Each of those leaves alone, a sample that `counts` as several rows in as many parts. This takes rows
    of one weight: the parts of a sample do not know which of its rows is the heavy one, which would tell its target.
    """
    together = sites if copies is None else copies
    if groups is not None:
        joined = groups if copies is None else join_groups(groups, copies)
        together = joined if np.ptp(joined) > 0 else groups
        sites = np.unique(np.stack([sites, groups]), axis=1, return_inverse=True)[1].ravel()
    fold = check_random_state(0).permutation(int(together.max()) + 1)[together] % FOLDS
    dealt = counts[:, None] * (fold[:, None] == np.arange(FOLDS))
    even = np.allclose(weights * counts.sum(), counts * weights.sum(), rtol=1e-9)
    if groups is None and copies is None and even and not are_copies(sites, counts, targets):
        many = np.bincount(sites, counts)[sites] >= MANY_MEASUREMENTS
        dealt[many] = np.random.default_rng(0).multinomial(counts[many], np.full(FOLDS, 1.0 / FOLDS))
    sample, fold = np.nonzero(dealt)
    units = None if groups is None else together
    return Folds(sample, fold, weights[sample] * (dealt[sample, fold] / counts[sample]), sites, units)


def fold_samples(
    features: Any,
    weights: Array,
    targets: Array,
    counts: Index,
    groups: Index | None = None,
    *,
    precomputed: bool = False,
) -> Folds:
    """Assign samples to folds, with what :func:`find_sites` and :func:`find_noisy_copies` find in their features."""
    sites = find_sites(features, precomputed=precomputed)
    copies = None if precomputed else find_noisy_copies(features, sites, targets)
    return assign_folds(sites, weights, targets, counts, groups, copies)


def fold_repeated(take: Callable[[], Any], sites: Index, weights: Array, targets: Array, counts: Index) -> Folds | None:
    """Return folds for samples that repeat others, or None; those of a few thousand are taken to seek noisy copies."""
    copies = find_noisy_copies(take(), sites, targets) if len(sites) <= MOST_COMPARED else None
    sites = sites if copies is None else copies
    return None if sites.max() + 1 == len(sites) else assign_folds(sites, weights, targets, counts)


def are_copies(sites: Index, counts: Index, targets: Array) -> bool:
    r"""Whether samples with equal features are copies of each other, not repeated measurements.

    Two of them, drawn at random, rarely differ in y where any two samples of all differ:

    .. math:: P(y \neq y' \mid x = x') \le \tfrac14\, P(y \neq y')

    Targets are of unit size.
    """
    known = supervised_rows(targets)
    sites, h = sites[known], counts[known].astype(np.float64)
    values = np.unique(np.round(targets[known], 6), axis=0, return_inverse=True)[1].ravel()
    pairs, cell = np.unique(np.stack([sites, values]), axis=1, return_inverse=True)
    within, total = np.bincount(sites, h), np.bincount(values, h)
    equal = np.bincount(cell.ravel(), h)
    others = within[pairs[0]] - 1.0
    repeated = others > 0
    if not repeated.any() or h.sum() <= 1:
        return True
    differ = 1.0 - np.average((equal[repeated] - 1.0) / others[repeated], weights=equal[repeated])
    return bool(differ <= COPIES_DIFFER * (1.0 - total @ (total - 1.0) / (h.sum() * (h.sum() - 1.0))))
