"""From a fit on distinct samples to the fitted attributes, which describe the rows that the user passed."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.coupling.problem import column_mass
from distreduce.dependence import prototype_means
from distreduce.estimators._evidence import neighbor_scores, prototype_evidence
from distreduce.estimators._setup import FitSetup, Supervision, on_shards
from distreduce.mapping import KernelMap, barycentres
from distreduce.sharding.merge import Merged
from distreduce.sharding.rows import Rows
from distreduce.solver.loop import Fitted

CROWDED = 0.005  # of the width of the picture: marks of prototypes nearer than this lie on each other


def fitted_attributes(setup: FitSetup, fitted: Fitted, estimator: Any, workers: Workers) -> dict[str, Any]:
    """Return the fitted attributes of an estimator by name."""
    reduction, merged, X = fitted.reduction, setup.merged, setup.X
    # From distinct samples back to the rows of X: the map, the embedding, the coupling.
    map_ = _map_from_all(fitted.map, merged)
    embedding = X.map(map_) if isinstance(X, Rows) else map_(X, workers)
    # False if fewer samples were distinct than prototypes wanted: then each distinct sample is one prototype.
    wanted, n = estimator.n_prototypes, len(setup.weights)
    every_row = wanted == n or (wanted is None and (merged.trivial or not on_shards(estimator, n)))
    one_to_one = setup.problem.n_prototypes is None and every_row
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
    mass = column_mass(plan)
    return np.where(mass[:, None] > 0, prototype_means(plan.T @ embedding, mass), prototypes)


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
    # Of distinct samples: copies are not independent, and neither are samples of one group.
    targets, groups = supervision.targets, supervision.groups
    targets = replace(targets, values=targets.values[merged.rows], scaled=targets.scaled[merged.rows])
    units = np.arange(len(merged.rows)) if groups is None else groups[merged.rows]
    evidence = prototype_evidence(
        prototypes, mass, believed, left_out.places, merged.weights, targets, units=units, copies=merged.counts
    )
    scores = neighbor_scores(setup, found["embedding_"], left_out)
    chosen = {"eta_": setup.problem.settings.eta, "map_reg_": fitted.ridge * mu}
    return {"embedding_left_out_": places, "neighbor_scores_": scores, "prototype_evidence_": evidence} | chosen


def _target_attributes(supervision: Supervision, coupling: Plan, weights: Array) -> dict[str, Any]:
    targets = supervision.targets
    # Rows of the coupling sum to one; the mean targets need masses.
    plan = sparse.csr_array(sparse.diags_array(weights) @ coupling)
    means = supervision.loss.prototype_targets(plan, targets.values)
    found = {"prototype_targets_": means, "task_": targets.task, "target_names_": targets.column_names()}
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
        entries = (np.ones(len(unused)), (unused, nearest_in_use(embedding[unused], prototypes, column_mass(plan))))
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
