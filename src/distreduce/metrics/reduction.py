"""All scores of a fitted reduction, and its criticisms: the samples that the prototypes represent worst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.typing import Array, Index
from distreduce.dependence import cka
from distreduce.estimators._evidence import LEAST_OF_CLASSES
from distreduce.estimators._refits import align_embedding
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


def drift(before: Any, after: Any, X: Any) -> float:
    r"""Measure how much a later fit sees the same samples differently, beyond a turn of the picture.

    .. math:: \sqrt{\frac{\sum_i |z'_i - z_i|^2}{\sum_i |z_i - \bar z|^2}}

    z are the places by `before`, z' those by `after`, aligned (:func:`distreduce.align_embedding`). Chance makes some
    drift too: compare with that between fits to two random halves of the earlier samples.

    Parameters
    ----------
    before, after : SDR or DistR
        Fitted models with the same features and the same n_components.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples that both can embed.

    Returns
    -------
    float
        0 if all samples keep their places; at most 1, if the later places say nothing about the earlier ones.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> before, after = (SDR(n_prototypes=10, random_state=0).fit(X[k::2], y[k::2]) for k in (0, 1))
    >>> 0.0 < drift(before, after, X) < 0.5
    True
    """
    places = before.transform(X)
    moved = align_embedding(after, before, X) - places
    return float(np.sqrt((moved**2).sum() / ((places - places.mean(axis=0)) ** 2).sum()))


def criticisms(model: Any, y: Any = None, n: int = 10) -> pd.DataFrame:
    """Return the samples that the prototypes represent worst [1]_: far from all, or with an unexpected target.

    Parameters
    ----------
    model : SDR or DistR
        The fitted reduction.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Targets of the samples of the fit, None or NaN where unknown. Without them, or with DistR, the distance alone
        counts.
    n : int, default=10
        How many samples to return.

    Returns
    -------
    pandas.DataFrame
        The index is the row of the sample, worst first. ``prototype`` is the nearest one in use to the sample's
        left-out place (its fitted place for DistR). ``distance`` is that to the prototype; 1 is the root mean square of
        all samples. ``surprise`` is the log ratio of the most expected target to that of the sample, as
        ``prototype_evidence_`` has them: 0 for the expected one, NaN if it is unknown. The order is that of
        ``surprise + log(1 + distance²)``, in which a sample three times as far away as usual counts as much as one
        whose class is ten times as rare there as the most frequent.

    References
    ----------
    .. [1] Kim, Khanna, Koyejo (2016). Examples are not enough, learn to criticize! Criticism for interpretability.
       Advances in Neural Information Processing Systems 29.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> worst = criticisms(SDR(n_prototypes=10, random_state=0).fit(X, y), y, n=3)
    >>> worst.shape, list(worst.columns)
    ((3, 3), ['prototype', 'distance', 'surprise'])
    """
    check_is_fitted(model)
    Z = getattr(model, "embedding_left_out_", model.embedding_)
    nearest = nearest_in_use(Z, model.prototypes_, model.prototype_weights_)
    distance = np.linalg.norm(Z - model.prototypes_[nearest], axis=1)
    distance = distance / (np.sqrt(np.mean(distance**2)) or 1.0)  # all samples may lie on their prototypes
    surprise = _find_surprise(model, y, nearest)
    score = np.log1p(distance**2) + np.nan_to_num(surprise)
    worst = np.argsort(-score, kind="stable")[:n]
    table = pd.DataFrame({"prototype": nearest, "distance": distance, "surprise": surprise})
    return table.iloc[worst].rename_axis("sample")


def _find_surprise(model: Any, y: Any, nearest: Index) -> Array:
    if y is None or not hasattr(model, "prototype_evidence_"):
        return np.full(len(nearest), np.nan)
    targets = read_targets(y, len(nearest), model.task_, np.ones(len(nearest)), to_learn=False)
    evidence = model.prototype_evidence_.iloc[nearest]
    expected = evidence[model.target_names_].to_numpy()
    if targets.classes is None:
        spread = evidence[[name.replace("mean ", "sd ", 1) for name in model.target_names_]].to_numpy()
        # Equal targets have no spread: nothing is expected more closely than the rounding of y.
        deviation = (targets.values - expected) / np.maximum(spread, np.finfo(np.float64).eps)
        return np.asarray((deviation**2).mean(axis=1) / 2)
    # One more sample of each class, or a class that was not seen nearby would be infinitely surprising.
    count = np.maximum(evidence["n_samples"].to_numpy(), LEAST_OF_CLASSES)[:, None]
    shares = (expected * count + 1) / (count + expected.shape[1])
    own = pd.Index(model.classes_).get_indexer(pd.Index(targets.classes))[np.nan_to_num(targets.values).argmax(axis=1)]
    found = np.log(shares.max(axis=1) / shares[np.arange(len(own)), own])
    return np.where(np.isnan(targets.values).any(axis=1), np.nan, found)
