"""SDRGPRegressor: reduce, then predict with Gaussian processes."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from distreduce._utils.threads import Workers, workers
from distreduce._utils.typing import Array, Index
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import own_generator, require_seed
from distreduce.exceptions import InvalidInputError
from distreduce.gp._exact import ExactGP, check_exact_size, train
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.gp._inducing import evenly_spaced, train_sparse
from distreduce.gp._reduce import ReducingGP, draw_rows, embed_left_out, relevance_metric
from distreduce.gp._regression import BaseGPRegressor
from distreduce.gp._stack import KERNELS, Process, Stack, Views
from distreduce.gp._target_scale import feature_spread, spread

# Relative decrease of −log p(y) at which L-BFGS stops: within 0.1 of the best, which no data could distinguish from it,
# in half of the steps.
TOLERANCE = 1e-6
METRIC_SAMPLES = 1000  # with prototypes, the plain GP that teaches the metric sees at most this many samples
Plain = dict[str, Hyperparameters]  # hyperparameters of one target's plain GPs, by view


class SDRGPRegressor(ReducingGP, BaseGPRegressor):
    """Gaussian-process regression on a supervised distributional reduction [1]_.

    A plain GP learns which features matter (ARD). SDR reduces the samples in that metric. A second GP predicts the
    targets from the embedding. It is trained on leave-one-out embeddings, so that it knows how good the map is on new
    samples. With ``residual=True`` the prediction is a mixture with two plain GPs, one for smooth functions (RBF) and
    one for rough ones (Matérn 3/2), weighted by stacking their leave-one-out densities [2]_: this recovers what the
    embedding lost. Several targets share the reduction, and each has its own GPs. The quantiles of predictions have the
    tails of the leave-one-out errors. Features may have any units: they are standardised.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    n_prototypes : int or None, default=None
        Number m of prototypes of the reduction, as in :class:`SDR`. None: every sample is a prototype, and the GPs are
        exact, for up to 10,000 samples. With a number, the GPs are sparse [3]_ with the prototypes as inducing points,
        at a cost of n·m²: use it for many samples.
    eta : float or "auto", default=3000.0
        Weight of the targets in the reduction. Three times the default of SDR, because the embedding is for prediction.
    perplexity : float, default=20.0
        Effective number of neighbours in the affinity of the reduction; at most a third of the samples.
    length_scale : {"ard", "median"}, default="ard"
        Length scale of the map's kernel on standardised features: "ard" uses the length scales of the plain GP, also as
        the metric of the reduction; "median" is the median heuristic.
    map_reg : float or "auto", default="auto"
        Ridge penalty of the out-of-sample map; "auto" is the ratio of noise to signal of the plain GP.
    training_inputs : {"left_out", "fitted"}, default="left_out"
        Training inputs of the GP: leave-one-out embeddings, or the fitted embedding, which has seen y. A GP trained on
        the latter to convergence finds no noise.
    residual : bool, default=True
        Whether plain GPs on X take part in the prediction: a smooth and a rough one, or with `n_prototypes` a smooth
        one.
    max_reduction_samples : int, default=4000
        With `n_prototypes`, the largest number of samples that the reduction is fitted to, drawn at random. The GPs see
        all samples.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood to convergence; "adam" takes `gp_steps` steps, as in the paper.
    gp_steps : int or None, default=None
        Number of iterations; None is at most 200 for L-BFGS and 20 for Adam.
    gp_lr : float, default=0.1
        Learning rate of Adam.
    n_jobs : int or None, default=None
        Number of threads; None uses every core.
    random_state : int, RandomState or None, default=None
        Seed of the reduction's start and of the drawn samples.
    verbose : int, default=0
        1 shows the progress of the reduction.
    checkpoint : str, path-like or None, default=None
        File that keeps the state of the reduction, as in :class:`SDR`. The GPs are trained again.

    Attributes
    ----------
    reduction_ : SDR
        The reduction, fitted to ``X / input_scale_``.
    input_scale_ : (d,) array
        Scale of each feature: the larger, the less the feature matters.
    feature_spread_ : (d,) array
        Standard deviation of each feature.
    embedding_scale_ : (p,) array
        What the embedding is divided by before the GPs see it.
    target_scale_ : TargetScale
        Mean and standard deviation of each target.
    stacks_ : tuple
        One predictor per target: GPs on "inputs", "rough_inputs" and "embedding", and their weights.

    References
    ----------
    .. [1] Ramesh et al. (2026). Supervised Distributional Reduction via Optimal Transport and Dependence Maximization.
       arXiv:2605.27619.
    .. [2] Yao, Vehtari, Simpson, Gelman (2018). Using stacking to average Bayesian predictive distributions. Bayesian
       Analysis 13(3).
    .. [3] Titsias (2009). Variational learning of inducing variables in sparse Gaussian processes. AISTATS.

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
        **ReducingGP._reduction_constraints,
        "length_scale": [StrOptions({"ard", "median"})],
        "residual": ["boolean"],
    }

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
            Samples, in any units.
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
            # With prototypes, plain GPs and reduction see a sample of the rows; the GPs of the prediction see all.
            size = len(X) if self.n_prototypes is None else self.max_reduction_samples
            rows = draw_rows(len(X), size, random_state)
            with workers(self.n_jobs) as pool:
                # Plain GPs come first: their length scales are the metric of the reduction, their noise its ridge.
                plain = self._train_plain(X, Y, rows, pool)
                self._reduce(X[rows], Y[rows], plain, random_state)
                fitting.best = self.reduction_  # a NumericalError of the GPs still carries it
                # GPs on the embedding and on X, mixed for each target.
                views = self._training_views(X, rows)
                self.stacks_ = self._fit_stacks(views, self._inducing_points(X[rows]), Y, plain, pool)
        return self

    def _check_size(self, X: Array, Y: Array) -> None:
        """Raise InvalidInputError for constant targets and for sizes that cannot be fitted."""
        if (np.ptp(Y, axis=0) == 0).all():
            constant = self.target_scale_.mean[0]
            raise InvalidInputError(f"y is constant ({constant:g}): no reduction can follow it; use GPRegressor.")
        if self.n_prototypes is None:
            check_exact_size(len(X), "give n_prototypes, such as 200: the prototypes become inducing points")
        elif self.n_prototypes > len(X):
            raise InvalidInputError(
                f"n_prototypes={self.n_prototypes} is more than the {len(X)} samples; give fewer prototypes."
            )
        elif self.n_prototypes > self.max_reduction_samples:
            raise InvalidInputError(
                f"n_prototypes={self.n_prototypes} is more than max_reduction_samples={self.max_reduction_samples}; "
                "give fewer prototypes, or raise max_reduction_samples."
            )

    def _regression_training(self) -> Training:
        return replace(super()._regression_training(), tolerance=TOLERANCE)

    def _plain_views(self) -> tuple[str, ...]:
        """Views of the plain GPs that take part in predictions; sparse GPs are smooth."""
        if not self.residual:
            return ()
        return ("inputs", "rough_inputs") if self.n_prototypes is None else ("inputs",)

    def _train_plain(self, X: Array, Y: Array, rows: Index, pool: Workers) -> list[Plain]:
        """Hyperparameters of the plain GPs of each target, if predictions, metric or ridge need them."""
        needed = self.length_scale == "ard" or self.map_reg == "auto"
        # Without residual GPs, the smooth one is still needed for its metric or its noise.
        tasks = [(view, t) for view in self._plain_views() or ("inputs",) * needed for t in range(Y.shape[1])]
        if self.n_prototypes is not None:
            rows = rows[evenly_spaced(len(rows), METRIC_SAMPLES)]
        inputs, scales = X[rows] / self.feature_spread_, np.ones(X.shape[1])

        def train_task(task: int, _: int) -> Hyperparameters:
            view, t = tasks[task]
            return train(inputs, Y[rows, t], self._regression_training(), scales, KERNELS[view])

        found = dict(zip(tasks, pool.run(train_task, len(tasks)), strict=True))
        return [{view: gp for (view, of), gp in found.items() if of == t} for t in range(Y.shape[1])]

    def _reduce(self, X: Array, Y: Array, plain: list[Plain], random_state: Any) -> None:
        """Set ``input_scale_`` and ``reduction_``."""
        known = [found["inputs"] for found in plain if found]
        relevance, ratio = relevance_metric(known) if known else (np.ones(X.shape[1]), np.nan)
        ard = self.length_scale == "ard"
        # Dividing by the length scales makes the map's kernel isotropic, with length scale 1.
        self.input_scale_ = self.feature_spread_ * (relevance if ard else 1.0)
        self._fit_reduction(
            X / self.input_scale_,
            Y,
            random_state,
            task="regression",
            length_scale=1.0 if ard else "median",
            map_reg=ratio if self.map_reg == "auto" else self.map_reg,
        )

    def _training_views(self, X: Array, rows: Index) -> dict[str, Array]:
        """Training inputs of the GPs; only samples that the reduction has seen need to be left out."""
        if self.training_inputs == "fitted":
            embedded = self._embed(X)
        else:
            unseen = np.setdiff1d(np.arange(len(X)), rows)
            embedded = np.empty((len(X), self.n_components))
            embedded[rows] = embed_left_out(self.reduction_, X[rows] / self.input_scale_)
            if len(unseen):
                embedded[unseen] = self._embed(X[unseen])
        # Adam starts at fixed length scales, as in the paper, so it takes the embedding on the scale it has.
        self.embedding_scale_ = spread(embedded) if self.gp_optimizer == "lbfgs" else np.ones(self.n_components)
        inputs = X / self.feature_spread_
        return {"embedding": embedded / self.embedding_scale_, **dict.fromkeys(self._plain_views(), inputs)}

    def _inducing_points(self, X: Array) -> dict[str, Array] | None:
        """Inducing points of each view: prototypes in the embedding, their medoids among the samples."""
        if self.n_prototypes is None:
            return None
        # A prototype without mass stands for no sample.
        used = self.reduction_.prototype_weights_ > 0
        # Prototypes may share a medoid, and equal inducing points make a singular matrix.
        medoids = np.unique(self.reduction_.prototype_medoids_[used])
        return {
            "embedding": self.reduction_.prototypes_[used] / self.embedding_scale_,
            "inputs": X[medoids] / self.feature_spread_,
        }

    def _fit_stacks(
        self, views: Views, inducing: Views | None, Y: Array, plain: list[Plain], pool: Workers
    ) -> tuple[Stack, ...]:
        """Fit the GPs of each target, one task per target and view, and stack those of a target."""
        tasks = [(t, view) for t in range(Y.shape[1]) for view in views]

        def fit_task(task: int, _: int) -> Process:
            t, view = tasks[task]
            points = None if inducing is None else inducing[view]
            return self._fit_process(view, views[view], Y[:, t], points, plain[t].get(view))

        # The pool returns results in the order of the tasks: all views of the first target, then of the next.
        processes = pool.run(fit_task, len(tasks))
        by_target = [dict(zip(views, processes[start:], strict=False)) for start in range(0, len(tasks), len(views))]
        # Leave-one-out errors are honest only if the training inputs have not seen the targets.
        honest = self.gp_optimizer == "lbfgs" and self.training_inputs == "left_out"
        return tuple(Stack.of(processes, rescaled=honest, shaped=honest) for processes in by_target)

    def _fit_process(
        self, view: str, inputs: Array, target: Array, inducing: Array | None, known: Hyperparameters | None
    ) -> Process:
        """Fit one GP. `known` are the hyperparameters found on these inputs, with prototypes on fewer samples."""
        scales = np.ones(inputs.shape[1]) if known is None else known.length_scales
        training, kernel = self._regression_training(), KERNELS[view]
        if inducing is not None:
            return train_sparse(inputs, target, inducing, training, scales, known)
        # Exact plain GPs were trained on these very inputs, so their hyperparameters are final.
        return ExactGP(inputs, target, known or train(inputs, target, training, scales, kernel), kernel)

    def _embed(self, X: Array) -> Array:
        return super()._embed(X / self.input_scale_)

    def _views(self, X: Array) -> dict[str, Array]:
        # All stacks have the same views; the two on X share one array.
        embedding, inputs = self._embed(X) / self.embedding_scale_, X / self.feature_spread_
        return {view: embedding if view == "embedding" else inputs for view in self.stacks_[0].processes}
