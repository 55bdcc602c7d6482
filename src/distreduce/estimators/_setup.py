"""The set-up of a fit: from parameters, X, y and weights to the reduction problem for the solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples, validate_data

from distreduce._utils.hashing import fingerprint
from distreduce._utils.text import warn_user
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index
from distreduce._utils.versions import __version__
from distreduce.estimators._auto import (
    CHOICE_SAMPLES,
    MapChoice,
    choose,
    choose_without_targets,
    require_distances,
    resolve_eta,
    scale_features,
    wants_choice,
)
from distreduce.estimators._expected import (
    choose_with_predictions,
    expected_targets,
    predict_on_shards,
    regress_targets,
    targets_without_folds,
)
from distreduce.estimators._fit_context import check_checkpoint
from distreduce.estimators._targets import Targets, standardize
from distreduce.estimators._validate import (
    check_distances,
    check_graph,
    check_memory,
    check_spread,
    effective_perplexity,
    own_generator,
    power_of_two_unit,
    read_groups,
    read_init,
    read_weights,
    reject_masked,
    reject_text,
)
from distreduce.exceptions import DataWarning, InvalidInputError
from distreduce.kernels import Kernel
from distreduce.losses import BregmanLoss, SquaredLoss, supervised_rows
from distreduce.mapping.axes import MOST_AXES
from distreduce.mapping.folds import Folds, fold_repeated, fold_samples
from distreduce.sharding.dask_rows import compute, empty_rows, is_dask, read_rows
from distreduce.sharding.merge import Merged, merge_duplicates
from distreduce.sharding.rows import LocalRows, Rows
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.solver.checkpoint import Checkpoint
from distreduce.solver.dense import MOST_CROSS_FITTED
from distreduce.solver.problem import ReductionProblem, Settings

# Above this many samples affinity="auto" is sparse: a dense fit then takes gigabytes, and minutes. With eta="auto" the
# border is where a dense fit no longer leaves samples out of all of its steps. On shards the map then learns from all
# samples what classes to predict, and new samples are placed as well in a third of the time (decision 23).
MOST_DENSE, MOST_DENSE_AUTO = 10_000, MOST_CROSS_FITTED
# Prototypes of a fit on shards with n_prototypes=None: with twice as many the picture is no better (decision 23).
SHARDED_PROTOTYPES = 200
# Tolerance of T-steps in units of `tol` if eta="auto": with expected targets, which have no ties, finer ones take many
# times longer, and the plane is as good.
COUPLING_TOL = 10.0
# On shards T-steps are most of a fit, and new samples gain nothing from finer ones than this share of J.
SHARDED_TOL = 1e-3


@dataclass(frozen=True)
class Supervision:
    """The targets of SDR as they were read, their loss and kernel, and the solver's settings; eta may be "auto"."""

    targets: Targets
    loss: BregmanLoss
    kernel: Kernel
    settings: Mapping[str, Any]
    groups: Index | None = None  # of the samples, each of which is left out as a whole


@dataclass(frozen=True)
class FitSetup:
    """All that a fit needs, checked. X are Rows if they lie on a cluster; DistR has no supervision."""

    X: Any
    weights: Array
    supervision: Supervision | None
    merged: Merged
    problem: ReductionProblem
    random_state: np.random.RandomState
    choice: MapChoice | None  # None if nothing was left to the data
    checkpoint: Checkpoint | None


