"""Left-out places by refitting: exact and slow, beside the ``embedding_left_out_`` of a single fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.typing import Array


def cross_val_embedding(model: Any, X: Any, y: Any, cv: Any = 5) -> Array:
    """Embed every sample by a model that was fitted without its fold.

    Each fold needs a fit of its own. Its plane is rotated, shifted and scaled onto that of `model`, as a reduction has
    no orientation of its own.

    Parameters
    ----------
    model : SDR
        Fitted to X and y; it stays as it is.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The samples that it was fitted to.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Their targets.
    cv : int, cross-validation generator or iterable, default=5
        How to leave out, as in scikit-learn: the number of folds (stratified for classes), a splitter, or pairs of
        training and test rows.

    Returns
    -------
    array of shape (n_samples, n_components)
        Left-out places. NaN for samples that no fold leaves out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR, cross_val_embedding
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> cross_val_embedding(model, X, y, cv=3).shape
    (150, 2)
    """
    check_is_fitted(model)
    folds = check_cv(cv, y, classifier=model.task_ == "classification")
    if isinstance(cv, int):
        folds.shuffle, folds.random_state = True, 0  # samples may be sorted
    places = np.full_like(model.embedding_, np.nan)
    for train, test in folds.split(np.empty((len(places), 0)), y):
        fitted = clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train))
        places[test] = _align(fitted.embedding_, model.embedding_[train], fitted.transform(_safe_indexing(X, test)))
    return places


def _align(points: Array, onto: Array, others: Array) -> Array:
    """Apply to `others` the rotation, shift and scale that bring `points` nearest to the same samples in `onto`."""
    centre, target = points.mean(axis=0), onto.mean(axis=0)
    rotation, size = orthogonal_procrustes(points - centre, onto - target)
    scale = size / max(float(((points - centre) ** 2).sum()), np.finfo(float).tiny)
    return np.asarray(scale * (others - centre) @ rotation + target)
