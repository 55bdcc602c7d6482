"""The number of prototypes, chosen by how well prototypes predict left-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from distreduce._utils.numerics import nearest
from distreduce._utils.typing import Array
from distreduce.estimators._targets import read_targets
from distreduce.estimators._validate import read_weights
from distreduce.exceptions import InvalidInputError
from distreduce.losses import supervised_rows
from distreduce.mapping.choice import MapChoice

FEWEST, MOST = 4, 256
SAMPLES_PER_PROTOTYPE = 5  # on average at least: fewer say little about their targets


def fit_each_number(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, pd.DataFrame]:
    """Fit 4, 8, 16, … prototypes, and return the model with the fewest that is not clearly worse than the best.

    The error is that of predicting a sample by the mean target of the other samples whose left-out place is nearest to
    the same prototype. The fewest prototypes whose error is within one standard error of the smallest are chosen.

    Returns
    -------
    model : SDR
        The chosen one, fitted.
    table : pandas.DataFrame
        For each number the error, relative to that of the mean, its standard error, and which was chosen.
    """
    if estimator.checkpoint is not None:
        raise InvalidInputError("checkpoint is of one fit, and n_prototypes='auto' makes several; give a number.")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    numbers = [2**k for k in range(2, 9) if 2**k <= min(MOST, n // SAMPLES_PER_PROTOTYPE)]
    if not numbers:
        raise InvalidInputError(
            f"n_prototypes='auto' needs at least {FEWEST * SAMPLES_PER_PROTOTYPE} samples; got {n}. Give a number."
        )
    shared: list[MapChoice] = []  # metric and ridge do not depend on the number
    models = [clone(estimator).set_params(n_prototypes=m)._fit(X, y, sample_weight, shared) for m in numbers]
    weights = read_weights(sample_weight, models[0].embedding_)
    errors = np.array([_left_out_errors(model, y, weights) for model in models])
    used = weights > 0
    means = errors[:, used] @ weights[used] / weights[used].sum()
    deviations = np.sqrt((errors[:, used] - means[:, None]) ** 2 @ weights[used]) / weights[used].sum()
    best = int(means.argmin())
    chosen = int(np.flatnonzero(means <= means[best] + deviations[best])[0])
    table = pd.DataFrame({"n_prototypes": numbers, "error": means, "standard_error": deviations})
    return models[chosen], table.assign(chosen=np.arange(len(numbers)) == chosen)


def _left_out_errors(model: Any, y: Any, weights: Array) -> Array:
    """Return the squared error of each sample, the total variance being one; zero where the target is unknown."""
    targets = read_targets(y, len(model.embedding_), model.task_, weights)
    known = supervised_rows(targets.values) & (weights > 0)
    Y, h, errors = targets.scaled[known], weights[known], np.zeros(len(weights))
    mean = h @ Y / h.sum()
    in_use = np.flatnonzero(model.prototype_weights_)
    near = nearest(model.embedding_left_out_[known], model.prototypes_[in_use])[1][:, 0]
    sums, mass = np.zeros((len(in_use), Y.shape[1])), np.zeros(len(in_use))
    np.add.at(sums, near, h[:, None] * Y)
    np.add.at(mass, near, h)
    # The others' mean; of a sample that is alone with its prototype, the mean of all.
    others = mass[near] - h
    alone = others <= 1e-9 * mass[near]
    expected = (sums[near] - h[:, None] * Y) / np.where(alone, 1.0, others)[:, None]
    expected[alone] = mean
    spread = float(h @ ((Y - mean) ** 2).sum(axis=1)) / h.sum()
    errors[known] = ((Y - expected) ** 2).sum(axis=1) / spread
    return errors