def set_up_fit(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, workers: Workers, choice: MapChoice | None
) -> FitSetup:
    """Read and check the data, merge equal rows, and choose everything that depends on the data.

    The names of the features are set on the estimator. `choice` is that of another fit to the same samples, if there
    is one. Raises InvalidInputError, or CheckpointError if no checkpoint could be written.
    """
    # Read and check; y comes after the weights, which decide which classes occur.
    X, y, sample_weight, sharded = _read_rows(estimator, X, y, sample_weight)
    weights = read_weights(sample_weight, X)
    supervision = None if y is None else estimator._supervise(y, X.shape[0], weights)
    if supervision is not None and groups is not None:
        if sharded or X.shape[0] > MOST_CROSS_FITTED:
            raise InvalidInputError(
                f"groups needs a dense affinity and at most {MOST_CROSS_FITTED:,} samples; got affinity="
                f"{estimator.affinity!r} and {X.shape[0]:,} samples. Draw fewer samples, whole groups of them."
            )
        known = supervised_rows(supervision.targets.values)
        supervision = replace(supervision, groups=read_groups(groups, np.where(known, weights, 0.0)))
    if estimator.metric == "precomputed":
        X = check_distances(X)
    # Hash the parameters before the random generator, which is one of them, is used and so changed.
    m = estimator.n_prototypes or (SHARDED_PROTOTYPES if sharded else X.shape[0])
    parameters = check_checkpoint(estimator, X.shape[0], m, sharded=sharded)
    # Merge equal rows and set up the problem.
    set_up = _set_up_sharded if sharded else _set_up_dense
    merged, problem, random_state, choice = set_up(estimator, X, weights, supervision, workers, choice)
    checkpoint, sample = None, problem.sample
    if parameters is not None:  # it belongs to a fit to these rows as the solver sees them, in that order
        of_fit = fingerprint(__version__, parameters, sample.weights, sample.fingerprints())
        checkpoint = Checkpoint(Path(estimator.checkpoint), of_fit)
    return FitSetup(X, weights, supervision, merged, problem, random_state, choice, checkpoint)


def _read_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, bool]:
    """Validate X, bring y and the weights here from a cluster, and decide whether to work on shards."""
    given, precomputed = X, estimator.metric == "precomputed"
    if is_dask(X):
        # X stays on the cluster if the fit works on shards.
        X, y, sample_weight = read_rows(X, partial(on_shards, estimator)), compute(y), compute(sample_weight)
    sharded = on_shards(estimator, _num_samples(X))
    if not isinstance(X, Rows):  # rows on a cluster have been checked there
        reject_masked(X)
        reject_text(X, estimator)
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn's check sums X, which may overflow
            dtype: Any = [np.float64, np.float32] if sharded else np.float64  # float32 is kept: half the memory
            form = False if precomputed else "csr"
            X = validate_data(estimator, X, accept_sparse=form, dtype=dtype, ensure_min_samples=2)
    if is_dask(given):
        # Names and number of features, which the cluster's rows do not set.
        validate_data(estimator, empty_rows(given), skip_check_array=True)
    if not sharded:
        check_memory(X.shape[0])
    return X, y, sample_weight, sharded


def on_shards(estimator: Any, n: int) -> bool:
    """Return whether to work on a sparse graph of neighbours in shards of rows instead of n×n arrays."""
    affinity, metric, init = estimator.affinity, estimator.metric, estimator.init
    # Whoever gives a start with one prototype per sample wants them all.
    paired = estimator.n_prototypes is None and (not isinstance(init, str) or init == "identity")
    possible = metric == "euclidean" and not paired
    asked = isinstance(affinity, Integral) or (isinstance(affinity, str) and affinity == "sparse")
    if asked and not possible:
        raise InvalidInputError(
            f"affinity={affinity!r} needs metric='euclidean' and fewer prototypes than samples; got metric={metric!r}, "
            f"n_prototypes={estimator.n_prototypes!r}{' and a start for one prototype per sample' if paired else ''}."
        )
    automatic = isinstance(affinity, str) and affinity == "auto"
    most = MOST_DENSE_AUTO if getattr(estimator, "eta", None) == "auto" else MOST_DENSE
    return possible and (asked or (automatic and n > most))


Parts = tuple[Merged, ReductionProblem, np.random.RandomState, MapChoice | None]


