"""Base of the SDR-GPs: the reduction between X and the experts, and what both tasks do with a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.random import RandomState
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.threads import Workers, workers
from distreduce._utils.typing import Array, Index, Self
from distreduce.estimators import SDR
from distreduce.estimators._fit_context import whole_fit
from distreduce.estimators._mixins import RenamedParametersMixin, Translation, translate_checkpoint_every
from distreduce.estimators._validate import check_spread, largest_perplexity, own_generator, require_seed
from distreduce.exceptions import (
    FewSamplesWarning,
    InvalidInputError,
    NoSignalWarning,
    OptimisticPictureWarning,
    SolverConvergenceWarning,
)
from distreduce.gp._class_stack import ClassStack
from distreduce.gp._crossfit import Arranged, CrossFit, CrossFitter, Novelty, Said, arrange, number_folds
from distreduce.gp._estimator import by_chunks, read_new_samples
from distreduce.gp._experts import EXPERTS, Expert, Lesson, learn_own
from distreduce.gp._hyperparameters import Training
from distreduce.gp._noise import follow_noise
from distreduce.gp._stack import Stack, keep_promising
from distreduce.gp._target_scale import choose_feature_scale
from distreduce.sharding.dask_rows import is_dask, predict_by_blocks
from distreduce.sharding.merge import Merged, merge_duplicates, row_keys

AnyStack = TypeVar("AnyStack", Stack, ClassStack)
Learn = Callable[[CrossFit, Array], AnyStack]  # from left-out predictions and the target
GAUSSIAN_PROCESSES = ("inputs", "rough_inputs", "isotropic")
# Experts besides the Gaussian processes; `experts` may name them, or hold estimators of one's own.
NAMED = ("linear", "forest", "boosting")
MANY_FEATURES = 300  # features above which one length scale for each is too slow to learn, and learns too little
STACK_STEPS = 60  # of L-BFGS: more raise the likelihood, but left-out densities hardly


PAPER: Mapping[str, Any] = {"eta": 1000.0, "perplexity": 20.0, "length_scale": "median", "map_reg": 0.01, "gp_lr": 0.1,
                            "residual": False, "training_inputs": "fitted", "gp_optimizer": "adam",
                            "max_reduction_samples": 10_000}  # fmt: skip

# Entries of the two estimators' docstrings that are the same.
SHARED_PARAMETERS = """\
    n_prototypes : int or None, default=None
        Number of prototypes of the reduction, as in :class:`SDR`. None: one per sample that the reduction sees. It does
        not limit how many samples the predictions use.
    eta : float or "auto", default="auto"
        Weight of the targets in the reduction, as in :class:`SDR`.
    perplexity : float, default=20.0
        Effective number of neighbours in the affinity of the reduction; at most a third of the samples.
    length_scale : float, array, "auto", "median" or "ard", default="auto"
        Length scale of the map's kernel on scaled features, as in :class:`SDR`.
    map_reg : float or "auto", default="auto"
        Ridge penalty of the out-of-sample map, as in :class:`SDR`.
    training_inputs : {"left_out", "fitted"}, default="left_out"
        What the GP on the embedding is trained on: left-out places, or the fitted embedding, which has seen y. With
        "fitted" that GP predicts alone, as in the paper.
    feature_scaling : {"auto", "standard", "none"}, default="auto"
        "standard" divides each feature by its standard deviation, "none" keeps features as they are. "auto" divides by
        the standard deviation of each feature or by one number for all, whichever predicts left-out targets better.
    residual : bool, default=True
        Whether experts on the features take part. With False, only the embedding predicts.
    experts : list or None, default=None
        Experts besides the Gaussian processes: names among "linear", "forest" and "boosting", and scikit-learn
        estimators of your own, which join by cross-fitting. None is all three names. A model with experts of your own
        cannot be saved.
    max_reduction_samples : int, default=2000
        Largest number of samples that the reduction is fitted to, drawn at random. The experts see all samples.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood; "adam" takes `gp_steps` steps, as in the paper, and the GP on the
        embedding then predicts alone.
    gp_steps : int or None, default=None
        Number of iterations; None is at most 60 for L-BFGS, and for Adam 20 (numbers) or 50 (classes).
    gp_lr : float, default=0.1
        Learning rate of Adam.
    n_jobs : int or None, default=None
        Number of threads; None uses every core.
    random_state : int, RandomState or None, default=None
        Seed of the reduction's start, of the drawn samples, of the trees and of the posterior draws of classes.
    verbose : int, default=0
        1 shows the progress of the reduction.
    checkpoint : str, path-like or None, default=None
        File that keeps the state of the reduction, as in :class:`SDR`. The experts are trained again."""


class ReducingGP(RenamedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Reduce with SDR, then predict with a stack of experts, one of which sees the embedding."""

    _reduction_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "eta": SDR._parameter_constraints["eta"],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "length_scale": SDR._parameter_constraints["length_scale"],
        "map_reg": SDR._parameter_constraints["map_reg"],
        "training_inputs": [StrOptions({"left_out", "fitted"})],
        "feature_scaling": [StrOptions({"auto", "standard", "none"})],
        "residual": ["boolean"],
        "experts": ["array-like", None],
        "max_reduction_samples": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": SDR._parameter_constraints["checkpoint"],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {"checkpoint_every": translate_checkpoint_every}

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | None = None,
        eta: float | str = "auto",
        perplexity: float = 20.0,
        length_scale: Any = "auto",
        map_reg: float | str = "auto",
        training_inputs: str = "left_out",
        feature_scaling: str = "auto",
        residual: bool = True,
        experts: Any = None,
        max_reduction_samples: int = 2000,
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
        self.feature_scaling = feature_scaling
        self.residual = residual
        self.experts = experts
        self.max_reduction_samples = max_reduction_samples
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:  # none with python -OO
            cls.__doc__ = cls.__doc__.replace("    [shared]", SHARED_PARAMETERS)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to samples and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, in any units.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers, in any units, or the labels (n_samples,) of a classifier.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; two counts as two copies of a sample.
        groups : array-like of shape (n_samples,), optional
            Group of each sample, such as its patient. Groups are left out as a whole wherever the fit learns from
            left-out samples, so that probabilities, intervals and sets hold for samples of new groups. Each group
            counts as one sample, unless they are periods: an ordered categorical of pandas.

        Returns
        -------
        SDRGPRegressor or SDRGPClassifier
            The fitted estimator.
        """
        with whole_fit(self) as fitting:
            read = self._read(X, y, sample_weight, groups)
            require_seed(self)
            with workers(self.n_jobs) as pool:
                self._fit_read(*read, own_generator(self.random_state), fitting, pool)
        return self

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen: (n_samples, n_components)."""
        if is_dask(X):
            return predict_by_blocks(self, "transform", X)
        return self._embed(read_new_samples(self, X))

    def novelty(self, X: Any) -> Array:
        """P-value of each sample against "it is like the training samples" (n_samples,).

        Small values belong to samples that lie farther from the training samples than these lie from each other;
        predictions there are extrapolations. The distances are those to the nearest distinct samples in standardised
        features, and a training sample's own copies do not count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        array of shape (n_samples,)
            Share of training samples, left out, that are at least as far from the others.
        """
        X = read_new_samples(self, X)
        return np.concatenate(by_chunks(lambda part: self.novelty_(part / self.input_scale_), X))

    def _find_prototypes(self, X: Array) -> Index:
        return self._find_nearest(self._embed(X))

    def _find_nearest(self, Z: Array) -> Index:
        """The nearest prototype of each place, among those that stand for samples; each its own if all are."""
        if self.n_prototypes is None:
            return np.arange(len(Z))
        return nearest_in_use(Z, self.reduction_.prototypes_, self.reduction_.prototype_weights_)

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn's ``get_feature_names_out``."""
        return int(self.reduction_.prototypes_.shape[1])

    def _embed(self, X: Array) -> Array:
        return np.concatenate(by_chunks(lambda part: self.reduction_.transform(part / self.input_scale_), X))

    def _views(self, X: Array, names: Sequence[str]) -> dict[str, Array]:
        # Models of earlier versions reduce in another scale than the one their GPs see.
        inputs = X / getattr(self, "feature_spread_", self.input_scale_)
        views = {name: inputs for name in names if name != "embedding"}
        if "embedding" in names:
            views["embedding"] = self._embed(X) / self.embedding_scale_
        return views

    @property
    def _follows_paper(self) -> bool:
        """Whether a single GP on the embedding predicts, as in the paper, without cross-fitting."""
        return self.training_inputs == "fitted" or self.gp_optimizer == "adam"

    def _scale_features(self, X: Array, Y: Array, weights: Array, groups: Index | None) -> tuple[Merged, Index | None]:
        """Set ``input_scale_``; return the distinct samples, which are what is looked at, and their groups."""
        once = merge_duplicates(X, Y, weights)  # a sample given twice counts as one of weight two
        X, Y, together = X[once.rows], Y[once.rows], None if groups is None else groups[once.rows]
        check_spread(X, len(X), precomputed=False)
        self.input_scale_ = choose_feature_scale(X, Y, once.weights, together, self.feature_scaling)
        return once, together

    def _reduce(
        self, X: Array, learned: Array, y: Any, weights: Array, random_state: Any, groups: Index | None, fitting: Any
    ) -> tuple[Arranged, Array]:
        """Set ``novelty_`` and ``reduction_``, a reduction to y; return the arranged samples and their embedding."""
        arranged = self._arrange(X, learned, weights, groups)
        rows = self._fit_reduction(arranged.inputs, y, weights, random_state, groups)
        fitting.best = self.reduction_  # a NumericalError of the experts still carries it
        return arranged, self._training_embedding(X, rows, arranged)

    def _fit_reduction(self, inputs: Array, y: Any, weights: Array, random_state: Any, groups: Index | None) -> Index:
        """Set ``reduction_``, fitted to at most `max_reduction_samples` samples, and return their rows."""
        rows = self._draw_rows(inputs, random_state)
        shared = ("n_components", "n_prototypes", "eta", "length_scale", "map_reg", "n_jobs", "verbose", "checkpoint")
        reduction = SDR(
            **{name: getattr(self, name) for name in shared},
            perplexity=min(self.perplexity, largest_perplexity(float(weights[rows].sum()))),
            task="classification" if hasattr(self, "classes_") else "regression",
            embedding_kernel="rq",  # nobody looks at this embedding: none of its axes has to show the features
            # The identity plan of pure dimensionality reduction is a stationary point already (decision 12).
            max_iter=0 if self.n_prototypes is None else 50,
            affinity="auto" if self.n_prototypes else "dense",  # one prototype per sample, however many
            random_state=random_state,
        )
        with warnings.catch_warnings():  # users asked for predictions, whose quality the stack measures itself
            for category in (FewSamplesWarning, NoSignalWarning, OptimisticPictureWarning, SolverConvergenceWarning):
                warnings.simplefilter("ignore", category)
            own = None if (weights == 1.0).all() else weights[rows]
            together = None if groups is None or np.ptp(groups[rows]) == 0 else groups[rows]
            self.reduction_ = reduction.fit(inputs[rows], y[rows], sample_weight=own, groups=together)
        self._reduced_rows = rows  # for `refit`
        return rows

    def _arrange(self, X: Array, targets: Array, weights: Array, groups: Index | None) -> Arranged:
        """Find copies among the samples, and set ``novelty_``."""
        arranged = arrange(X / self.input_scale_, targets, weights, groups, periods=self._periods)
        self.novelty_ = Novelty.of(arranged.distinct, arranged.copies, arranged.given)
        return arranged

    def _draw_rows(self, inputs: Array, random_state: RandomState) -> Index:
        size, n = self.max_reduction_samples, len(inputs)
        if self.n_prototypes is not None and self.n_prototypes > min(size, n):
            raise InvalidInputError(
                f"n_prototypes={self.n_prototypes} is more than the {min(size, n)} samples that the reduction "
                "sees; give fewer prototypes, or raise max_reduction_samples."
            )
        if n <= size:
            return np.arange(n)
        # Drawn from the rows in the order of their hashes, so that the order in which they come does not matter.
        return np.sort(np.lexsort(row_keys(inputs).T)[random_state.permutation(n)[:size]])

    def _training_embedding(self, X: Array, rows: Index, arranged: Arranged) -> Array:
        """Set ``embedding_scale_`` and return the scaled embedding: left-out places of the samples that SDR saw."""
        if self._follows_paper:
            embedded = self._embed(X)
            # Adam starts at fixed length scales, as in the paper, so it takes the embedding on the scale it has.
            self._set_embedding_scale(1.0)
            return embedded
        embedded = np.empty((len(X), self.reduction_.prototypes_.shape[1]))
        embedded[rows] = self.reduction_.embedding_left_out_
        unseen = np.setdiff1d(np.arange(len(X)), rows)
        if len(unseen):
            embedded[unseen] = self._embed(X[unseen])
        # One number for all coordinates keeps the geometry of the embedding; a single point has no spread.
        h, Z = arranged.weights / arranged.weights.sum(), embedded[arranged.order]
        self._set_embedding_scale(float(np.sqrt((h @ (Z - h @ Z) ** 2).mean())) or 1.0)
        return embedded / self.embedding_scale_

    def _set_embedding_scale(self, size: float) -> None:
        self.embedding_scale_: Any = size if hasattr(self, "classes_") else np.full(self._n_features_out, size)

    def _choose_experts(self, n_features: int) -> dict[str, Expert]:
        if not self.residual:
            return {"embedding": EXPERTS["embedding"]}
        given: Sequence[Any] = NAMED if self.experts is None else self.experts
        processes = GAUSSIAN_PROCESSES if n_features <= MANY_FEATURES else ("isotropic",)
        found = {name: EXPERTS[name] for name in ("embedding", *processes)}
        is_class = hasattr(self, "classes_")
        method, needed = ("predict_proba", "classifiers with predict_proba") if is_class else ("predict", "regressors")
        for k, expert in enumerate(given):
            if isinstance(expert, str) and expert in NAMED:
                found[expert] = EXPERTS[expert]
            elif isinstance(expert, BaseEstimator) and hasattr(expert, method) and is_class >= is_classifier(expert):
                found[f"{type(expert).__name__} {k}"] = partial(learn_own, estimator=expert)
            else:
                raise InvalidInputError(f"experts has {expert!r}; give names in {NAMED} or scikit-learn {needed}.")
        return found

    def _cross_fit(
        self, X: Array, arranged: Arranged, Z: Array, targets: Array, learn: Learn[AnyStack], pool: Workers, seed: int
    ) -> AnyStack:
        """Cross-fit the experts on the arranged samples, `learn` their weights, and fit those with one to all samples.

        Z is the embedding, and `targets` has the indicators of the classes if the model is a classifier.
        """
        fitter, lesson = self._prepare_experts(X, arranged, Z, targets, pool, seed)
        y = lesson.labels if lesson.is_class else lesson.targets[:, 0]

        def keep(said: Said, rows: Index) -> list[str]:
            stack = learn(CrossFit(said, rows), y)
            return keep_promising(stack.log_densities(said, y[rows]), arranged.evidence[rows])

        found = fitter.leave_out(keep)
        stack = learn(found, y)
        if isinstance(stack, Stack):
            stack = follow_noise(stack, learn, found, lesson, arranged)
        return replace(stack, processes=fitter.fit_all(stack.weights, found.first))

    def _prepare_experts(
        self, X: Array, arranged: Arranged, Z: Array, targets: Array, pool: Workers, seed: int
    ) -> tuple[CrossFitter, Lesson]:
        """The experts with what each of them learns from, and the lesson of those that see the features."""
        order, is_class = arranged.order, hasattr(self, "classes_")
        training = Training("lbfgs", self.gp_steps or STACK_STEPS, tolerance=1e-6)
        lesson = Lesson((X / self.input_scale_)[order], targets[order], arranged.weights, is_class, training, seed=seed)
        experts = self._choose_experts(X.shape[1])
        lessons = {name: lesson for name in experts} | {"embedding": replace(lesson, inputs=Z[order])}
        return CrossFitter(experts, lessons, number_folds(arranged.groups), pool), lesson
