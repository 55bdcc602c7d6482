"""What SDR and DistR share: validation, the call of the solver, fitted attributes. No mathematics."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from distreduce._utils.threads import Workers, workers
from distreduce._utils.typing import Array
from distreduce._utils.warnings import warn_user
from distreduce.estimators._callbacks import CallbackSupportMixin, told_callbacks
from distreduce.estimators._checkpoints import checked_place
from distreduce.estimators._fitted import expand, rows_of_medoids
from distreduce.estimators._progress import both, progress
from distreduce.estimators._renamed import (
    RenamedParametersMixin,
    Translation,
    leave_out,
    translate_device,
    translate_n_neighbors,
)
from distreduce.estimators._saving import SavingMixin
from distreduce.estimators._targets import Targets, standardised
from distreduce.estimators._transaction import Fitting, whole_fit
from distreduce.estimators._validate import (
    Backends,
    check_distances,
    check_memory,
    check_spread,
    effective_perplexity,
    own_generator,
    power_of_two_unit,
    read_weights,
)
from distreduce.estimators._warnings import tell
from distreduce.exceptions import DataWarning, InvalidInputError
from distreduce.kernels import DistanceKernel, Kernel
from distreduce.losses import BregmanLoss, SquaredLoss
from distreduce.mapping import KernelMap
from distreduce.sharding.dask_collections import compute, empty_rows, is_dask, predict_by_blocks
from distreduce.sharding.merge import Merged, merge_duplicates
from distreduce.sharding.rows import LocalRows, Rows
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.solver.checkpoint import Checkpoint
from distreduce.solver.fit import Fitted, Recipe, fit_sample, input_kernel, untold
from distreduce.solver.fit_sharded import fit_shards, neighbours_for
from distreduce.solver.loop import Settings

# Above this many samples affinity="auto" is sparse: a dense fit then takes gigabytes, and minutes.
MOST_DENSE = 10_000


class Prepared(NamedTuple):
    """A sample as the solver sees it, how its rows were merged, all choices, and the fit that is left to do."""

    sample: Sample | ShardedSample
    merged: Merged
    recipe: Recipe
    solve: Callable[..., Fitted]


class BaseReduction(
    RenamedParametersMixin,
    SavingMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Parameters, validation and attributes common to the supervised and the unsupervised reduction."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "map_reg": [Interval(Real, 0, None, closed="neither")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "loss": [StrOptions({"kl", "square"})],
        "input_kernel": [StrOptions({"rbf", "rq", "linear"}), callable],
        "length_scale": [StrOptions({"median", "ard"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "metric": [StrOptions({"euclidean", "precomputed"})],
        "affinity": [StrOptions({"auto", "dense", "sparse"}), Interval(Integral, 2, None, closed="left")],
        "init": [
            StrOptions({"auto", "identity", "random", "kmeans", "spectral", "supervised_spectral"}),
            "array-like",
            "sparse matrix",
        ],
        "solver": [StrOptions({"joint", "alternating"})],
        "optimizer": [StrOptions({"lbfgs", "adam"})],
        "beta": [Interval(Real, 0, 1, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "max_inner_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "backend": [Backends({"auto", "numba", "numpy", "torch"})],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "checkpoint": [str, os.PathLike, None],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {
        "device": translate_device,
        "checkpoint_every": leave_out,
        "n_neighbors": translate_n_neighbors,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric != "precomputed"
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.prototypes_.shape[1])

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen: z(x) = K(x, X_train) L.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; with ``metric="precomputed"`` distances to the samples of the fit, (n_samples, n_samples_fit).

        Returns
        -------
        array of shape (n_samples, n_components)
            The place of a sample does not depend on the other samples it is given with.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predict_by_blocks(self, "transform", X)
        precomputed = self.map_.inputs is None
        accept_sparse = False if precomputed else "csr"
        X = validate_data(self, X, reset=False, accept_sparse=accept_sparse, dtype=[np.float64, np.float32])
        if precomputed and (X < 0).any():
            raise InvalidInputError(f"Negative values in data passed to {type(self).__name__}: distances are ≥ 0.")
        with workers(self.n_jobs) as pool:
            return self.map_(X, pool)

    def summary(self) -> pd.DataFrame:
        """One row a prototype, heaviest first: weight, number of samples, medoid, place and target.

        Returns
        -------
        pandas.DataFrame
        """
        check_is_fitted(self)
        table = {
            "weight": self.prototype_weights_,
            "n_samples": np.bincount(self.labels_, minlength=len(self.prototypes_)),
            "medoid": self.prototype_medoids_,
        }
        names = self.get_feature_names_out()
        table |= dict(zip(names, self.prototypes_.T, strict=True))
        if hasattr(self, "prototype_targets_"):
            table |= dict(zip(self.target_names_, self.prototype_targets_.T, strict=True))
        frame = pd.DataFrame(table).rename_axis("prototype")
        return frame.sort_values("weight", ascending=False, kind="stable")

    def _fit(self, X: Any, sample_weight: Any, supervised: bool, y: Any = None) -> None:
        """Validate, merge duplicates, solve, and set the fitted attributes; nothing is set if anything fails."""
        with whole_fit(self) as fitting:
            checkpoint = self._validate_and_solve(X, sample_weight, supervised, y, fitting)
        try:
            tell(self, fitting.best)
            if checkpoint is not None and checkpoint.raised is not None:
                raise checkpoint.raised
        finally:
            if fitting.best.interrupted:
                raise KeyboardInterrupt

    def _validate_and_solve(
        self, X: Any, sample_weight: Any, supervised: bool, y: Any, fitting: Fitting
    ) -> Checkpoint | None:
        self._validate_params()
        precomputed, given = self.metric == "precomputed", X
        if is_dask(X):
            from distreduce.sharding.dask_rows import read_rows

            X, y, sample_weight = read_rows(X, self._on_shards), compute(y), compute(sample_weight)
        sharded = self._on_shards(_num_samples(X))
        if not isinstance(X, Rows):  # else rows on a cluster, which have been checked there
            X = validate_data(
                self,
                X,
                accept_sparse=False if precomputed else "csr",
                dtype=[np.float64, np.float32] if sharded else np.float64,
                ensure_min_samples=2,
            )
        if is_dask(given):
            validate_data(self, empty_rows(given), skip_check_array=True)
        if not sharded:
            check_memory(X.shape[0])
        weights = read_weights(sample_weight, X)
        targets = self._read_targets(y, X.shape[0], weights) if supervised else None
        if precomputed:
            X = check_distances(X)
        place = checked_place(self, X.shape[0], sharded=sharded)
        prepared = self._prepared_on_shards if sharded else self._prepared_dense
        bar = progress(type(self).__name__, self.max_iter, self.verbose)
        with workers(self.n_jobs) as pool, bar as advance:
            sample, merged, recipe, solve = prepared(X, weights, targets, pool)
            checkpoint = None if place is None else place.of(sample)
            with told_callbacks(self, given, y, sample_weight) as tell:
                stage = untold if advance is None else advance.stage
                fitted = solve(callback=both(advance, tell), checkpoint=checkpoint, stage=stage)
                fitting.best = fitted.reduction
                self.map_ = self._map_from_all(fitted.map, merged)
                self.embedding_ = X.map(self.map_) if isinstance(X, Rows) else self.map_(X, pool)
                self._set_attributes(weights, merged, targets, recipe, fitted)
        return checkpoint

    def _on_shards(self, n: int) -> bool:
        """Whether to work on a sparse graph of neighbours in shards of rows instead of n×n arrays."""
        possible = self.metric == "euclidean" and self.n_prototypes is not None
        asked = self.affinity not in ("auto", "dense")
        if asked and not possible:
            raise InvalidInputError(
                f"affinity={self.affinity!r} needs metric='euclidean' and n_prototypes, a number of prototypes below "
                f"that of the samples; got metric={self.metric!r}, n_prototypes={self.n_prototypes!r}."
            )
        return possible and (asked or (self.affinity == "auto" and n > MOST_DENSE))

    def _prepared_dense(self, X: Any, weights: Array, targets: Targets | None, pool: Workers) -> Prepared:
        precomputed = self.metric == "precomputed"
        merged = merge_duplicates(X, None if targets is None else targets.values, weights, precomputed=precomputed)
        check_spread(
            X[np.ix_(merged.rows, merged.rows)] if precomputed else X[merged.rows],
            len(merged.rows),
            precomputed=precomputed,
        )
        sample, unit = self._sample(X, merged, targets)
        recipe = self._recipe(sample, targets, unit, X.shape[0], merged)
        random_state = own_generator(self.random_state)
        return Prepared(
            sample, merged, recipe, partial(fit_sample, sample, recipe, workers=pool, random_state=random_state)
        )

    def _prepared_on_shards(self, X: Any, weights: Array, targets: Targets | None, pool: Workers) -> Prepared:
        rows = X if isinstance(X, Rows) else LocalRows(X, pool)
        check_spread(rows.extremes, rows.shape[0], precomputed=False)
        random_state = own_generator(self.random_state)
        arrangement = rows.arrange(None if targets is None else targets.values, weights, random_state)
        merged, unit = arrangement.merged, self._unit(rows.extremes)
        values, scaled = (None, None) if targets is None else self._solver_targets(targets, merged)
        large = rows.to_shards(unit, values, scaled, arrangement)
        recipe = self._recipe(large.subsample, targets, unit, rows.shape[0], merged)
        if recipe.n_prototypes is None:  # no more distinct samples than prototypes: few enough for dense arrays
            return self._prepared_dense(rows.gather().astype(np.float64), weights, targets, pool)
        k = neighbours_for(
            None if isinstance(self.affinity, str) else int(self.affinity), recipe.perplexity, len(merged.rows)
        )
        return Prepared(
            large, merged, recipe, partial(fit_shards, large, recipe, k, workers=pool, random_state=random_state)
        )

    def _unit(self, rows: Any) -> float:
        """A power of two (exact) to compute in, unless the kernel is given in units of its own."""
        free = isinstance(self.input_kernel, str) and self.input_kernel != "linear"
        return power_of_two_unit(rows) if free else 1.0

    def _sample(self, X: Any, merged: Merged, targets: Targets | None) -> tuple[Sample, float]:
        """The distinct samples in units of a power of two."""
        precomputed = self.metric == "precomputed"
        rows = X[np.ix_(merged.rows, merged.rows)] if precomputed else X[merged.rows]
        unit = self._unit(rows)
        values, scaled = (None, None) if targets is None else self._solver_targets(targets, merged)
        return Sample(rows / unit, merged.weights, precomputed, values, scaled), unit

    def _solver_targets(self, targets: Targets, merged: Merged) -> tuple[Array, Array]:
        """Targets of the distinct samples as the supervision loss and as the dependence see them."""
        values, scaled = targets.values[merged.rows], targets.scaled[merged.rows]
        if targets.classes is None:  # from what the solver sees: no order of rows matters
            scaled, _ = standardised(values, merged.weights)
        return scaled if isinstance(self._supervision(targets), SquaredLoss) else values, scaled

    def _recipe(self, sample: Sample, targets: Targets | None, unit: float, n: int, merged: Merged) -> Recipe:
        kernel = input_kernel(self.input_kernel, self.length_scale, sample, unit)
        if sample.precomputed and not isinstance(kernel, DistanceKernel):
            raise InvalidInputError(
                f"input_kernel={self.input_kernel!r} is no function of a distance, which metric='precomputed' needs."
            )
        return Recipe(
            settings=self._settings(targets, float(merged.weights.sum())),
            n_components=self.n_components,
            n_prototypes=self._number_of_prototypes(n, len(merged.rows)),
            perplexity=effective_perplexity(self.perplexity, merged.weights),
            init=self._init_for(merged, n),
            supervision=SquaredLoss() if targets is None else self._supervision(targets),
            target_kernel=None if targets is None else self._target_kernel(targets),
            input_kernel=kernel,
            mu=self.mu,
            map_reg=self.map_reg,
            unit=unit,
        )

    def _settings(self, targets: Targets | None, total_weight: float) -> Settings:
        """The solver's settings; without targets the objective is GW alone (the paper's DistR)."""
        return Settings(
            loss=self.loss,
            solver=self.solver,
            optimizer=self.optimizer,
            beta=self.beta,
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_inner_iter=self.max_inner_iter,
            tol=self.tol,
            backend=self.backend,
            **({"alpha": 1.0, "eta": 0.0} if targets is None else self._supervised_settings(total_weight)),
        )

    def _supervised_settings(self, total_weight: float) -> dict[str, Any]:
        raise NotImplementedError

    def _read_targets(self, y: Any, n_samples: int, weights: Array) -> Targets:
        raise NotImplementedError

    def _set_target_attributes(self, targets: Targets) -> None:
        raise NotImplementedError

    def _supervision(self, targets: Targets) -> BregmanLoss:
        raise NotImplementedError

    def _target_kernel(self, targets: Targets) -> Kernel:
        raise NotImplementedError

    def _number_of_prototypes(self, n: int, n_distinct: int) -> int | None:
        m = self.n_prototypes
        if m is None:
            return None
        if m > n:
            raise InvalidInputError(
                f"n_prototypes={m} is more than the number of samples, {n}; give at most {n}, or None for one each."
            )
        if m >= n_distinct:
            if n_distinct < m < n:
                warn_user(
                    f"n_prototypes={m}, but only {n_distinct} samples are distinct: each became a prototype.",
                    DataWarning,
                )
            return None
        return int(m)

    def _init_for(self, merged: Merged, n: int) -> Any:
        """`init` as a name, or as an array with one row a distinct sample."""
        if isinstance(self.init, str):
            if self.init == "identity" and self.n_prototypes not in (None, n):
                raise InvalidInputError("init='identity' needs n_prototypes=None (one prototype a sample).")
            return self._named_init()
        plan = self.init.toarray() if sparse.issparse(self.init) else np.asarray(self.init)
        m = n if self.n_prototypes is None else self.n_prototypes
        good = (
            (plan.ndim == 1 and plan.shape == (n,) and plan.dtype.kind in "iu" and plan.min() >= 0 and plan.max() < m)
            or (plan.shape == (n, m) and np.isfinite(plan).all() and (plan >= 0).all() and (plan.sum(axis=1) > 0).all())
        )  # fmt: skip
        if not good:
            raise InvalidInputError(
                f"init must be a name, {n} prototype numbers below {m}, or non-negative shares of shape ({n}, {m}) "
                f"with no empty row; got an array of shape {plan.shape} and type {plan.dtype}."
            )
        if plan.ndim == 1:
            plan = sparse.csr_array((np.ones(n), plan, np.arange(n + 1)), shape=(n, m))
        if self.n_prototypes in (None, n):
            return self._balanced_init(sparse.csr_array(plan), merged)
        # No more distinct samples than prototypes: each became one, whatever was given for more of them.
        return plan[merged.rows] if m < len(merged.rows) else "identity"

    def _balanced_init(self, plan: sparse.csr_array, merged: Merged) -> sparse.csr_array:
        """A plan for one prototype a sample, which has to carry what its sample weighs, in the order of the fit."""
        if not merged.trivial:
            raise InvalidInputError("init as an array needs distinct samples when n_prototypes is None.")
        plan = plan[merged.rows][:, merged.rows]
        carried = merged.weights @ (plan.multiply(1.0 / plan.sum(axis=1)[:, None]))
        worst = int(np.abs(carried - merged.weights).argmax())
        if abs(carried[worst] - merged.weights[worst]) > 1e-6 * merged.weights[worst]:
            raise InvalidInputError(
                "init must give each prototype the weight of its sample when n_prototypes is None; prototype "
                f"{merged.rows[worst]} gets {carried[worst]:.3g} instead of {merged.weights[worst]:.3g}. "
                "Use init='auto', or give n_prototypes."
            )
        return plan

    def _named_init(self) -> str:
        return str(self.init)

    def _set_attributes(
        self, weights: Array, merged: Merged, targets: Targets | None, recipe: Recipe, fitted: Fitted
    ) -> None:
        reduction = fitted.reduction
        self._expand(fitted, merged, weights, recipe.n_prototypes is None)
        if targets is not None:
            self.prototype_targets_ = self._prototype_targets(targets, weights, recipe.supervision)
            self._set_target_attributes(targets)
        self.history_ = pd.DataFrame([asdict(record) for record in reduction.history])
        self.objective_ = reduction.objective
        self.n_iter_ = len(reduction.history)
        self.converged_ = reduction.converged
        self.perplexity_ = recipe.perplexity

    def _map_from_all(self, found: KernelMap, merged: Merged) -> KernelMap:
        """With distances, rows to map hold those to samples of weight zero as well: their coefficients are zero."""
        if self.metric != "precomputed":
            return found
        coefficients = np.zeros((len(merged.group), found.coefficients.shape[1]))
        coefficients[merged.rows] = found.coefficients
        return replace(found, coefficients=coefficients)

    def _expand(self, fitted: Fitted, merged: Merged, weights: Array, one_to_one: bool) -> None:
        one_to_one = one_to_one and self.n_prototypes in (None, len(weights))
        plan, prototypes = fitted.reduction.plan, fitted.reduction.embedding
        outcome = expand(plan, prototypes, merged, weights, self.embedding_, one_to_one)
        self.coupling_ = outcome.coupling
        self.prototypes_ = outcome.prototypes
        self.prototype_weights_ = outcome.weights
        self.labels_ = np.asarray(outcome.coupling.argmax(axis=1)).ravel()
        self.prototype_medoids_ = rows_of_medoids(fitted.medoids, merged, prototypes, self.embedding_, one_to_one)

    def _prototype_targets(self, targets: Targets, weights: Array, loss: BregmanLoss) -> Array:
        plan = sparse.csr_array(sparse.diags_array(weights) @ self.coupling_)
        return loss.prototype_targets(plan, targets.values)
