"""SDR: supervised distributional reduction."""

from __future__ import annotations

from numbers import Real
from os import PathLike
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._targets import Targets, read_targets
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Kernel, Linear, RationalQuadratic, get_kernel
from distreduce.losses import LOSSES, BregmanLoss, get_loss


class SDR(BaseReduction):
    """Supervised distributional reduction.

    Turns (X, y) into a small weighted set of low-dimensional prototypes that keep both the geometry of X and what it
    says about y, and a map that gives every sample, seen or unseen, a place among them.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int or None, default=None
        Number m of prototypes; None gives each sample its own (pure dimensionality reduction). With fewer prototypes
        than samples some may end unused, with weight zero: the data wanted fewer.
    alpha : float in [0, 1], default=0.2
        Share of geometry (Gromov-Wasserstein) against supervision in the coupling.
    eta : float or "auto", default=1000.0
        Weight of the dependence between embedding and targets; 0 is the paper's FGW-only variant. Geometry weighs as
        much as there are samples, so a fixed eta fades as they grow: "auto" is the larger of 1000 and their number.
    mu : float, default=1.0
        Weight of the distance between the embedding and its out-of-sample map.
    map_reg : float, default=1e-2
        Ridge penalty (lambda) of the out-of-sample map. Raise it when targets are noisy.
    perplexity : float, default=30.0
        Effective number of neighbours in the input affinity, smaller than the number of samples. The default is lowered
        to a third of the samples if there are fewer than 90.
    task : {"auto", "regression", "classification"}, default="auto"
        How to read y. "auto": strings, booleans and whole numbers that repeat are classes.
    loss : {"kl", "square"}, default="kl"
        Inner loss of the Gromov-Wasserstein term.
    target_loss : {"auto", "squared", "cross_entropy", "poisson", "geometric", "itakura_saito"} or BregmanLoss
        Supervision loss in the coupling; "auto" is squared for regression, cross-entropy for classification.
    target_kernel : {"auto", "rbf", "rq", "delta", "linear"} or callable, default="auto"
        Kernel on the targets (regression targets standardised); "auto" is rbf for regression, delta for classes.
    target_form : {"barycentric", "mass", "transport"}, default="barycentric"
        How targets reach the prototypes when there are fewer than samples: by their mean targets, by these weighted
        with the mass, or by the paper's T'K_Y T.
    dependence : {"cka", "cka_uncentered", "hsic"}, default="cka"
        Measure of dependence; "cka_uncentered" is the formula as the paper prints it.
    embedding_kernel : {"rq", "rbf", "linear"} or kernel, default="rq"
        Kernel on the embedding in the dependence.
    input_kernel : {"rbf", "rq", "linear"} or callable, default="rbf"
        Kernel of the out-of-sample map.
    length_scale : {"median", "ard"}, float or array-like, default="median"
        Length scale of `input_kernel`: "median" sets ``exp(−|x − x'|²/median squared distance)``, "ard" learns one
        a feature. Of no account for "linear" and for a callable, which has its own.
    metric : {"euclidean", "precomputed"}, default="euclidean"
        "precomputed": X is a symmetric matrix of distances.
    affinity : {"auto", "dense", "sparse"}, default="auto"
        "dense": all pairs of samples, in n×n arrays. "sparse": a graph of nearest neighbours, and landmarks for the
        map; time and memory then grow as the samples. "auto" is sparse above 10,000 samples if `n_prototypes` is given.
    n_neighbors : int or None, default=None
        Neighbours a sample in the sparse affinity; None is three times the perplexity.
    init : str or array-like, default="auto"
        Initial plan: "identity", "random", "kmeans", "spectral", "supervised_spectral", prototype numbers (n,) or
        shares (n, m). "auto" is identity for m = n, else supervised_spectral, or spectral if `eta` is 0.
    solver : {"joint", "alternating"}, default="joint"
        "joint" eliminates the map in closed form; "alternating" with ``optimizer="adam"`` is the paper's algorithm.
    optimizer : {"lbfgs", "adam"}, default="lbfgs"
        Optimiser of the embedding step.
    beta, learning_rate : float, default=0.5 and 1e-3
        The alternating solver's relaxation towards the map, and Adam's step.
    max_iter, max_inner_iter : int, default=50 and 100
        Largest number of outer iterations, and of optimiser steps in each. ``max_iter=0`` keeps the initial plan (with
        ``n_prototypes=None`` the identity) and solves for the embedding alone.
    tol : float, default=1e-6
        Relative decrease of the objective that ends the fit.
    backend : {"auto", "numba", "numpy", "torch"}, default="auto"
        Implementation of the embedding step; device : str, the torch device.
    n_jobs : int or None, default=None
        Threads; None uses every core. Does not change the result.
    random_state : int, RandomState or None
        Seed of the initial plan.
    verbose : int, default=0
        1 shows a progress bar.
    checkpoint : str, path-like or None, default=None
        File that keeps the state of the fit; the same fit goes on from it, and ends with the same bits. Needs a
        `random_state`.
    checkpoint_every : int, default=1
        Outer iterations between two writes of it.

    Attributes
    ----------
    prototypes_ : (m, p) array
        Z.
    prototype_weights_ : (m,) array
        h_Z, sums to one.
    prototype_targets_ : (m, c) array
        Mean target of each prototype in the units of y, or its class shares.
    prototype_medoids_ : (m,) array
        Row of the sample that stands for each prototype: of its own samples the nearest, in X, to their mean.
    coupling_ : (n, m) scipy sparse array
        T, rows sum to one.
    labels_ : (n,) array
        Prototype of each sample.
    embedding_ : (n, p) array
        Place of each sample, equal to ``transform(X)``.
    map_ : KernelMap
        L with what it needs to map new samples.
    history_ : DataFrame
        A row for the first embedding and for each outer iteration: objective, its terms, CKA, evaluations, seconds.
    objective_, n_iter_, converged_ : float, int, bool
        Final objective, rows of ``history_``, whether the tolerance was met.
    task_, classes_, target_names_, perplexity_ : str, array (classification only), list, float
        What was decided from the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> model.prototypes_.shape, model.transform(X[:3]).shape
    ((10, 2), (3, 2))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseReduction._parameter_constraints,
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "eta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "task": [StrOptions({"auto", "regression", "classification"})],
        "target_loss": [StrOptions({"auto", *LOSSES}), BregmanLoss],
        "target_kernel": [StrOptions({"auto", "rbf", "rq", "delta", "linear"}), callable],
        "target_form": [StrOptions({"barycentric", "mass", "transport"})],
        "dependence": [StrOptions({"cka", "cka_uncentered", "hsic"})],
        "embedding_kernel": [StrOptions({"rq", "rbf", "linear"}), RationalQuadratic, RBF, Linear],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | None = None,
        alpha: float = 0.2,
        eta: float | str = 1000.0,
        mu: float = 1.0,
        map_reg: float = 1e-2,
        perplexity: float = 30.0,
        task: str = "auto",
        loss: str = "kl",
        target_loss: str | BregmanLoss = "auto",
        target_kernel: str | Kernel = "auto",
        target_form: str = "barycentric",
        dependence: str = "cka",
        embedding_kernel: str | Kernel = "rq",
        input_kernel: str | Kernel = "rbf",
        length_scale: Any = "median",
        metric: str = "euclidean",
        affinity: str = "auto",
        n_neighbors: int | None = None,
        init: Any = "auto",
        solver: str = "joint",
        optimizer: str = "lbfgs",
        beta: float = 0.5,
        learning_rate: float = 1e-3,
        max_iter: int = 50,
        max_inner_iter: int = 100,
        tol: float = 1e-6,
        backend: str = "auto",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.n_components = n_components
        self.n_prototypes = n_prototypes
        self.alpha = alpha
        self.eta = eta
        self.mu = mu
        self.map_reg = map_reg
        self.perplexity = perplexity
        self.task = task
        self.loss = loss
        self.target_loss = target_loss
        self.target_kernel = target_kernel
        self.target_form = target_form
        self.dependence = dependence
        self.embedding_kernel = embedding_kernel
        self.input_kernel = input_kernel
        self.length_scale = length_scale
        self.metric = metric
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.init = init
        self.solver = solver
        self.optimizer = optimizer
        self.beta = beta
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_inner_iter = max_inner_iter
        self.tol = tol
        self.backend = backend
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDR:
        """Fit to samples and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, or their distances if ``metric="precomputed"``. Features are used on the scale they have:
            standardise them (``StandardScaler``) unless their scales mean something.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers or labels; None or NaN where the target is unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as counts: a sample of weight two is that sample twice.

        Returns
        -------
        SDR
            The fitted estimator.
        """
        if y is None:
            raise InvalidInputError(
                "SDR requires y to be passed, but the target y is None. Use DistR to reduce without targets."
            )
        self._fit(X, sample_weight, supervised=True, y=y)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the place of every sample: equal to ``fit(X, y).transform(X)``."""
        return self.fit(X, y, sample_weight).embedding_

    def _read_targets(self, y: Any, n_samples: int, weights: Array) -> Targets:
        targets = read_targets(y, n_samples, self.task, weights)
        self._supervision(targets).validate(targets.values)
        return targets

    def _set_target_attributes(self, targets: Targets) -> None:
        self.task_ = targets.task
        self.target_names_ = targets.column_names()
        if targets.classes is not None:
            self.classes_ = targets.classes
        elif hasattr(self, "classes_"):  # from an earlier fit to labels
            del self.classes_

    def _supervision(self, targets: Targets) -> BregmanLoss:
        default = "cross_entropy" if targets.task == "classification" else "squared"
        return get_loss(default if self.target_loss == "auto" else self.target_loss)

    def _target_kernel(self, targets: Targets) -> Kernel:
        default = "delta" if targets.task == "classification" else "rbf"
        return get_kernel(default if self.target_kernel == "auto" else self.target_kernel)

    def _named_init(self) -> str:
        """With eta = 0 targets act through the coupling alone (the paper's variant): the start must not see them."""
        return "spectral" if self.init == "auto" and self.eta == 0 and self.n_prototypes else str(self.init)

    def _supervised_settings(self, total_weight: float) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "eta": max(1000.0, total_weight) if self.eta == "auto" else self.eta,
            "dependence": self.dependence,
            "target_form": self.target_form,
            "embedding_kernel": get_kernel(self.embedding_kernel),
        }
