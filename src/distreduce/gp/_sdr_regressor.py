"""SDRGPRegressor: reduce, then predict with Gaussian processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import Workers, workers
from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.estimators._checkpoints import require_seed
from distreduce.estimators._renamed import RenamedParametersMixin, Translation, leave_out
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import own_generator
from distreduce.exceptions import InvalidInputError
from distreduce.gp._exact import ExactGP, train
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.gp._inducing import evenly_spaced, train_sparse
from distreduce.gp._reduce import drawn, fit_reduction, left_out, most_neighbours, relevance_metric
from distreduce.gp._regression import BaseGPRegressor, refuse_large
from distreduce.gp._stack import KERNELS, Process, Stack, Views
from distreduce.gp._target_scale import feature_spread, spread
from distreduce.sharding.dask_collections import is_dask
from distreduce.sharding.dask_predict import by_blocks

# Of −log p(y), for L-BFGS. It ends within 0.1 of the best, which no data could tell from it, in half of the steps.
TOLERANCE = 1e-6
Plain = dict[str, Hyperparameters]  # of one target's GPs on X, by view
METRIC_SAMPLES = 1000  # with prototypes, the plain GP that teaches the metric sees at most this many samples


class SDRGPRegressor(RenamedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseGPRegressor):
    """Gaussian-process regression on a supervised distributional reduction.

    A plain GP learns which features matter (ARD). SDR reduces the samples in that metric. A second GP predicts the
    targets from the embedding, trained on leave-one-out embeddings so that it knows how good the map is on new samples.
    With ``residual=True`` the prediction mixes it with two plain GPs, one for smooth functions (RBF) and one for rough
    ones (Matérn 3/2), with weights by their leave-one-out densities: what the picture lost comes back. Several targets
    share the reduction; each has its own GPs on it. Quantiles have the tails that leave-one-out errors have.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    n_prototypes : int or None, default=None
        None: exact GPs on all samples, for up to 10,000. A number m: the reduction has m prototypes, which become the
        inducing points of sparse GPs at a cost of n·m²; this is the way to many samples.
    eta : float or "auto", default=3000.0
        Weight of the targets in the reduction. Three times SDR's own default: here the embedding is for prediction.
    perplexity : float, default=20.0
        Neighbours in the reduction's affinity; a third of the samples where there are few.
    length_scale : {"ard", "median"}, default="ard"
        "ard": metric and map take the length scales of the plain GP; "median": standardised features and one scale.
    map_reg : float or "auto", default="auto"
        Ridge of the out-of-sample map; "auto": the plain GP's ratio of noise to signal.
    training_inputs : {"left_out", "fitted"}, default="left_out"
        What the GP is trained on: leave-one-out embeddings, or the embedding as fitted, which has seen y: a GP trained
        on that to convergence believes that there is no noise.
    residual : bool, default=True
        Whether plain GPs on X take part in the prediction: a smooth and a rough one (with `n_prototypes`, smooth).
    max_reduction_samples : int, default=4000
        The reduction is fitted to at most this many samples, drawn at random; GPs see all.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" trains to convergence; "adam" takes `gp_steps` steps of `gp_lr`, the paper's training.
    gp_steps : int or None, default=None
        Iterations; None is at most 200 for L-BFGS, 20 for Adam.
    gp_lr : float, default=0.1
        Adam's learning rate.
    n_jobs : int or None, default=None
        Threads of the reduction.
    random_state : int, RandomState or None
        Seed of the reduction's start and of the samples drawn.
    verbose : int, default=0
        1 shows the progress of the reduction.
    checkpoint : str, path-like or None, default=None
        File of the reduction, as in :class:`SDR`; the GPs are trained again.

    Attributes
    ----------
    reduction_ : SDR
        The reduction, fitted to ``X / input_scale_``.
    input_scale_ : (d,) array
        Scale of each feature: the larger, the less it matters.
    stacks_ : tuple
        One predictor a target: GPs on "inputs", "rough_inputs" and "embedding", and their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from distreduce import SDRGPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SDRGPRegressor(random_state=0).fit(X[:100], y[:100])
    >>> mean, std = model.predict(X[100:103], return_std=True)
    >>> mean.shape, model.transform(X[100:103]).shape
    ((3,), (3, 2))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseGPRegressor._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "eta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "length_scale": [StrOptions({"ard", "median"})],
        "map_reg": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "training_inputs": [StrOptions({"left_out", "fitted"})],
        "residual": ["boolean"],
        "max_reduction_samples": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": SDR._parameter_constraints["checkpoint"],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {"checkpoint_every": leave_out}

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | None = None,
        eta: float | str = 3000.0,
        perplexity: float = 20.0,
        length_scale: str = "ard",
        map_reg: float | str = "auto",
        training_inputs: str = "left_out",
        residual: bool = True,
        max_reduction_samples: int = 4000,
        gp_optimizer: str = "lbfgs",
        gp_steps: int | None = None,
        gp_lr: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_prototypes = n_prototypes
        self.eta = eta
        self.perplexity = perplexity
        self.length_scale = length_scale
        self.map_reg = map_reg
        self.training_inputs = training_inputs
        self.residual = residual
        self.max_reduction_samples = max_reduction_samples
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @classmethod
    def paper(cls, n_components: int = 2, **parameters: Any) -> SDRGPRegressor:
        """The paper's SDR-GP: fixed length scales, lambda 0.01, eta 1000, a GP of 20 Adam steps on the embedding."""
        recipe = {"eta": 1000.0, "perplexity": 20.0, "length_scale": "median", "map_reg": 0.01, "residual": False,
                  "training_inputs": "fitted", "gp_optimizer": "adam", "gp_steps": 20, "gp_lr": 0.1}  # fmt: skip
        return cls(n_components, **{**recipe, **parameters})

    def fit(self, X: Any, y: Any) -> SDRGPRegressor:
        """Fit to samples and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, in any units: features are scaled inside.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers, in any units.

        Returns
        -------
        SDRGPRegressor
            The fitted estimator.
        """
        with whole_fit(self) as fitting:
            X, Y = self._read(X, y)
            self._check_size(X, Y)
            require_seed(self)
            random_state = own_generator(self.random_state)
            self.feature_spread_ = feature_spread(X)
            rows = drawn(len(X), self._reduced_samples(len(X)), random_state)
            with workers(self.n_jobs) as pool:  # a thread a target
                plain = self._plain(X, Y, rows, pool)
                self._reduce(X[rows], Y[rows], plain, random_state)
                fitting.best = self.reduction_
                views = self._training_views(X, rows)
                self.stacks_ = self._stacks(views, self._inducing(X[rows]), Y, plain, pool)
        return self

    def transform(self, X: Any) -> Array:
        """Place of each sample in the embedding: (n_samples, n_components)."""
        check_is_fitted(self)
        if is_dask(X):
            return by_blocks(self, "transform", X)
        return self._embed(validate_data(self, X, reset=False, dtype=np.float64, order="C"))

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn's ``get_feature_names_out``."""
        return int(self.reduction_.prototypes_.shape[1])

    def _check_size(self, X: Array, Y: Array) -> None:
        """Refuse what the reduction would refuse, in words of this class, and what would never end."""
        if (np.ptp(Y, axis=0) == 0).all():
            constant = self.target_scale_.mean[0]
            raise InvalidInputError(f"y is constant ({constant:g}): no reduction can follow it; use GPRegressor.")
        if self.n_prototypes is None:
            refuse_large(len(X), "give n_prototypes, such as 200: the prototypes become inducing points")
        elif self.n_prototypes > min(len(X), self.max_reduction_samples):
            raise InvalidInputError(
                f"n_prototypes={self.n_prototypes} is more than the {len(X)} samples or than max_reduction_samples="
                f"{self.max_reduction_samples}; give fewer prototypes, or raise max_reduction_samples."
            )

    def _reduced_samples(self, n: int) -> int:
        return n if self.n_prototypes is None else min(n, self.max_reduction_samples)

    def _training(self) -> Training:
        return replace(super()._training(), tolerance=TOLERANCE)

    def _plain_views(self) -> tuple[str, ...]:
        """Views of the plain GPs that predict; sparse ones are smooth."""
        if not self.residual:
            return ()
        return ("inputs", "rough_inputs") if self.n_prototypes is None else ("inputs",)

    def _plain(self, X: Array, Y: Array, rows: NDArray[np.intp], pool: Workers) -> list[Plain]:
        """Hyperparameters of the plain GPs of each target, where anything needs them."""
        needed = self.length_scale == "ard" or self.map_reg == "auto"
        tasks = [(view, t) for view in self._plain_views() or ("inputs",) * needed for t in range(Y.shape[1])]
        if self.n_prototypes is not None:
            rows = rows[evenly_spaced(len(rows), METRIC_SAMPLES)]
        inputs, scales = X[rows] / self.feature_spread_, np.ones(X.shape[1])

        def trained(task: int, _: int) -> Hyperparameters:
            view, t = tasks[task]
            return train(inputs, Y[rows, t], self._training(), scales, KERNELS[view])

        found = dict(zip(tasks, pool.run(trained, len(tasks)), strict=True))
        return [{view: gp for (view, of), gp in found.items() if of == t} for t in range(Y.shape[1])]

    def _reduce(self, X: Array, Y: Array, plain: list[Plain], random_state: Any) -> None:
        """Set ``input_scale_`` and ``reduction_``."""
        known = [found["inputs"] for found in plain if found]
        relevance, ratio = relevance_metric(known) if known else (np.ones(X.shape[1]), np.nan)
        ard = self.length_scale == "ard"
        self.input_scale_ = self.feature_spread_ * (relevance if ard else 1.0)
        reduction = SDR(
            self.n_components,
            n_prototypes=self.n_prototypes,
            eta=self.eta,
            perplexity=min(self.perplexity, most_neighbours(len(X))),
            length_scale=1.0 if ard else "median",
            map_reg=ratio if isinstance(self.map_reg, str) else self.map_reg,
            task="regression",
            # The identity plan of pure dimensionality reduction is a stationary point already (decision 12).
            max_iter=0 if self.n_prototypes is None else 50,
            n_jobs=self.n_jobs,
            random_state=random_state,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
        )
        self.reduction_ = fit_reduction(reduction, X / self.input_scale_, Y)

    def _training_views(self, X: Array, rows: NDArray[np.intp]) -> dict[str, Array]:
        """What the GPs are trained on; samples that the reduction has not seen need no leaving out."""
        if self.training_inputs == "fitted":
            embedded = self._embed(X)
        else:
            unseen = np.setdiff1d(np.arange(len(X)), rows)
            embedded = np.empty((len(X), self.n_components))
            embedded[rows] = left_out(self.reduction_, X[rows] / self.input_scale_)
            embedded[unseen] = self._embed(X[unseen])
        # Adam starts at fixed length scales, as the paper's does, and takes the embedding on the scale it has.
        self.embedding_scale_ = spread(embedded) if self.gp_optimizer == "lbfgs" else np.ones(self.n_components)
        inputs = X / self.feature_spread_
        return {"embedding": embedded / self.embedding_scale_, **dict.fromkeys(self._plain_views(), inputs)}

    def _inducing(self, X: Array) -> dict[str, Array] | None:
        """Inducing points of each view: prototypes in the embedding, their medoids among the samples."""
        if self.n_prototypes is None:
            return None
        used = self.reduction_.prototype_weights_ > 0
        medoids = np.unique(self.reduction_.prototype_medoids_[used])
        return {
            "embedding": self.reduction_.prototypes_[used] / self.embedding_scale_,
            "inputs": X[medoids] / self.feature_spread_,
        }

    def _stacks(
        self, views: Views, inducing: Views | None, Y: Array, plain: list[Plain], pool: Workers
    ) -> tuple[Stack, ...]:
        """The GPs of each target, a thread for each of its views."""
        tasks = [(t, view) for t in range(Y.shape[1]) for view in views]

        def process(task: int, _: int) -> Process:
            t, view = tasks[task]
            points = None if inducing is None else inducing[view]
            return self._process(view, views[view], Y[:, t], points, plain[t].get(view))

        processes = pool.run(process, len(tasks))
        by_target = [dict(zip(views, processes[start:], strict=False)) for start in range(0, len(tasks), len(views))]
        rescaled = self.gp_optimizer == "lbfgs" and self.training_inputs == "left_out"
        return tuple(Stack.of(processes, rescaled=rescaled, shaped=rescaled) for processes in by_target)

    def _process(
        self, view: str, inputs: Array, target: Array, inducing: Array | None, known: Hyperparameters | None
    ) -> Process:
        """One GP; `known` are hyperparameters found on the same inputs, of fewer samples where there are prototypes."""
        scales = np.ones(inputs.shape[1]) if known is None else known.length_scales
        if inducing is not None:
            return train_sparse(inputs, target, inducing, self._training(), scales, known)
        kernel = KERNELS[view]
        return ExactGP(inputs, target, known or train(inputs, target, self._training(), scales, kernel), kernel)

    def _embed(self, X: Array) -> Array:
        return (
            np.asarray(self.reduction_.transform(X / self.input_scale_)) if len(X) else np.empty((0, self.n_components))
        )

    def _views(self, X: Array) -> dict[str, Array]:
        embedding, inputs = self._embed(X) / self.embedding_scale_, X / self.feature_spread_
        return {view: embedding if view == "embedding" else inputs for view in self.stacks_[0].processes}
