"""Supervised UMAP, by umap-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numba
import numpy as np
from sklearn.utils._param_validation import Interval

from distreduce.baselines._by_task import SupervisedTransformer
from distreduce.estimators._validate import own_generator
from distreduce.exceptions import InvalidInputError, MissingDependencyError
from distreduce_paper.problems import Array

KNOWN_WARNINGS = ("Graph is not fully connected", "Spectral initialisation failed")


class SupervisedUMAP(SupervisedTransformer):
    """UMAP with targets [1]_, by umap-learn: the graph of X intersected with that of y.

    In umap-learn the place of a new sample depends on the rest of its batch, because the samples of a call share random
    numbers; and for the training data it returns the fitted places, which have seen y. Here every row is placed by
    itself, whether or not it is a training sample, at about 5 to 20 ms per row (n = 400 to 1600). A model trained on
    these places therefore sees training samples as it will see new ones: a GP on Concrete (20 Adam steps, five splits)
    has a test MLL / MSE of -1.47 / 0.49, against -1.72 / 0.69 on the fitted places (the paper's UMAP-GP: -1.38 / 0.67).
    The fitted places are ``umap_.embedding_``.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    task : {"auto", "regression", "classification"}, default="auto"
        How to read y, as in :class:`distreduce.SDR`; numbers are compared by the Euclidean distance ("l2").
    n_neighbors : int, default=50
        Number of neighbours in the graph, at most n − 1.
    min_dist : float, default=0.1
        Smallest distance between embedded samples.
    random_state : int, RandomState or None
        Seed of the descent.

    Attributes
    ----------
    umap_ : umap.UMAP
        The fitted model of umap-learn.
    task_ : str
        The task that y was read for.

    References
    ----------
    .. [1] McInnes, Healy, Melville (2018). UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction.
       arXiv:1802.03426.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SupervisedUMAP(random_state=0).fit_transform(X, y).shape  # doctest: +SKIP
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupervisedTransformer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "min_dist": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        task: str = "auto",
        n_neighbors: int = 50,
        min_dist: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.task = task
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.random_state = random_state

    def _learn(self, X: Array, Y: Array) -> None:
        if len(X) < 4:
            raise InvalidInputError(f"X has {len(X)} samples with a target; UMAP needs four or more (n_samples >= 4).")
        classes = self.task_ == "classification"
        generator = own_generator(self.random_state)
        model = _umap().UMAP(
            n_components=self.n_components,
            n_neighbors=min(self.n_neighbors, len(X) - 1),
            min_dist=self.min_dist,
            # The spectral start needs more samples than eigenvectors.
            init="spectral" if len(X) > 2 * self.n_components + 10 else "random",
            target_metric="categorical" if classes else "l2",
            random_state=generator.randint(2**31 - 1),
            n_jobs=1,  # with a seed, umap-learn uses one thread anyway, and warns
        )
        with _quiet():
            self.umap_ = model.fit(X, Y.argmax(axis=1) if classes else Y)

    def _embed(self, X: Array) -> Array:
        with _quiet():
            # One call per row: the rows of a call share random numbers.
            rows = [self.umap_.transform(row[None])[0] for row in X]
        return np.asarray(rows, dtype=np.float64)


def _umap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Tensorflow not installed", category=ImportWarning)
            import umap
    except ImportError as error:
        raise MissingDependencyError(
            "SupervisedUMAP needs umap-learn, which is not installed: pip install 'distreduce[umap]'."
        ) from error
    return umap


@contextmanager
def _quiet() -> Iterator[None]:
    """Use one Numba thread, because a row takes less time than the threads' synchronisation; silence known warnings."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            for message in KNOWN_WARNINGS:
                warnings.filterwarnings("ignore", message=message, category=UserWarning)
            yield
    finally:
        numba.set_num_threads(threads)
