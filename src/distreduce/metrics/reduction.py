"""All scores of a fitted reduction in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.dependence import cka
from distreduce.estimators._targets import Targets, read_targets
from distreduce.kernels import RBF, Delta, RationalQuadratic
from distreduce.losses import supervised_rows
from distreduce.metrics.clustering import homogeneity, kmeans_nmi, weighted_silhouette


def reduction_scores(
    model: Any, y: Any, *, sample_weight: ArrayLike | None = None, random_state: Any = 0
) -> dict[str, float]:
    """Score a fitted :class:`SDR` or :class:`DistR` against the targets of its samples, on the paper's scale.

    Parameters
    ----------
    model : SDR or DistR
        The fitted reduction.
    y : array-like of shape (n,) or (n, c)
        Targets of the samples of the fit; samples without one (None, NaN) are ignored.
    sample_weight : array-like of shape (n,), optional
        Sample weights of the fit.
    random_state : int or RandomState, default=0
        Seed of the k-means clustering for ``nmi``.

    Returns
    -------
    dict
        ``homogeneity``, ``nmi`` and ``silhouette`` times 100 (NaN for regression targets), and ``cka`` [1]_ between 0
        and 1 of the prototypes (rational quadratic kernel) and their mean targets (delta kernel for classes, RBF for
        standardised numbers). All used prototypes have the same weight. The kernels do not depend on the model.

    References
    ----------
    .. [1] Cortes, Mohri, Rostamizadeh (2012). Algorithms for learning kernels based on centered alignment. Journal of
       Machine Learning Research 13.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = reduction_scores(SDR.paper(n_prototypes=10, random_state=0).fit(X, y), y)
    >>> round(scores["homogeneity"], 6), sorted(scores)
    (100.0, ['cka', 'homogeneity', 'nmi', 'silhouette'])
    """
    T = sparse.csr_array(model.coupling_)
    weights = np.ones(T.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    # Read as in the fit: the model's task decides whether numbers are classes.
    targets = read_targets(y, T.shape[0], getattr(model, "task_", "auto"), weights)
    known = supervised_rows(targets.values)
    scores = {"homogeneity": np.nan, "nmi": np.nan, "silhouette": np.nan}
    # The three scores of clusters compare classes, which regression targets lack.
    if targets.classes is not None:
        codes = targets.values[known].argmax(axis=1)
        Z, mass, part = model.prototypes_, model.prototype_weights_, T[known]
        scores = {
            "homogeneity": 100 * homogeneity(codes, part),
            "nmi": 100 * kmeans_nmi(Z, part, codes, mass, random_state=random_state),
            "silhouette": 100 * weighted_silhouette(Z, part, codes, mass, sample_weight=weights[known]),
        }
    return scores | {"cka": _prototype_cka(model.prototypes_, T, targets, weights)}


def _prototype_cka(Z: Array, T: sparse.csr_array, targets: Targets, weights: Array) -> float:
    known = supervised_rows(targets.scaled)
    # Mean target of each prototype, over its samples with a target, as the fit weighted them.
    plan = sparse.csr_array(sparse.diags_array(weights[known]) @ T[known])
    carried = np.asarray(plan.sum(axis=0)).ravel()
    used = carried > 0  # the others have no mean target
    means = np.asarray(plan.T @ targets.scaled[known])[used] / carried[used, None]
    kernel = RBF() if targets.classes is None else Delta()
    return cka(RationalQuadratic()(Z[used]), kernel(means))
