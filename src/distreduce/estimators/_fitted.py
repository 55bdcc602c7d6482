"""From a fit on distinct samples to the fitted attributes, which describe the rows that the user passed.

Left-out samples say what a fit is worth: scores of neighbours in the plane, and the targets near each prototype.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import betaincinv

from distreduce._utils.numerics import evenly_spaced, nearest
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.coupling.problem import column_mass
from distreduce.estimators._setup import FitSetup, Supervision
from distreduce.estimators._targets import Targets
from distreduce.losses import supervised_rows
from distreduce.mapping import KernelMap, LeftOut, barycentres
from distreduce.mapping.folds import Folds, assign_folds, find_sites
from distreduce.mapping.left_out import share_neighbours
from distreduce.sharding.merge import Merged
from distreduce.sharding.rows import Rows
from distreduce.sharding.sample import Sample
from distreduce.solver.loop import Fitted

CROWDED = 0.005  # of the width of the picture: marks of prototypes nearer than this lie on each other


def fitted_attributes(setup: FitSetup, fitted: Fitted, estimator: Any, workers: Workers) -> dict[str, Any]:
    """Return the fitted attributes of an estimator by name."""
    reduction, merged, X = fitted.reduction, setup.merged, setup.X
    # From distinct samples back to the rows of X: the map, the embedding, the coupling.
    map_ = _map_from_all(fitted.map, merged)
    embedding = X.map(map_) if isinstance(X, Rows) else map_(X, workers)
    # False if fewer samples were distinct than prototypes wanted: then each distinct sample is one prototype.
    one_to_one = setup.problem.n_prototypes is None and estimator.n_prototypes in (None, len(setup.weights))
    plan, Z = reduction.plan, reduction.prototypes
    if setup.problem.prototypes_on_map:
        Z = _move_onto_map(Z, plan, embedding[merged.rows])
        if setup.problem.n_prototypes is not None:
            plan = merge_crowded(plan, Z, float(np.ptp(embedding, axis=0).max()))
            Z = _move_onto_map(Z, plan, embedding[merged.rows])
    coupling, prototypes, mass = expand(plan, Z, merged, setup.weights, embedding, one_to_one)
    medoids = fitted.medoids if one_to_one else np.where(mass > 0, fitted.medoids, -1)  # those merged away have none
    found = {
        "map_": map_,
        "embedding_": embedding,
        "coupling_": coupling,
        "prototypes_": prototypes,
        "prototype_weights_": mass,
        "labels_": np.asarray(coupling.argmax(axis=1)).ravel(),
        "prototype_medoids_": _medoid_rows(medoids, merged, reduction.prototypes, embedding, one_to_one),
        "history_": pd.DataFrame([asdict(record) for record in reduction.history]),
        "objective_": reduction.objective,
        "n_iter_": len(reduction.history),
        "converged_": reduction.converged,
        "perplexity_": setup.problem.perplexity,
    }
    if setup.supervision is None:
        return found
    found |= _target_attributes(setup.supervision, coupling, setup.weights)
    if not np.isfinite(embedding).all():  # the fit is refused; see whole_fit
        return found
    return found | _left_out_attributes(setup, fitted, found, estimator.mu)


def _move_onto_map(prototypes: Array, plan: Plan, embedding: Array) -> Array:
    """Move prototypes to the mean place of their samples on the map; unused ones stay."""
    mass = column_mass(plan)[:, None]
    return np.where(mass > 0, (plan.T @ embedding) / np.where(mass > 0, mass, 1.0), prototypes)


def merge_crowded(plan: Plan, prototypes: Array, width: float) -> Plan:
    """Merge prototypes (m, p) that a picture of some width cannot show apart, and return the coupling.

    From the heaviest to the lightest, each joins the nearest heavier one that has joined no other, if that is within
    half a percent of the width. Its column of the coupling is then empty, as that of an unused prototype.
    """
    mass = column_mass(plan)
    target = np.arange(len(mass))
    kept: list[int] = []
    for k in np.argsort(-mass, kind="stable")[: np.count_nonzero(mass)]:
        distances = np.linalg.norm(prototypes[kept] - prototypes[k], axis=1)
        if kept and distances.min() < CROWDED * width:
            target[k] = kept[int(distances.argmin())]
        else:
            kept.append(int(k))
    joins = sparse.csr_array((np.ones(len(mass)), (np.arange(len(mass)), target)), shape=(len(mass), len(mass)))
    return sparse.csr_array(plan @ joins)


def _left_out_attributes(setup: FitSetup, fitted: Fitted, found: dict[str, Any], mu: float) -> dict[str, Any]:
    """Return what is known of the samples as if they were new."""
    left_out, merged, supervision = fitted.left_out, setup.merged, setup.supervision
    assert left_out is not None and supervision is not None
    # Rows of weight zero took no part in the fit: their places are left-out ones already.
    used = (merged.group >= 0)[:, None]
    places = np.where(used, left_out.places[np.maximum(merged.group, 0)], found["embedding_"])
    prototypes, mass, believed = (found[f"prototype{name}_"] for name in ("s", "_weights", "_targets"))
    evidence = prototype_evidence(prototypes, mass, believed, places, setup.weights, supervision.targets)
    return {
        "embedding_left_out_": places,
        "neighbor_scores_": neighbor_scores(setup, found["embedding_"], left_out),
        "prototype_evidence_": evidence,
        "eta_": setup.problem.settings.eta,
        "map_reg_": fitted.ridge * mu,
    }


def _target_attributes(supervision: Supervision, coupling: Plan, weights: Array) -> dict[str, Any]:
    targets = supervision.targets
    # Rows of the coupling sum to one; the mean targets need masses.
    plan = sparse.csr_array(sparse.diags_array(weights) @ coupling)
    found = {
        "prototype_targets_": supervision.loss.prototype_targets(plan, targets.values),
        "task_": targets.task,
        "target_names_": targets.column_names(),
    }
    return found if targets.classes is None else found | {"classes_": targets.classes}


def _map_from_all(found: KernelMap, merged: Merged) -> KernelMap:
    """With precomputed distances, new rows include those to samples of weight zero: their coefficients are zero."""
    if found.inputs is not None:
        return found
    coefficients = np.zeros((len(merged.group), found.coefficients.shape[1]))
    coefficients[merged.rows] = found.coefficients
    return replace(found, coefficients=coefficients)


def expand(
    plan: Plan, prototypes: Array, merged: Merged, sample_weight: Array, embedding: Array, one_to_one: bool
) -> tuple[Plan, Array, Array]:
    """Give every row of the data its row of the coupling and, if `one_to_one` (m = n), its own prototype.

    Rows of weight zero took no part in the fit: they are assigned to the prototype nearest to their embedding. Returns
    the coupling (n, m), whose rows sum to one, the prototypes (m, p), and the share of the weight on each.
    """
    shares = barycentres(plan, merged.weights)
    if one_to_one:
        return _expand_one_to_one(shares, prototypes, merged, sample_weight, embedding)
    unused = np.flatnonzero(merged.group < 0)
    # Copies share a row; rows of weight zero get a wrong one, replaced below.
    rows = shares[np.maximum(merged.group, 0)]
    if len(unused):
        in_use = np.flatnonzero(column_mass(plan))
        entries = (np.ones(len(unused)), (unused, in_use[nearest(embedding[unused], prototypes[in_use])[1].ravel()]))
        # Zero out their rows, then set one entry in each.
        kept = sparse.diags_array((merged.group >= 0).astype(float)) @ rows
        rows = sparse.csr_array(kept + sparse.csr_array(entries, shape=rows.shape))
        rows.eliminate_zeros()
    mass = column_mass(plan)
    return sparse.csr_array(rows), prototypes, mass / mass.sum()


def _expand_one_to_one(
    shares: Plan, prototypes: Array, merged: Merged, sample_weight: Array, embedding: Array
) -> tuple[Plan, Array, Array]:
    """Copies of a sample get copies of its prototype; the mass that a sample keeps stays on its own copy."""
    n, group = len(sample_weight), merged.group
    used = group >= 0
    # Each row's part of the weight of its group.
    part = np.zeros(n)
    part[used] = sample_weight[used] / merged.weights[group[used]]
    membership = sparse.csr_array((part[used], (np.flatnonzero(used), group[used])), shape=(n, len(merged.rows)))
    # Mass that stays on the sample's own prototype goes to the row's own copy.
    own = np.ones(n)
    own[used] = shares.diagonal()[group[used]]
    # Mass on other prototypes is divided among their copies, in proportion to weight.
    others = shares - sparse.diags_array(shares.diagonal())
    spread = sparse.csr_array((membership > 0).astype(float) @ others @ membership.T)
    coupling = sparse.csr_array(sparse.diags_array(own) + spread)
    coupling.eliminate_zeros()
    # Rows of weight zero become prototypes where the map puts them.
    placed = np.where(used[:, None], prototypes[np.maximum(group, 0)], embedding)
    return coupling, placed, sample_weight / sample_weight.sum()


def _medoid_rows(found: Index, merged: Merged, prototypes: Array, embedding: Array, one_to_one: bool) -> Index:
    """Return rows of the data for medoids among the distinct samples (−1: none).

    With one prototype per row (`one_to_one`), rows that represent themselves are their own medoids, copies included. An
    unused prototype gets the sample nearest to it in the embedding.
    """
    if one_to_one:
        group = merged.group
        # Rows whose group is represented by another group.
        others = (group >= 0) & (found[group] >= 0) & (found[group] != group)
        return np.where(others, merged.rows[found[group]], np.arange(len(group)))
    rows = merged.rows[found]
    for k in np.flatnonzero(found < 0):  # unused prototypes
        rows[k] = ((embedding - prototypes[k]) ** 2).sum(axis=1).argmin()
    return rows


NEIGHBORS = 10
SCORED_SAMPLES = 5000  # more would hardly change the scores
# The least number of values whose extremes hold a new one in 9 of 10 cases: (k − 1)/(k + 1) = 0.9.
LEAST_EVIDENCE = 19
# Columns that describe a prototype itself.
QUALITY = ("purity", "purity low", "purity high", "compactness", "separation", "dubious")
LARGE = 1e100  # numbers whose squares may overflow


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
        parts = assign_folds(find_sites(features), merged.weights[chosen], Y, merged.counts[chosen])
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
        shares = share_neighbours(there, among[others], weights, sites, NEIGHBORS, precomputed=precomputed)
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
    prototypes: Array, mass: Array, believed: Array, places: Array, weights: Array, targets: Targets
) -> pd.DataFrame:
    """Describe the targets of the samples whose left-out place is nearest to each prototype in use, one row for each.

    For a prototype with fewer than `LEAST_EVIDENCE` of them, that many samples nearest to it are taken. Given are the
    prototypes Z (m, p), their weights `mass` (m,) and their targets as fitted, `believed` (m, c). A prototype without
    weight stands for no sample, so none is assigned to it. Of the rows, their left-out `places` (n, p), their `weights`
    (n,), as counts in shares, means and ranges (rows of weight zero are no evidence), and their `targets`.
    """
    used = supervised_rows(targets.values) & (weights > 0)
    places, Y, h, m = places[used], targets.values[used], weights[used], len(prototypes)
    in_use = np.flatnonzero(mass)
    own = in_use[nearest(places, prototypes[in_use])[1][:, 0]]
    counts = np.bincount(own, minlength=m)
    # Members sorted by prototype; for those with too few, the nearest samples instead.
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(counts)[:-1])
    least = min(LEAST_EVIDENCE, len(places))
    close = nearest(prototypes, places, least)[1]
    members = [rows if len(rows) >= least else close[k] for k, rows in enumerate(members)]
    describe = _class_shares if targets.classes is not None else _number_ranges
    table, purity, doubted = describe(targets, Y, h, members, believed)
    # Distances in units of the picture's own radius.
    radius = float(np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())) or 1.0
    apart = nearest(prototypes, prototypes[in_use], min(2, len(in_use)))[0]
    apart = np.where(mass > 0, apart[:, -1], apart[:, 0])  # one in use is its own nearest
    compactness = [np.sqrt(((places[rows] - prototypes[k]) ** 2).sum(axis=1).mean()) for k, rows in enumerate(members)]
    # With about as many prototypes as samples, most prototypes are nearest to no left-out place, and need not be.
    empty = (counts == 0) & (5 * m <= len(places))
    quality = {"purity": purity} | {name: table.pop(name) for name in QUALITY if name in table}
    quality |= {"compactness": np.array(compactness) / radius, "separation": apart / radius}
    frame = pd.DataFrame({"n_samples": counts, **table, **quality, "dubious": doubted | empty})
    return frame.rename_axis("prototype")


Description = tuple[dict[str, Array], Array, Array]


def _class_shares(targets: Targets, Y: Array, h: Array, members: list[Index], believed: Array) -> Description:
    """Return class shares, the largest of each prototype, and whether it is clearly above that of the class believed.

    The largest share p of c classes among n samples is too high by chance. "purity low" and "purity high" are the ends
    of exact (Clopper-Pearson) 95 % intervals for all classes at once, so that they hold for the one that was chosen:
    with k = pn and α = 0.05/c, the α/2 quantile of Beta(k, n − k + 1) and the 1 − α/2 quantile of Beta(k + 1, n − k).
    Clearly is two standard errors of the difference.
    """
    shares = np.array([np.average(Y[own], axis=0, weights=h[own]) for own in members])
    purity, n = shares.max(axis=1), np.array([h[own].sum() for own in members])
    k, tail = purity * n, 0.025 / shares.shape[1]
    high = betaincinv(k + 1.0, np.maximum(n - k, 1e-9), 1.0 - tail)  # 1 if all are of the class
    table = dict(zip(targets.column_names(), shares.T, strict=True))
    table |= {"purity low": betaincinv(k, n - k + 1.0, tail), "purity high": high}
    ours = shares[np.arange(len(shares)), believed.argmax(axis=1)]
    gap = purity - ours  # of two shares of one multinomial sample: its variance is (p + q − (p − q)²)/n
    return table, purity, gap > 2.0 * np.sqrt(np.maximum(purity + ours - gap**2, 0.0) / n)


def _number_ranges(targets: Targets, Y: Array, h: Array, members: list[Index], believed: Array) -> Description:
    """Return means, deviations and 5 to 95 % ranges, the variance explained, and whether the belief is out of range."""
    # In units of the largest: squares of very large targets would overflow.
    unit = np.abs(Y).max(axis=0)
    Y = Y / np.where(unit > 0, unit, 1.0)
    means, variances = np.array([_moments(Y[own], h[own]) for own in members]).transpose(1, 0, 2)
    deviations = np.sqrt(variances)
    quantiles = [_quantiles(Y[own], h[own], (0.05, 0.95)) for own in members]
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
