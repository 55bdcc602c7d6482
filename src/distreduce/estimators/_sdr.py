"""SDR: supervised distributional reduction."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._fit_context import whole_fit
from distreduce.estimators._mixins import Translation, translate_target_form
from distreduce.estimators._refits import fit_each_number
from distreduce.estimators._setup import Supervision
from distreduce.estimators._targets import read_targets
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Kernel, Linear, RationalQuadratic, get_kernel
from distreduce.losses import LOSSES, BregmanLoss, get_loss

DEPENDENCES = ("cka", "cka_uncentered", "hsic")
# Kernel on standardized numbers if eta="auto" and every sample is a prototype: the paper's, of length scale 1, does not
# tell far targets apart. With fewer prototypes it gains nothing (decision 21).
WIDE_KERNEL = RBF(3.0)


class SDR(BaseReduction):
    """Supervised distributional reduction (SDR).

    Reduces (X, y) to a small weighted set of low-dimensional prototypes that preserve the geometry of X and what it
    says about y [1]_. An out-of-sample map embeds every sample, seen or unseen, among the prototypes.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int, "auto" or None, default=None
        Number m of prototypes. None gives every sample its own prototype (pure dimensionality reduction), but 200 in
        all where the affinity is sparse; the fit then warns. "auto" fits 4, 8, 16, … prototypes, at least five samples
        for each, and keeps the fewest whose left-out error is within one standard error of the smallest; see
        :func:`distreduce.plotting.plot_choice`. With fewer prototypes than samples, some may end up unused, with weight
        zero. With ``eta="auto"`` those that lie within half a percent of the picture of a heavier one are merged into
        it.
    alpha : float in [0, 1], default=0.2
        Weight of the geometry (Gromov-Wasserstein term) against the supervision loss in the coupling.
    eta : float or "auto", default="auto"
        Weight of the dependence between prototypes and targets; 0 is the FGW-only variant of the paper. "auto" is the
        number of samples, because the geometry term grows with it. The coupling then sees left-out predictions of the
        targets instead of the targets (not with a sparse affinity). If X does not predict the targets, they are left
        out, as in :class:`DistR`, and the fit warns.
    mu : float, default=1.0
        Weight of the squared distance between the prototypes and the out-of-sample map.
    map_reg : float or "auto", default="auto"
        Ridge penalty (lambda) of the out-of-sample map. "auto" is the one with which left-out targets are predicted
        best, from 1e-4 to 100 times `mu`: noisy targets need more, and so do few prototypes of smooth targets.
    perplexity : float, default=30.0
        Effective number of neighbours in the input affinity, smaller than the number of samples. The default is lowered
        to a third of the samples if there are fewer than 90.
    task : {"auto", "regression", "classification"}, default="auto"
        How to read y. With "auto", strings and booleans are classes, and so are at most 20 distinct whole numbers with
        three samples per value on average (0 and 1 always). The label -1 among others from 0 on is an unknown class.
    loss : {"kl", "square"}, default="kl"
        Loss of the Gromov-Wasserstein term, which compares the affinities of samples and of prototypes.
    target_loss : str or BregmanLoss, default="auto"
        Supervision loss in the coupling: "squared", "cross_entropy", "poisson", "geometric" or "itakura_saito". "auto"
        is squared for regression, cross-entropy for classification.
    target_kernel : {"auto", "rbf", "rq", "delta", "linear"} or callable, default="auto"
        Kernel on the targets (regression targets are standardized). "auto" is delta for classes and rbf for regression,
        of length scale 3 with ``eta="auto"`` and ``n_prototypes=None``, else 1.
    dependence : {"cka", "cka_uncentered", "hsic"}, default="cka"
        Measure of dependence; "cka_uncentered" is the formula as the paper prints it. With fewer prototypes than
        samples the targets of a prototype are the mean over its samples, and all prototypes count alike. Append ":mass"
        to weight the prototypes by their mass, or ":transport" for the paper's T'K_Y T, as in "cka:transport".
    embedding_kernel : {"auto", "rq", "rbf", "linear"} or kernel, default="auto"
        Kernel on the prototypes in the dependence. "auto" is rq. With it and ``eta="auto"``, up to three axes are a
        picture: one that is less than a fifth as wide as the widest then shows the direction of X that the map keeps
        best for new samples.
    input_kernel : {"rbf", "rq", "linear"} or callable, default="rbf"
        Kernel of the out-of-sample map.
    length_scale : {"auto", "median", "ard"}, float or array-like, default="auto"
        Length scale of `input_kernel`. "auto" takes what predicts left-out targets best: half, once or twice the
        median, or one learned length scale per feature, which is then the metric of the whole fit. "median" gives
        ``exp(−|x − x'|² / median squared distance)``; "ard" learns one per feature for the map alone. Ignored if
        `input_kernel` is "linear" or a callable.
    metric : {"euclidean", "precomputed"}, default="euclidean"
        If "precomputed", X is a symmetric matrix of distances.
    affinity : {"auto", "dense", "sparse", "precomputed"}, int or array of shape (n_samples, n_samples), default="auto"
        How the affinity of the samples is stored. "dense": all pairs, in n×n arrays. "sparse": a graph of nearest
        neighbours, and landmarks for the map, so that time and memory grow linearly with the samples. An integer is a
        sparse graph with that many neighbours per sample; "sparse" takes three times the perplexity. "auto" is sparse
        above 3,000 samples (10,000 if `eta` is a number), but dense if `init` gives every sample a prototype.
        An array or sparse matrix is a graph, or any non-negative similarity of the samples: it replaces the affinity
        of the features, which then drive the map alone. With "precomputed" X is that graph, and a new sample is the
        row of its similarities to the samples of the fit.
    init : {"auto", "identity", "random", "kmeans", "spectral", "supervised_spectral"} or array-like, default="auto"
        Initial coupling: a name, prototype indices of shape (n_samples,), or shares of shape (n_samples,
        n_prototypes). "auto" is "identity" for ``n_prototypes=None``, else "supervised_spectral", or "spectral" if
        `eta` is 0.
    solver : {"joint", "alternating"}, default="joint"
        "joint" eliminates the map in closed form; "alternating" with ``optimizer="adam"`` is the paper's algorithm.
    optimizer : {"lbfgs", "adam"}, default="lbfgs"
        Optimizer of the prototypes in the Z-step.
    beta : float in [0, 1], default=0.5
        Relaxation of the prototypes towards the map. Only used by ``solver="alternating"``.
    learning_rate : float, default=1e-3
        Step size of Adam. Only used by ``optimizer="adam"``.
    max_iter : int, default=50
        Maximum number of outer iterations. 0 keeps the initial coupling (with ``n_prototypes=None`` the identity) and
        optimizes the prototypes alone.
    max_inner_iter : int, default=100
        Maximum number of optimizer steps in one Z-step.
    tol : float, default=1e-6
        The fit ends when an outer iteration lowers the objective by less than this, relative to the objective; with
        ``eta="auto"`` and one prototype per sample, by less than 1000 times this.
    backend : {"auto", "numba", "numpy", "torch"} or "torch:DEVICE", default="auto"
        Implementation of the Z-step. "auto" is Numba for more than 160 samples where it supports the kernel, else
        NumPy. "torch" uses a GPU if there is one; "torch:cuda:0" or "torch:cpu" names the device.
    n_jobs : int or None, default=None
        Number of threads; None uses every core. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the initial coupling and of the initial prototypes.
    verbose : int, default=0
        If positive, show a progress bar.
    checkpoint : str, path-like or None, default=None
        File that keeps the state of the fit after every outer iteration. If the process ends early, the same call
        resumes from the file and finds the same result to the last bit. Needs a `random_state`.

    Attributes
    ----------
    prototypes_ : array of shape (n_prototypes, n_components)
        Prototypes Z.
    prototype_weights_ : array of shape (n_prototypes,)
        Weights of the prototypes; they sum to one.
    prototype_targets_ : array of shape (n_prototypes, n_targets)
        Mean target of each prototype in the units of y, or its class shares.
    prototype_medoids_ : array of shape (n_prototypes,)
        Row index of the sample that represents each prototype: among its own samples, the nearest to their means of X
        and y, each in units of its variance within prototypes; of merged prototypes, that of the heaviest.
    coupling_ : scipy sparse array of shape (n_samples, n_prototypes)
        Coupling T; its rows sum to one.
    labels_ : array of shape (n_samples,)
        Index of the prototype with the largest share of each sample.
    embedding_ : array of shape (n_samples, n_components)
        Embedding of the training samples, equal to ``transform(X)``.
    embedding_left_out_ : array of shape (n_samples, n_components)
        Where each training sample would lie had it not been in the fit: by a map (and metric) learned without the fifth
        of the samples that it belongs to; above 3000 samples, and on shards, by leave-one-out of the map.
    prototype_evidence_ : pandas.DataFrame
        Targets of the samples whose left-out place is nearest to each prototype: what a new sample there can be
        expected to have. Number of samples; means, standard deviations and 5 to 95 % ranges, or class shares; purity
        (of classes with a 95 % interval), compactness and separation; whether the fit believes otherwise ("dubious").
    neighbor_scores_ : dict
        Accuracy or R² of the 10 nearest neighbours: "fitted", in the plane as fitted, "left_out", in the plane for
        samples that were left out, and "all_features".
    prototype_choice_ : pandas.DataFrame
        With ``n_prototypes="auto"``: error of left-out targets for each number, its standard error, and which was
        chosen.
    eta_ : float
        Weight of the dependence that was used.
    map_reg_ : float
        Ridge penalty that was used.
    map_ : KernelMap
        Out-of-sample map L, with the inputs that it needs to embed new samples.
    history_ : pandas.DataFrame
        One row for the initial prototypes and one per outer iteration: objective, its four terms, CKA, evaluations,
        seconds.
    objective_ : float
        Final value of the objective J.
    n_iter_ : int
        Number of rows of `history_`.
    converged_ : bool
        Whether the tolerance was met.
    perplexity_ : float
        Perplexity that was used.
    task_ : {"regression", "classification"}
        How y was read.
    classes_ : array of shape (n_classes,)
        Class labels in the order of the columns of `prototype_targets_`; for classification only.
    target_names_ : list of str
        Names of the columns of `prototype_targets_`.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : array of shape (n_features,)
        Names of the features; only if X has names that are all strings.

    References
    ----------
    .. [1] S.-A. Ramesh, A. Sood, A. Corbett, T. Dodwell (2026). Supervised Distributional Reduction via Optimal
       Transport and Dependence Maximization. arXiv:2605.27619.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> model.prototypes_.shape, model.transform(X[:3]).shape
    ((10, 2), (3, 2))
    """

    _renamed: ClassVar[Mapping[str, Translation]] = {**BaseReduction._renamed, "target_form": translate_target_form}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseReduction._parameter_constraints,
        "n_prototypes": [*BaseReduction._parameter_constraints["n_prototypes"], StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "eta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "map_reg": [*BaseReduction._parameter_constraints["map_reg"], StrOptions({"auto"})],
        "length_scale": [*BaseReduction._parameter_constraints["length_scale"], StrOptions({"auto"})],
        "task": [StrOptions({"auto", "regression", "classification"})],
        "target_loss": [StrOptions({"auto", *LOSSES}), BregmanLoss],
        "target_kernel": [StrOptions({"auto", "rbf", "rq", "delta", "linear"}), callable],
        "dependence": [StrOptions({name + form for name in DEPENDENCES for form in ("", ":mass", ":transport")})],
        "embedding_kernel": [StrOptions({"auto", "rq", "rbf", "linear"}), RationalQuadratic, RBF, Linear],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | str | None = None,
        alpha: float = 0.2,
        eta: float | str = "auto",
        mu: float = 1.0,
        map_reg: float | str = "auto",
        perplexity: float = 30.0,
        task: str = "auto",
        loss: str = "kl",
        target_loss: str | BregmanLoss = "auto",
        target_kernel: str | Kernel = "auto",
        dependence: str = "cka",
        embedding_kernel: str | Kernel = "auto",
        input_kernel: str | Kernel = "rbf",
        length_scale: Any = "auto",
        metric: str = "euclidean",
        affinity: Any = "auto",
        init: Any = "auto",
        solver: str = "joint",
        optimizer: str = "lbfgs",
        beta: float = 0.5,
        learning_rate: float = 1e-3,
        max_iter: int = 50,
        max_inner_iter: int = 100,
        tol: float = 1e-6,
        backend: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            n_components, n_prototypes=n_prototypes, mu=mu, map_reg=map_reg, perplexity=perplexity, loss=loss,
            input_kernel=input_kernel, length_scale=length_scale, metric=metric, affinity=affinity, init=init,
            solver=solver, optimizer=optimizer, beta=beta, learning_rate=learning_rate, max_iter=max_iter,
            max_inner_iter=max_inner_iter, tol=tol, backend=backend, n_jobs=n_jobs, random_state=random_state,
            verbose=verbose, checkpoint=checkpoint,
        )  # fmt: skip
        self.alpha = alpha
        self.eta = eta
        self.task = task
        self.target_loss = target_loss
        self.target_kernel = target_kernel
        self.dependence = dependence
        self.embedding_kernel = embedding_kernel

    @classmethod
    def paper(cls, n_components: int = 2, **parameters: Any) -> SDR:
        """Return an estimator with the constants of the paper instead of those that left-out samples choose.

        Parameters
        ----------
        n_components : int, default=2
            Dimension of the embedding.
        **parameters : dict
            Any parameters, which replace the paper's: ``eta=1000``, ``map_reg=0.01``, ``length_scale="median"``.
        """
        constants: dict[str, Any] = {"eta": 1000.0, "map_reg": 1e-2, "length_scale": "median"}
        return cls(n_components, **constants | parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> SDR:
        """Fit to samples and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, or their distances if ``metric="precomputed"``. Features are not scaled: standardize them
            (``StandardScaler``) unless their scales are meaningful.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers or labels; None or NaN where the target is unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as counts: a sample of weight two is that sample twice. Divide weights of a survey by their mean.
        groups : array-like of shape (n_samples,), optional
            Group of each sample, such as its patient. What the fit learns from left-out samples, it then learns from
            left-out groups, so that it holds for samples of new groups. At most 3,000 samples.

        Returns
        -------
        SDR
            The fitted estimator.
        """
        if y is None:  # scikit-learn's checks look for the words of the message
            raise InvalidInputError(
                "SDR requires y to be passed, but the target y is None. Use DistR to reduce without targets."
            )
        if self.n_prototypes != "auto":
            self._fit(X, y, sample_weight, groups=groups)
            return self
        with whole_fit(self):
            self._validate_params()
            model, table = fit_each_number(self, X, y, sample_weight, groups)
            found = {name: value for name, value in vars(model).items() if name.endswith("_")}
            self.__dict__.update(found, prototype_choice_=table)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Array:
        """Fit, and return the embedding of the samples, equal to ``fit(X, y).transform(X)``."""
        return self.fit(X, y, sample_weight, groups).embedding_

    def _supervise(self, y: Any, n_samples: int, weights: Array) -> Supervision:
        targets = read_targets(y, n_samples, self.task, weights)
        # The meaning of "auto" depends on the task.
        classes = targets.task == "classification"
        loss = "cross_entropy" if classes else "squared"
        kernels: Any = ("delta", "rq") if classes else ("rbf", "rq")
        if not classes and self.eta == "auto" and self.n_prototypes is None:
            kernels = (WIDE_KERNEL, "rq")
        target_loss = get_loss(loss if self.target_loss == "auto" else self.target_loss)
        target_loss.validate(targets.values)  # raises, for example for negative counts
        given = (self.target_kernel, self.embedding_kernel)
        target_kernel, embedding_kernel = (
            get_kernel(chosen if own == "auto" else own) for own, chosen in zip(given, kernels, strict=True)
        )
        measure, _, form = self.dependence.partition(":")  # "cka:mass" is a measure and a form of the targets
        settings = {"alpha": self.alpha, "eta": self.eta, "embedding_kernel": embedding_kernel}
        settings |= {"dependence": measure, "target_form": form or "barycentric"}
        return Supervision(targets, target_loss, target_kernel, settings)
