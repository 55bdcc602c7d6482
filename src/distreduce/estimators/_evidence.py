"""What left-out samples say about a fit: scores of neighbours in the plane, and the targets near each prototype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from distreduce._utils.numerics import evenly_spaced, nearest, nearest_in_use, sq_distances
from distreduce._utils.typing import Array, Index
from distreduce.estimators._setup import FitSetup
from distreduce.estimators._targets import Targets
from distreduce.losses import supervised_rows
from distreduce.mapping import LeftOut
from distreduce.mapping.folds import Folds, fold_samples
from distreduce.mapping.left_out import NEIGHBOURS, share_neighbours
from distreduce.sharding.rows import Rows
from distreduce.sharding.sample import Sample

SCORED_SAMPLES = 5000  # more would hardly change the scores
# The least number of values whose extremes hold a new one in 9 of 10 cases: (k − 1)/(k + 1) = 0.9.
LEAST_EVIDENCE = 19
LEAST_OF_CLASSES = 5  # their intervals hold for any number, and a class may have few samples
# Columns that describe a prototype itself.
QUALITY = ("purity", "purity low", "purity high", "compactness", "separation", "dubious")
LARGE = 1e100  # numbers whose squares may overflow
Members = list[tuple[Index, Array]]  # of each prototype, and their weights
Description = tuple[dict[str, Array], Array, Array]  # columns of the evidence, purity, and which prototypes are dubious


def neighbor_scores(setup: FitSetup, embedding: Array, left_out: LeftOut) -> dict[str, float]:
    """Score the 10 nearest neighbours of the samples among those of other folds: accuracy, or R².

    Given the fitted places (n, p) of the rows and the left-out places of the distinct samples, return "fitted" and
    "left_out", in the plane, and "all_features".
    """
    assert setup.supervision is not None
    merged, targets = setup.merged, setup.supervision.targets
    values = targets.scaled[merged.rows]
    known = np.flatnonzero(supervised_rows(values))
    chosen = known[evenly_spaced(len(known), SCORED_SAMPLES)]
    rows, Y, fitted = merged.rows[chosen], values[chosen], embedding[merged.rows[chosen]]
    features, precomputed = _features(setup, rows)
    folds = setup.problem.folds
    if folds is None:
        parts = fold_samples(features, merged.weights[chosen], Y, merged.counts[chosen])
    else:
        parts = folds.take(chosen)
    expected = {"fitted": _expect(fitted, fitted, Y, parts)}
    if folds is None or left_out.neighbours is None:
        expected["left_out"] = _expect(left_out.places[chosen], fitted, Y, parts)
    else:
        expected["left_out"] = left_out.neighbours[np.isin(folds.sample, chosen)] @ values
    expected["all_features"] = _expect(features, features, Y, parts, precomputed=precomputed)
    return {name: _score(Y[parts.sample], mean, parts.weights, targets.task) for name, mean in expected.items()}


def _features(setup: FitSetup, rows: Index) -> tuple[Any, bool]:
    """Return features of some rows as the user gave them, or distances between the rows."""
    if isinstance(setup.X, Rows):
        return setup.X.take(rows), False
    sample = setup.problem.sample
    precomputed = isinstance(sample, Sample) and sample.precomputed
    found = setup.X[np.ix_(rows, rows)] if precomputed else setup.X[rows]
    size = float(abs(found).max())
    # Squares of very large numbers overflow, and neighbours do not depend on the unit.
    return (found / size if size > LARGE else found), precomputed


def _expect(points: Any, among: Any, Y: Array, folds: Folds, *, precomputed: bool = False) -> Array:
    """Return the mean target (k, c) of the nearest neighbours of each part of the samples among the other folds."""
    expected = np.repeat(Y.mean(axis=0, keepdims=True), len(folds.sample), axis=0)  # if all samples are in one fold
    for fold in folds.numbers:
        out, (rest, weights) = folds.out(fold), folds.rest(fold)
        if not len(rest):
            break
        new, others = folds.sample[out], np.ix_(rest, rest) if precomputed else rest
        there = points[np.ix_(new, rest)] if precomputed else points[new]
        sites = folds.sites[rest]
        shares = share_neighbours(there, among[others], weights, sites, NEIGHBOURS, precomputed=precomputed)
        expected[out] = shares @ Y[rest]
    return expected


def _score(Y: Array, expected: Array, weights: Array, task: str) -> float:
    """Return the weighted accuracy, or R² (the mean over several targets)."""
    if task == "classification":
        return float(weights @ (Y.argmax(axis=1) == expected.argmax(axis=1)) / weights.sum())
    varying = np.ptp(Y, axis=0) > 0
    Y, expected = Y[:, varying], expected[:, varying]
    mean = weights @ Y / weights.sum()
    return float(np.mean(1.0 - weights @ (Y - expected) ** 2 / (weights @ (Y - mean) ** 2)))


def prototype_evidence(
    prototypes: Array,
    mass: Array,
    believed: Array,
    places: Array,
    weights: Array,
    targets: Targets,
    *,
    units: Index,
    copies: Index,
) -> pd.DataFrame:
    """Describe the targets of the samples whose left-out place is nearest to each prototype in use, one row for each.

    For a prototype with fewer than `LEAST_EVIDENCE` of them (of classes, `LEAST_OF_CLASSES`), that many samples nearest
    to it are taken. Given are the prototypes Z (m, p), their weights `mass` (m,) and their targets as fitted,
    `believed` (m, c). A prototype without weight stands for no sample, so none is assigned to it. Of the distinct
    samples, their left-out `places` (n, p), their `weights` (n,) in shares, means and ranges (samples of weight zero
    are no evidence), their `targets`, and the number of rows that are `copies` (n,) of each. Samples of one of the
    `units` (n,) are not independent: how sure shares and ranges are follows from the number of units.
    """
    used = supervised_rows(targets.values) & (weights > 0)
    places, Y, h, m = places[used], targets.values[used], weights[used], len(prototypes)
    units, copies = units[used], copies[used]
    own = nearest_in_use(places, prototypes, mass)
    counts, n_samples = (np.bincount(own, each, minlength=m).astype(int) for each in (None, copies))
    # Members sorted by prototype; for those with too few, the nearest samples instead.
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(counts)[:-1])
    least = min(LEAST_EVIDENCE if targets.classes is None else LEAST_OF_CLASSES, len(np.unique(units)))
    few = [k for k, rows in enumerate(members) if len(np.unique(units[rows])) < least]
    for k, rows in zip(few, _nearest_of_units(prototypes[few], places, units, least), strict=True):
        members[k] = rows
    describe = _class_shares if targets.classes is not None else _number_ranges
    table, purity, doubted = describe(targets, Y, h, _count_units(h, units, members), believed)
    # Distances in units of the picture's own radius.
    radius = float(np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())) or 1.0
    apart = nearest(prototypes, prototypes[mass > 0], min(2, int((mass > 0).sum())))[0]
    apart = np.where(mass > 0, apart[:, -1], apart[:, 0])  # one in use is its own nearest
    compactness = [np.sqrt(((places[rows] - prototypes[k]) ** 2).sum(axis=1).mean()) for k, rows in enumerate(members)]
    # With about as many prototypes as samples, most prototypes are nearest to no left-out place, and need not be.
    empty = (counts == 0) & (5 * m <= len(places))
    quality = {"purity": purity} | {name: table.pop(name) for name in QUALITY if name in table}
    quality |= {"compactness": np.array(compactness) / radius, "separation": apart / radius}
    frame = pd.DataFrame({"n_samples": n_samples, **table, **quality, "dubious": doubted | empty})
    return frame.rename_axis("prototype")


def _nearest_of_units(prototypes: Array, places: Array, units: Index, least: int) -> list[Index]:
    """Return for each prototype the nearest samples, as many as it takes to hold `least` units."""
    if len(np.unique(units)) == len(units):
        return list(nearest(prototypes, places, least)[1]) if len(prototypes) else []
    order = np.argsort(sq_distances(prototypes, places), axis=1, kind="stable")
    found = []
    for rows in order:
        last = np.sort(np.unique(units[rows], return_index=True)[1])[least - 1]
        found.append(rows[: last + 1])
    return found


def _count_units(h: Array, units: Index, members: list[Index]) -> Members:
    r"""Return the members of each prototype, and their weights, scaled to the number of units that they are worth.

    That is :math:`(\sum_u h_u)^2 / \sum_u h_u^2` with h_u the weight of a unit: if they are equal, all.
    """
    counted = []
    for rows in members:
        of_units = np.bincount(np.unique(units[rows], return_inverse=True)[1], weights=h[rows])
        counted.append((rows, h[rows] * (of_units.sum() / (of_units**2).sum())))
    return counted


def _class_shares(targets: Targets, Y: Array, h: Array, members: Members, believed: Array) -> Description:
    """Return class shares, the largest of each prototype, and whether it is clearly above that of the class believed.

    The largest share p of c classes among n samples is too high by chance. "purity low" and "purity high" are the ends
    of exact (Clopper-Pearson) 95 % intervals for all classes at once, so that they hold for the one that was chosen:
    with k = pn and α = 0.05/c, the α/2 quantile of Beta(k, n − k + 1) and the 1 − α/2 quantile of Beta(k + 1, n − k).
    Clearly is two standard errors of the difference.
    """
    shares = np.array([np.average(Y[own], axis=0, weights=each) for own, each in members])
    purity, n = np.minimum(shares.max(axis=1), 1.0), np.array([each.sum() for _, each in members])  # rounded above 1
    k, tail = purity * n, 0.025 / shares.shape[1]
    high = betaincinv(k + 1.0, np.maximum(n - k, 1e-9), 1.0 - tail)  # 1 if all are of the class
    table = dict(zip(targets.column_names(), shares.T, strict=True))
    table |= {"purity low": betaincinv(k, n - k + 1.0, tail), "purity high": high}
    ours = shares[np.arange(len(shares)), believed.argmax(axis=1)]
    gap = purity - ours  # of two shares of one multinomial sample: its variance is (p + q − (p − q)²)/n
    return table, purity, gap > 2.0 * np.sqrt(np.maximum(purity + ours - gap**2, 0.0) / n)


def _number_ranges(targets: Targets, Y: Array, h: Array, members: Members, believed: Array) -> Description:
    """Return means, deviations and 5 to 95 % ranges, the variance explained, and whether the belief is out of range."""
    # In units of the largest: squares of very large targets would overflow.
    unit = np.abs(Y).max(axis=0)
    Y = Y / np.where(unit > 0, unit, 1.0)
    pairs = [(Y[own], each) for own, each in members]
    means, variances = np.array([_moments(*pair) for pair in pairs]).transpose(1, 0, 2)
    deviations = np.sqrt(variances)
    quantiles = [_quantiles(*pair, (0.05, 0.95)) for pair in pairs]
    low, high = np.array(quantiles).transpose(1, 0, 2)
    table: dict[str, Array] = {}
    for column, mean_name in enumerate(targets.column_names()):
        name = mean_name.removeprefix("mean ")
        parts = {mean_name: means, f"sd {name}": deviations, f"5 % {name}": low, f"95 % {name}": high}
        table |= {title: unit[column] * part[:, column] for title, part in parts.items()}
    purity = 1.0 - (variances / np.maximum(_moments(Y, h)[1], np.finfo(float).tiny)).mean(axis=1)
    return table, purity, ((believed < unit * low) | (believed > unit * high)).any(axis=1)


def _moments(Y: Array, h: Array) -> tuple[Array, Array]:
    mean = np.average(Y, axis=0, weights=h)
    return mean, np.average((Y - mean) ** 2, axis=0, weights=h)


def _quantiles(Y: Array, h: Array, shares: tuple[float, ...]) -> Array:
    """Return Weibull's quantiles of the columns; a value of weight two counts twice.

    This kind of quantile holds a new value with the probability it says, however few values there are.
    """
    if (h == 1.0).all():
        return np.quantile(Y, shares, axis=0, method="weibull")
    order = np.argsort(Y, axis=0, kind="stable")
    reached, columns = np.cumsum(h[order], axis=0), np.take_along_axis(Y, order, axis=0)
    found = np.empty((len(shares), Y.shape[1]))
    for c in range(Y.shape[1]):
        total = reached[-1, c]
        place = np.clip(np.array(shares) * (total + 1.0), min(1.0, total), total)
        below, above = np.floor(place), np.ceil(place)
        at = [
            columns[np.minimum(np.searchsorted(reached[:, c], p * (1.0 - 1e-12)), len(Y) - 1), c]
            for p in (below, above)
        ]
        found[:, c] = at[0] + (place - below) * (at[1] - at[0])
    return found
