"""What takes several fits: left-out places by a refit without each fold, and ``n_prototypes="auto"``.

Places by refitting are exact and slow; ``embedding_left_out_`` of a single fit is close to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.typing import Array, Index
from distreduce.estimators._targets import Targets, read_targets
from distreduce.estimators._validate import read_weights
from distreduce.exceptions import InvalidInputError
from distreduce.losses import supervised_rows
from distreduce.mapping.folds import are_copies
from distreduce.mapping.left_out import align, lay_over
from distreduce.sharding.merge import merge_duplicates


def cross_val_embedding(model: Any, X: Any, y: Any, cv: Any = 5, groups: Any = None) -> Array:
    """Embed every sample by a model that was fitted without its fold.

    Each fold needs a fit of its own. Its plane is laid over that of `model`, as a reduction has no orientation of its
    own: rotated, shifted and scaled, and then each part moved with the samples around it.

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
    groups : array-like of shape (n_samples,), optional
        Group of each sample: whole groups are left out, and the fits get the groups of their samples.

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
        folds = folds if groups is None else GroupKFold(cv)
        folds.shuffle, folds.random_state = True, 0  # samples may be sorted
    places = np.full_like(model.embedding_, np.nan)
    for train, test in folds.split(np.empty((len(places), 0)), y, groups):
        own = None if groups is None else _safe_indexing(groups, train)
        fitted = clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train), groups=own)
        new, ones = fitted.transform(_safe_indexing(X, test)), np.ones(len(train))
        places[test] = lay_over(new, fitted.embedding_, model.embedding_[train], ones)
    return places


def align_embedding(model: Any, onto: Any, X: Any) -> Array:
    """Embed samples by one model in the plane of another: where the later fit puts them, on the earlier picture.

    A reduction has no orientation, origin or scale of its own. The plane of `model` is rotated or reflected, shifted
    and scaled such that the samples come as near as possible to their places in `onto`; what is left is change.

    Parameters
    ----------
    model, onto : SDR or DistR
        Fitted models with the same features and the same n_components.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples that both can embed.

    Returns
    -------
    array of shape (n_samples, n_components)
        Places by `model` in the plane of `onto`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR, align_embedding
    >>> X, y = load_iris(return_X_y=True)
    >>> before, after = (SDR(n_prototypes=10, random_state=0).fit(X[k::2], y[k::2]) for k in (0, 1))
    >>> align_embedding(after, before, X).shape
    (150, 2)
    """
    places, target = model.transform(X), onto.transform(X)
    if places.shape[1] != target.shape[1]:
        raise InvalidInputError(
            f"model embeds in {places.shape[1]} dimensions and onto in {target.shape[1]}; they have no common plane."
        )
    return align(places, places, target, np.ones(len(places)))


FEWEST, MOST = 4, 256
SAMPLES_PER_PROTOTYPE = 5  # on average at least: fewer say little about their targets


def fit_each_number(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Any, pd.DataFrame]:
    """Fit 4, 8, 16, … prototypes, and return the model with the fewest that is not clearly worse than the best.

    The error is that of predicting a sample by the mean target of the other samples whose left-out place is nearest to
    the same prototype. The fewest prototypes whose error is within one standard error of the smallest are chosen. The
    table has, for each number, the error relative to that of the mean, its standard error, and which was chosen.
    """
    if estimator.checkpoint is not None:
        raise InvalidInputError("checkpoint is of one fit, and n_prototypes='auto' makes several; give a number.")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    models, choice, table, m = [], None, [], FEWEST
    while m <= min(MOST, n // SAMPLES_PER_PROTOTYPE):
        models.append(clone(estimator).set_params(n_prototypes=m))
        choice = models[-1]._fit(X, y, sample_weight, choice, groups)  # metric and ridge do not depend on the number
        if m == FEWEST:
            weights = read_weights(sample_weight, models[0].embedding_)
            targets = read_targets(y, n, models[0].task_, weights)
            rows, weights = _merge_copies(models[0].embedding_left_out_, targets.scaled, weights)
            n = len(rows)
        table.append((m, *_judge(models[-1], targets, rows, weights)))
        m *= 2
    if n < FEWEST * SAMPLES_PER_PROTOTYPE:
        raise InvalidInputError(
            f"n_prototypes='auto' needs at least {FEWEST * SAMPLES_PER_PROTOTYPE} samples; got {n}, copies not "
            "counted. Give a number."
        )
    found = pd.DataFrame(table, columns=["n_prototypes", "error", "standard_error"])
    best = found.loc[found["error"].idxmin()]
    chosen = int(np.flatnonzero(found["error"] <= best["error"] + best["standard_error"])[0])
    return models[chosen], found.assign(chosen=found.index == chosen)


def _merge_copies(places: Array, Y: Array, weights: Array) -> tuple[Index, Array]:
    """Return the rows with a weight, of copies one, and their total weights; copies have the same left-out place."""
    used = np.flatnonzero(weights > 0)
    group = merge_duplicates(places[used], None, weights[used]).group
    if not are_copies(group, np.ones(len(used), dtype=np.intp), Y[used]):
        return used, weights[used]
    samples = merge_duplicates(places[used], Y[used], weights[used])
    return used[samples.rows], samples.weights


def _judge(model: Any, targets: Targets, rows: Index, weights: Array) -> tuple[float, float]:
    """Return the mean squared error of the samples with a target, the total variance being one, and its error."""
    known = supervised_rows(targets.values)[rows]
    rows, h = rows[known], weights[known]
    Y = targets.scaled[rows]
    mean = h @ Y / h.sum()
    near = nearest_in_use(model.embedding_left_out_[rows], model.prototypes_, model.prototype_weights_)
    sums, mass = np.zeros((len(model.prototypes_), Y.shape[1])), np.zeros(len(model.prototypes_))
    np.add.at(sums, near, h[:, None] * Y)
    np.add.at(mass, near, h)
    # The others' mean; of a sample that is alone with its prototype, the mean of all.
    others = mass[near] - h
    alone = others <= 1e-9 * mass[near]
    expected = (sums[near] - h[:, None] * Y) / np.where(alone, 1.0, others)[:, None]
    expected[alone] = mean
    spread = float(h @ ((Y - mean) ** 2).sum(axis=1)) / h.sum()
    errors = ((Y - expected) ** 2).sum(axis=1) / spread
    error = float(h @ errors / h.sum())
    return error, float(np.sqrt(h**2 @ (errors - error) ** 2) / h.sum())
