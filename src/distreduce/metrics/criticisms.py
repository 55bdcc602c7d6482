"""Criticisms: the samples that the prototypes represent worst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.typing import Array, Index
from distreduce.estimators._targets import read_targets

LEAST_COUNT = 19  # samples behind the evidence of a prototype, at least


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
    nearest, distance = find_nearest_prototypes(model, Z)
    distance = distance / (np.sqrt(np.mean(distance**2)) or 1.0)  # all samples may lie on their prototypes
    surprise = _find_surprise(model, y, nearest)
    score = np.log1p(distance**2) + np.nan_to_num(surprise)
    worst = np.argsort(-score, kind="stable")[:n]
    table = pd.DataFrame({"prototype": nearest, "distance": distance, "surprise": surprise})
    return table.iloc[worst].rename_axis("sample")


def find_nearest_prototypes(model: Any, Z: Array) -> tuple[Index, Array]:
    """Return the prototype in use that is nearest to each place, and its distance."""
    # A prototype without weight stands for no sample, so none may be assigned to it.
    used = np.flatnonzero(model.prototype_weights_)
    nearest, distance = pairwise_distances_argmin_min(Z, model.prototypes_[used])
    return used[nearest], distance


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
    count = np.maximum(evidence["n_samples"].to_numpy(), LEAST_COUNT)[:, None]
    shares = (expected * count + 1) / (count + expected.shape[1])
    own = pd.Index(model.classes_).get_indexer(pd.Index(targets.classes))[np.nan_to_num(targets.values).argmax(axis=1)]
    found = np.log(shares.max(axis=1) / shares[np.arange(len(own)), own])
    return np.where(np.isnan(targets.values).any(axis=1), np.nan, found)