def _set_up_dense(
    estimator: Any, X: Any, weights: Array, supervision: Supervision | None, workers: Workers, choice: MapChoice | None
) -> Parts:
    """Merge equal rows in memory."""
    precomputed = estimator.metric == "precomputed"
    # The solver sees each distinct (x, y) once, with the sum of the weights.
    graph = check_graph(estimator, X)
    in_order = precomputed or graph is not None  # equal rows may have different neighbours
    merged = merge_duplicates(X, _target_values(supervision), weights, precomputed=in_order)
    rows = X[np.ix_(merged.rows, merged.rows)] if precomputed else X[merged.rows]
    check_spread(rows, len(merged.rows), precomputed=precomputed)
    unit = _unit(estimator, rows)
    sample = Sample(rows / unit, merged.weights, precomputed, *_solver_targets(supervision, merged))
    # Folds, and with them the number of places that prototypes can have.
    folds = None if supervision is None else _leave_out(supervision.groups, merged, sample)
    n_places = len(np.unique(folds.sites)) if folds is not None and estimator.eta == "auto" else len(merged.rows)
    m = _number_of_prototypes(estimator, X.shape[0], len(merged.rows), n_places)
    # What is left to the data: metric, kernel and ridge of the map, eta, and what the coupling sees of the targets.
    fold_targets = fold_predictions = map_features = None
    if supervision is not None and folds is not None and wants_choice(estimator):
        if choice is None:
            chooser = choose if supervision.targets.classes is None else choose_with_predictions
            choice = chooser(estimator, sample, folds, unit, workers)
        supervision = replace(supervision, settings=resolve_eta(supervision.settings, choice, merged.weights.sum()))
        targets = sample.targets
        if _sees_expected_targets(estimator, choice):
            assert targets is not None
            shares = supervision.targets.classes is not None
            regression = choice.regression or regress_targets(choice.metric, sample, folds)
            targets = expected_targets(regression, targets, shares=shares)
            # With one prototype per sample the coupling does not depend on what it sees.
            if len(targets) <= MOST_CROSS_FITTED and (m is not None or choice.predictions is not None):
                options = {"shares": shares, "coupled": m is not None}
                fold_targets, fold_predictions = targets_without_folds(choice, sample, folds, unit, **options)
        if choice.predictions is not None:
            map_features = scale_features(np.hstack([sample.features, choice.predictions.shares]), choice.scales)
        sample = replace(sample, features=scale_features(sample.features, choice.metric.scales), targets=targets)
    # The problem, with what samples in memory alone have.
    problem = _problem(estimator, sample, sample, supervision, unit, X.shape[0], m, merged, choice)
    adapts = choice is not None and estimator.map_reg == "auto" and _sees_expected_targets(estimator, choice)
    problem = replace(
        problem,
        folds=folds,
        fold_targets=fold_targets,
        fold_predictions=fold_predictions,
        map_features=map_features,
        graph=None if graph is None else graph[merged.rows][:, merged.rows],
        raises_map_reg=adapts and m is not None,
    )
    return merged, problem, own_generator(estimator.random_state), choice


def _leave_out(groups: Index | None, merged: Merged, sample: Sample) -> Folds:
    assert sample.kernel_targets is not None
    # Groups numbered by first appearance among the sorted samples, so that the order of the rows does not matter.
    numbers = None if groups is None else pd.factorize(groups[merged.rows])[0]
    weights, targets = sample.weights, sample.kernel_targets
    return fold_samples(sample.features, weights, targets, merged.counts, numbers, precomputed=sample.precomputed)


