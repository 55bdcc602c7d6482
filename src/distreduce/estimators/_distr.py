"""DistR: distributional reduction without targets."""

from __future__ import annotations

from os import PathLike
from typing import Any

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.kernels import Kernel


class DistR(BaseReduction):
    """Distributional reduction: SDR's unsupervised ancestor, by the same solver.

    Takes the parameters of :class:`SDR` that do not concern targets, and ignores y. The objective is the
    Gromov-Wasserstein term and the out-of-sample map alone; attributes are those of :class:`SDR` less the targets'.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import DistR
    >>> X, _ = load_iris(return_X_y=True)
    >>> DistR(n_prototypes=10, random_state=0).fit(X).prototype_weights_.shape
    (10,)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | None = None,
        mu: float = 1.0,
        map_reg: float = 1e-2,
        perplexity: float = 30.0,
        loss: str = "kl",
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
        self.mu = mu
        self.map_reg = map_reg
        self.perplexity = perplexity
        self.loss = loss
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DistR:
        """Fit to samples; y is ignored and there for scikit-learn's pipelines. See :meth:`SDR.fit`."""
        self._fit(X, sample_weight, supervised=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the place of every sample: equal to ``fit(X).transform(X)``."""
        return self.fit(X, y, sample_weight).embedding_
