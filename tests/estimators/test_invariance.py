"""What must not change the result: order of the samples, repetition against weight, units, origin, rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group

from distreduce import SDR, DistR

SIZES = [None, 8]
ESTIMATORS = [SDR, DistR]
each_size = pytest.mark.parametrize("n_prototypes", SIZES)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


@each_size
@each_estimator
@pytest.mark.parametrize("data", ["regression", "classification"])
def test_permuting_samples_permutes_the_embedding(
    data: str, estimator: type, n_prototypes: Any, request: Any, rng: np.random.Generator
) -> None:
    X, y = request.getfixturevalue(data)
    order = rng.permutation(len(X))
    model = estimator(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit_transform(X, y)[order]
    assert_array_equal(model.fit_transform(X[order], y[order]), expected)


@each_size
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_any_permutation_permutes_the_coupling(n_prototypes: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(25, 3)), rng.normal(size=25)
    order = rng.permutation(25)
    model = SDR(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit(X, y).coupling_.toarray()[order]
    moved = model.fit(X[order], y[order]).coupling_.toarray()
    # With one prototype per sample the prototypes are permuted with their samples.
    assert_allclose(moved, expected[:, order] if n_prototypes is None else expected, atol=1e-12)


@each_size
@each_estimator
@pytest.mark.parametrize("data", ["regression", "classification"])
def test_weight_two_is_a_repeated_sample(data: str, estimator: type, n_prototypes: Any, request: Any) -> None:
    X, y = request.getfixturevalue(data)
    weights = 1.0 + (np.arange(len(X)) % 3 == 0)
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    model = estimator(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit(X[rows], y[rows]).transform(X)
    assert_array_equal(model.fit(X, y, sample_weight=weights).embedding_, expected)


@each_size
def test_prototype_weights_of_repeated_samples(n_prototypes: Any, classification: Any) -> None:
    X, y = classification
    rows = np.r_[np.arange(len(X)), np.arange(0, len(X), 2)]
    weights = np.bincount(rows).astype(float)
    repeated = SDR(n_prototypes=n_prototypes, random_state=0).fit(X[rows], y[rows])
    weighted = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y, sample_weight=weights)
    assert_allclose(np.sort(weighted.transform(X), axis=0), np.sort(repeated.transform(X), axis=0), atol=1e-12)


@each_size
@each_estimator
@pytest.mark.parametrize("data", ["regression", "classification"])
def test_weight_zero_is_an_absent_row(data: str, estimator: type, n_prototypes: Any, request: Any) -> None:
    X, y = request.getfixturevalue(data)
    kept = np.arange(len(X)) % 4 != 1
    model = estimator(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit(X[kept], y[kept]).transform(X)
    assert_array_equal(model.fit(X, y, sample_weight=kept.astype(float)).embedding_, expected)


@each_size
def test_rows_of_weight_zero_carry_nothing(n_prototypes: Any, classification: Any) -> None:
    X, y = classification
    weights = (np.arange(len(X)) % 4 != 1).astype(float)
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y, sample_weight=weights)
    carried = np.asarray(model.coupling_.T @ weights) / weights.sum()
    assert_allclose(model.prototype_weights_, carried, atol=1e-12)


@each_size
@each_estimator
def test_unit_of_x_that_is_a_power_of_two_changes_no_bit(estimator: type, n_prototypes: Any, regression: Any) -> None:
    X, y = regression
    model = estimator(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit_transform(X, y)
    assert_array_equal(model.fit_transform(8.0 * X, y), expected)


@each_size
@each_estimator
def test_unit_and_origin_of_x_do_not_matter(estimator: type, n_prototypes: Any, regression: Any) -> None:
    X, y = regression
    model = estimator(n_prototypes=n_prototypes, random_state=0, tol=1e-9, max_inner_iter=3000)
    first, *others = (model.fit(same, y).objective_ for same in (X, 3.0 * X, X + 7.0))
    assert others == pytest.approx([first] * 2, rel=2e-3 if n_prototypes else 1e-5)


@each_estimator
def test_unit_and_origin_of_x_leave_the_embedding(estimator: type, regression: Any) -> None:
    X, y = regression
    first, *others = (estimator(random_state=0).fit_transform(same, y) for same in (X, 3.0 * X, X + 7.0))
    assert max(_misfit(other, first) for other in others) < 0.02


@pytest.mark.parametrize("estimator", [SDR.paper, DistR])  # a learned metric follows the axes
def test_rotation_of_x_leaves_the_embedding(estimator: Any, regression: Any) -> None:
    X, y = regression
    model = estimator(random_state=0)
    expected = model.fit_transform(X, y)
    rotated = X @ ortho_group.rvs(X.shape[1], random_state=0)
    assert _misfit(model.fit_transform(rotated, y), expected) < 0.02


@each_size
def test_unit_and_origin_of_y_do_not_matter(n_prototypes: Any, regression: Any) -> None:
    X, y = regression
    model = SDR(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit(X, y).objective_
    assert model.fit(X, 1e4 + 250.0 * y).objective_ == pytest.approx(expected, rel=1e-3)


@each_size
def test_multiplied_weights_count_as_more_samples_not_as_other_shares(n_prototypes: Any, classification: Any) -> None:
    X, y = classification
    doubled = SDR(n_prototypes=n_prototypes, random_state=0, perplexity=10).fit(X, y, sample_weight=np.full(80, 2.0))
    assert doubled.prototype_weights_.sum() == pytest.approx(1.0)


def _misfit(Z: np.ndarray, reference: np.ndarray) -> float:
    """Share of the variance of `reference` that the best rotation of Z leaves unexplained."""
    Z, reference = Z - Z.mean(axis=0), reference - reference.mean(axis=0)
    U, _, Vt = np.linalg.svd(Z.T @ reference)
    return float(((Z @ U @ Vt - reference) ** 2).sum() / (reference**2).sum())
