"""The choice of the map by left-out targets, against scikit-learn's kernel ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge

from distreduce.estimators import _auto
from distreduce.estimators._auto import (
    Candidate,
    MapChoice,
    choose_map,
    predict_left_out,
)
from distreduce.kernels import RBF
from distreduce.mapping.folds import Folds
from distreduce.sharding.sample import Sample

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
WEIGHTS = RNG.integers(1, 4, 60).astype(float)
FOLD = np.random.default_rng(1).permutation(60) % 5
FOLDS = Folds(np.arange(60), FOLD, WEIGHTS, np.arange(60))
SAMPLE = Sample(X, WEIGHTS)


def choose(Y: Any, *candidates: Candidate, **options: Any) -> MapChoice:
    return choose_map(SAMPLE, np.asarray(Y).reshape(60, -1), FOLDS, candidates, **options)


def ridge_predictions(length_scale: float, ridge: float, Y: Any) -> Any:
    """Left-out predictions by scikit-learn, with the others' weighted mean as intercept."""
    expected = np.empty_like(Y)
    for fold in range(5):
        out, rest = fold == FOLD, fold != FOLD
        mean = np.average(Y[rest], axis=0, weights=WEIGHTS[rest])
        model = KernelRidge(alpha=ridge, kernel="rbf", gamma=0.5 / length_scale**2)
        expected[out] = mean + model.fit(X[rest], Y[rest] - mean, WEIGHTS[rest]).predict(X[out])
    return expected


Y = np.c_[np.sin(X[:, 0]) + 0.3 * RNG.normal(size=60), X[:, 1]]


def test_the_best_pair_is_that_of_brute_force() -> None:
    scales, ridges = (0.5, 1.0, 2.0), (0.01, 0.1, 1.0, 10.0)
    means = ridge_predictions(1.0, 1e12, Y)  # so large a ridge leaves the mean alone
    total = WEIGHTS @ ((Y - means) ** 2).sum(axis=1)
    errors = {
        (scale, ridge): WEIGHTS @ ((Y - ridge_predictions(scale, ridge, Y)) ** 2).sum(axis=1) / total
        for scale in scales
        for ridge in ridges
    }
    best = min(errors, key=errors.__getitem__)
    found = choose(Y, *((RBF(scale), None) for scale in scales), ridges=ridges)
    assert (found.kernel, found.ridge) == (RBF(best[0]), best[1])
    assert found.error == pytest.approx(errors[best], rel=1e-6)


def test_left_out_predictions_are_those_of_the_other_folds() -> None:
    choice = MapChoice(RBF(1.5), 0.2, None, None, 0.5, True)
    assert_allclose(predict_left_out(choice, SAMPLE, Y, FOLDS), ridge_predictions(1.5, 0.2, Y), atol=1e-8)


def test_a_learned_metric_has_not_seen_the_fold() -> None:
    """Targets of the left-out fold may be anything: scales and predictions for it stay."""
    y, fold = np.sin(2 * X[:, 0]), 2
    other = np.where(fold == FOLD, RNG.normal(size=60), y)
    learned = [choose(targets, (RBF(1.0), 1.0)) for targets in (y, other)]
    assert_array_equal(*(choice.scales_without(fold) for choice in learned))
    assert not np.array_equal(*(choice.scales for choice in learned))


def test_an_irrelevant_feature_gets_a_long_scale() -> None:
    chosen = choose(np.sin(2 * X[:, 0]), (RBF(1.0), 1.0))
    assert chosen.scales is not None and chosen.scales[1:].min() > 10 * chosen.scales[0]


def test_a_sample_in_parts_is_as_many_samples() -> None:
    """Parts in several folds against scikit-learn's ridge on rows that are repeated."""
    rows = np.repeat(np.arange(60), WEIGHTS.astype(int))
    fold = RNG.permutation(len(rows)) % 5
    sample, inverse, counts = np.unique(np.stack([rows, fold]), axis=1, return_inverse=True, return_counts=True)
    folds = Folds(sample[0], sample[1], counts.astype(float), np.arange(60))
    expected = np.empty((len(rows), 2))
    for k in range(5):
        out, rest = fold == k, fold != k
        mean = Y[rows[rest]].mean(axis=0)
        model = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.5 / 1.5**2).fit(X[rows[rest]], Y[rows[rest]] - mean)
        expected[out] = mean + model.predict(X[rows[out]])
    choice = MapChoice(RBF(1.5), 0.2, None, None, 0.5, True)
    assert_allclose(predict_left_out(choice, SAMPLE, Y, folds)[inverse.ravel()], expected, atol=1e-8)


def test_noise_is_no_signal_in_most_tables() -> None:
    """The share of false alarms, of 30 tables with y independent of X."""
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        features, y = rng.normal(size=(100, 4)), rng.normal(size=(100, 1))
        candidates = [*((RBF(scale), None) for scale in (1.0, 2.0, 4.0)), (RBF(1.0), 2.0)]
        folds = Folds(np.arange(100), np.arange(100) % 5, np.ones(100), np.arange(100))
        alarms += choose_map(Sample(features, np.ones(100)), y, folds, candidates).has_signal
    assert alarms <= 1


def test_a_clear_signal_is_one() -> None:
    assert choose(Y, (RBF(1.0), None)).has_signal


def test_one_large_target_does_not_hide_a_signal() -> None:
    """Half of the variance is a single target, which is not predicted; the order of the others is."""
    y = np.sin(2 * X[:, 0])
    y[0] = 5 * np.sqrt(len(y)) * y.std()
    assert choose(y, (RBF(1.0), None)).has_signal


def test_a_learned_metric_that_lost_two_folds_is_not_learned_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(_auto, "relevance_length_scales", lambda X, *_: calls.append(1) or np.full(X.shape[1], 1e-3))
    found = choose(np.sin(2 * X[:, 0]), (RBF(1.0), None), (RBF(1.0), 1.0))
    assert found.scales is None and len(calls) == 2