def _set_up_sharded(
    estimator: Any, X: Any, weights: Array, supervision: Supervision | None, workers: Workers, choice: MapChoice | None
) -> Parts:
    """Merge equal rows, sort them into cells of near ones, and cut them into shards."""
    rows = X if isinstance(X, Rows) else LocalRows(X, workers)
    check_spread(rows.extremes, rows.shape[0], precomputed=False)
    random_state = own_generator(estimator.random_state)
    merged, unit = rows.merge(_target_values(supervision), weights), _unit(estimator, rows.extremes)
    scale: float | Array = unit
    known: Sample | None = None
    if supervision is not None and wants_choice(estimator):
        known, own_folds = _take_known(rows, merged, supervision, unit)
        choice = choose(estimator, known, own_folds, unit, workers) if choice is None else choice.metric
        supervision = replace(supervision, settings=resolve_eta(supervision.settings, choice, merged.weights.sum()))
        if choice.scales is not None:
            scale = unit * choice.scales
    # Sorted by content, so that neither order nor partition of the rows matters.
    arrangement = rows.arrange(merged, scale, random_state)
    merged = arrangement.merged
    sample, folds = rows.to_shards(scale, *_solver_targets(supervision, merged), arrangement), None
    if supervision is not None and merged.sites is not None:
        numbers = (merged.weights, supervision.targets.scaled[merged.rows], merged.counts)
        folds = fold_repeated(partial(rows.take, merged.rows), merged.sites, *numbers)
    if known is not None and choice is not None and supervision is not None and supervision.targets.classes is not None:
        choice, sample = predict_on_shards(estimator, choice, known, sample, folds, arrangement, unit, workers)
    n, n_distinct = rows.shape[0], len(merged.rows)
    m = _number_of_prototypes(estimator, n, n_distinct, n_distinct)
    if estimator.n_prototypes is None and n_distinct > SHARDED_PROTOTYPES:
        m = SHARDED_PROTOTYPES
        message = f"One prototype for each of {n:,} samples would need n×n arrays, so this fit has {m}. "
        warn_user(f"{message}Give n_prototypes a number, or affinity='dense' for one each.", DataWarning)
    problem = _problem(estimator, sample, sample.subsample, supervision, unit, n, m, merged, choice)
    problem = replace(problem, folds=folds)
    if m is None:  # no more distinct samples than prototypes: few enough for dense arrays
        if estimator.n_prototypes is None and n_distinct < n:
            warn_user(f"Of {n:,} samples only {n_distinct} are distinct: each became a prototype.", DataWarning)
        # Chosen anew: the folds of all samples are not those of the drawn ones.
        X = rows.gather().astype(np.float64)
        return _set_up_dense(estimator, X, weights, supervision, workers, None)
    if supervision is not None and choice is not None and _sees_expected_targets(estimator, choice):
        # The regression needs all targets; with unknown ones the coupling sees those that are known.
        problem = replace(problem, expects_targets=bool(supervised_rows(supervision.targets.values).all()))
    return merged, problem, random_state, choice


def _sees_expected_targets(estimator: Any, choice: MapChoice) -> bool:
    """Return whether the coupling sees expected targets; with a number for eta it sees the targets themselves."""
    return estimator.eta == "auto" and choice.has_signal and not np.isnan(choice.error)


def _take_known(rows: Rows, merged: Merged, supervision: Supervision, unit: float) -> tuple[Sample, Folds]:
    """Return the first known samples by hash, an order that does not depend on others, and the folds of each."""
    targets, kernel_targets = _solver_targets(supervision, merged)
    assert targets is not None and kernel_targets is not None
    drawn = np.flatnonzero(supervised_rows(kernel_targets))[:CHOICE_SAMPLES]
    features = rows.take(merged.rows[drawn]) / unit
    sample = Sample(features, merged.weights[drawn], False, targets[drawn], kernel_targets[drawn])
    return sample, fold_samples(features, sample.weights, kernel_targets[drawn], merged.counts[drawn])


def _target_values(supervision: Supervision | None) -> Array | None:
    return None if supervision is None else supervision.targets.values


def _solver_targets(supervision: Supervision | None, merged: Merged) -> tuple[Array | None, Array | None]:
    """Return the targets of the distinct samples, for the supervision loss and for the dependence."""
    if supervision is None:
        return None, None
    targets = supervision.targets
    values, scaled = targets.values[merged.rows], targets.scaled[merged.rows]
    if targets.classes is None:  # computed from what the solver sees, so that the order of the rows does not matter
        scaled, _ = standardize(values, merged.weights)
    # Other losses have a domain, such as counts, which scaling would leave.
    return scaled if isinstance(supervision.loss, SquaredLoss) else values, scaled


def _unit(estimator: Any, rows: Any) -> float:
    """Return a power of two to divide X by, which is exact; 1 if the kernel has a scale of its own."""
    kernel = estimator.input_kernel
    return power_of_two_unit(rows) if isinstance(kernel, str) and kernel != "linear" else 1.0


