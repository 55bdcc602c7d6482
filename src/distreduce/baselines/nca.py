"""NCA: neighbourhood components analysis, and its kernel-regression form for numeric targets."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils._param_validation import Interval

from distreduce._utils.numerics import sq_distances
from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.baselines._by_task import SupervisedTransformer


class NCA(SupervisedTransformer):
    r"""Neighbourhood components analysis [1]_: a linear map z = A x.

    Let :math:`p_{ij} \propto \exp(-|Ax_i - Ax_j|^2)`, :math:`p_{ii} = 0`, be the probability that i picks j as its
    neighbour: the neighbourhood has unit width, so standardise features first. For classes, NCA maximises the expected
    number of samples that a random neighbour classifies correctly, :math:`\sum_{ij} p_{ij} [y_i = y_j]`, by
    scikit-learn's :class:`~sklearn.neighbors.NeighborhoodComponentsAnalysis`.

    For numbers, the neighbours predict by their mean (metric learning for kernel regression [2]_), and the squared
    error :math:`\sum_i |y_i - \sum_j p_{ij} y_j|^2` is minimised. The SDR paper reports NCA-GP on regression without
    saying how. This form takes several targets, needs no bins, and gave the best results of those tried (decision 13).

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding, at most the number of features.
    task : {"auto", "regression", "classification"}, default="auto"
        How to read y, as in :class:`distreduce.SDR`.
    max_iter : int, default=50
        Largest number of iterations of L-BFGS.
    tol : float, default=1e-5
        Tolerance of L-BFGS.
    random_state : int, RandomState or None, default=None
        Seed of scikit-learn's NCA.

    Attributes
    ----------
    components_ : (p, n_features) array
        The map A.
    n_iter_ : int
        Number of iterations of L-BFGS.
    task_ : str
        The task that y was read for.

    References
    ----------
    .. [1] Goldberger, Roweis, Hinton, Salakhutdinov (2004). Neighbourhood components analysis. NIPS.
    .. [2] Weinberger, Tesauro (2007). Metric learning for kernel regression. AISTATS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> NCA(random_state=0).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupervisedTransformer._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        task: str = "auto",
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.task = task
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn(self, X: Array, Y: Array) -> None:
        self._check_components(X.shape[1], "features")
        with single_threaded_blas():
            # Classes are one-hot here; scikit-learn wants their numbers.
            if self.task_ == "classification":
                nca = NeighborhoodComponentsAnalysis(
                    self.n_components, max_iter=self.max_iter, tol=self.tol, random_state=self.random_state
                )
                nca.fit(X, Y.argmax(axis=1))
                self.components_, self.n_iter_ = np.asarray(nca.components_, dtype=np.float64), int(nca.n_iter_)
            else:
                found = _regression_components(X, Y, self.n_components, self.max_iter, self.tol)
                self.components_, self.n_iter_ = found

    def _embed(self, X: Array) -> Array:
        return np.einsum("ij,kj->ik", X, self.components_)  # unlike a matrix product, rounds alike in every batch


def _regression_components(X: Array, Y: Array, p: int, max_iter: int, tol: float) -> tuple[Array, int]:
    """A (p, d) of the kernel-regression form, by L-BFGS, and the iterations it took."""
    centred = X - X.mean(axis=0)  # only differences matter, and smaller numbers lose fewer digits
    start, options = _start(centred, Y, p).ravel(), {"maxiter": max_iter, "ftol": tol, "gtol": 0.0}
    found = minimize(
        lambda a: leave_one_out_error(a.reshape(p, -1), centred, Y), start, jac=True, method="L-BFGS-B", options=options
    )
    # scikit-learn expects n_iter_ to be at least 1, even if the start is optimal.
    return np.asarray(found.x.reshape(p, -1)), max(1, int(found.nit))


def leave_one_out_error(A: Array, X: Array, Y: Array) -> tuple[float, Array]:
    r"""Mean of :math:`|y_i - \sum_j p_{ij} y_j|^2` and its gradient in A, flat.

    With residuals r, the loss has the derivative :math:`w_{ij} = 2 p_{ij}\, r_i^\top (y_j - \hat y_i)` in
    :math:`|Ax_i - Ax_j|^2`, so that its gradient is :math:`2 A \sum_{ij} w_{ij} (x_i - x_j)(x_i - x_j)^\top`.
    """
    Z = X @ A.T
    D = sq_distances(Z)
    # No sample is its own neighbour; the nearest one has exponent 0, so no row underflows.
    np.fill_diagonal(D, np.inf)
    P = np.exp(D.min(axis=1, keepdims=True) - D)
    P /= P.sum(axis=1, keepdims=True)
    predicted = P @ Y
    R = Y - predicted
    W = 2.0 * P * (R @ Y.T - (R * predicted).sum(axis=1, keepdims=True))
    # (i, j) and (j, i) have the same difference: with symmetric weights, the sum is a graph Laplacian.
    W += W.T
    gradient = 2.0 * (Z.T * W.sum(axis=0) - Z.T @ W) @ X
    return float((R**2).sum() / len(X)), gradient.ravel() / len(X)


def _start(X: Array, Y: Array, p: int) -> Array:
    """Partial least squares directions with unit spread, the analogue for numbers of scikit-learn's LDA start.

    If PLS explains y with fewer directions, principal axes are added.
    """
    # PLS warns when y is explained already; the directions that are left are filled below.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*residual is constant", category=UserWarning)
        pls = PLSRegression(min(p, *X.shape), scale=False).fit(X, Y).x_rotations_.T
    # PLS returns zeros for directions beyond what explains y.
    axes = PCA(min(p, *X.shape), svd_solver="full").fit(X).components_
    directions = np.zeros((p, X.shape[1]))
    directions[: len(pls)] = np.where(pls.any(axis=1, keepdims=True), pls, axes)
    spread = (X @ directions.T).std(axis=0)
    # Unit spread, because the neighbourhood has unit width.
    return directions / np.where(spread > 0, spread, 1.0)[:, None]