def _problem(
    estimator: Any,
    sample: Any,
    subsample: Sample,
    supervision: Supervision | None,
    unit: float,
    n: int,
    m: int | None,
    merged: Merged,
    choice: MapChoice | None,
) -> ReductionProblem:
    """Return the reduction problem of a sample; what was not chosen comes from the parameters."""
    chosen = choice or choose_without_targets(estimator, subsample, unit, has_signal=True)
    require_distances(estimator, chosen.kernel, precomputed=subsample.precomputed)
    # With eta = 0 targets act through the coupling alone (the paper's variant): the start must not see them.
    blind = supervision is not None and supervision.settings["eta"] == 0
    # A large ridge would shrink the picture to a point, so the weight of the map falls as its ridge grows.
    mu = estimator.mu / (1.0 + choice.ridge) if choice is not None and estimator.map_reg == "auto" else estimator.mu
    # A picture of what y says, whose form the user leaves to the data.
    automatic = choice is not None and choice.has_signal and estimator.eta == estimator.embedding_kernel == "auto"
    return ReductionProblem(
        sample=sample,
        settings=_settings(estimator, supervision, sharded=isinstance(sample, ShardedSample)),
        n_components=estimator.n_components,
        n_prototypes=m,
        perplexity=effective_perplexity(estimator.perplexity, merged.weights),
        init=read_init(estimator, merged, n, blind=blind and m is not None),
        target_loss=SquaredLoss() if supervision is None else supervision.loss,
        target_kernel=None if supervision is None else supervision.kernel,
        input_kernel=chosen.kernel,
        mu=mu,
        map_reg=estimator.map_reg if choice is None else choice.ridge * mu,
        unit=unit,
        scales=chosen.scales,
        fold_scales=chosen.fold_scales,
        predictions=chosen.predictions,
        prototypes_on_map=choice is not None and estimator.eta == "auto",
        opens_axes=automatic and estimator.n_components <= MOST_AXES,
        has_signal=chosen.has_signal,
        n_neighbors=int(estimator.affinity) if isinstance(estimator.affinity, Integral) else None,
    )


def _settings(estimator: Any, supervision: Supervision | None, *, sharded: bool) -> Settings:
    """Return the settings of the solver; without targets the objective is GW and the map alone (DistR)."""
    settings = {"alpha": 1.0, "eta": 0.0} if supervision is None else dict(supervision.settings)
    # One prototype per sample: the coupling that pairs them is a stationary point, and T-steps take most of the time.
    paired = estimator.n_prototypes is None and isinstance(estimator.init, str) and not sharded
    settings["fixed_coupling"] = paired and supervision is not None and estimator.eta == "auto"
    if supervision is not None and estimator.eta == "auto":
        # A finer or coarser `tol` than the default makes T-steps finer or coarser.
        coarse = SHARDED_TOL / max(estimator.tol, Settings.tol)
        settings["coupling_tol"] = max(COUPLING_TOL, coarse) if sharded else COUPLING_TOL
        # The start separates the targets themselves, noise included; the T-steps see expected ones.
        settings["leave_start"] = isinstance(estimator.init, str) and settings["eta"] > 0
    names = ("loss", "solver", "optimizer", "beta", "learning_rate", "max_iter", "max_inner_iter", "tol", "backend")
    return Settings(**{name: getattr(estimator, name) for name in names}, **settings)


def _number_of_prototypes(estimator: Any, n: int, n_distinct: int, n_places: int) -> int | None:
    """Return m, or None for one prototype per distinct sample; samples with equal features need no more than one."""
    m = estimator.n_prototypes
    if m is None:
        return None
    if m > n:
        raise InvalidInputError(
            f"n_prototypes={m} is more than the number of samples, {n}; give at most {n}, or None for one each."
        )
    if n_places < n_distinct and n_places < m < n and isinstance(estimator.init, str):
        message = f"n_prototypes={m}, but the samples have only {n_places} different rows of X: no more are needed."
        warn_user(message, DataWarning)
        return n_places
    if n_distinct < m < n:  # m = n asks for one prototype per sample, copies included
        message = f"n_prototypes={m}, but only {n_distinct} samples are distinct: each became a prototype."
        warn_user(message, DataWarning)
    return int(m) if m < n_distinct else None
