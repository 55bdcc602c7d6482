"""The linear baseline against the scikit-learn models it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.preprocessing import StandardScaler

from distreduce.exceptions import InvalidInputError
from distreduce_paper.baselines import LinearBaseline

X, y = load_diabetes(return_X_y=True)
Y = np.column_stack([y, X[:, 0] * 3 + 0.01 * y])
IRIS = load_iris(return_X_y=True)


def test_deviation_is_the_predictive_one() -> None:
    scaler = StandardScaler().fit(X)
    ridge = BayesianRidge().fit(scaler.transform(X), y)
    expected = ridge.predict(scaler.transform(X), return_std=True)
    np.testing.assert_allclose(LinearBaseline("regression").fit(X, y).predict(X, return_std=True), expected)


def test_ninety_percent_intervals_cover_as_much_of_linear_data(rng: np.random.Generator) -> None:
    inputs = rng.normal(size=(2000, 5))
    targets = inputs @ rng.normal(size=5) + rng.normal(size=2000)
    mean, std = LinearBaseline().fit(inputs[:200], targets[:200]).predict(inputs[200:], return_std=True)
    assert np.mean(np.abs(targets[200:] - mean) < 1.6449 * std) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("return_std", [False, True])
def test_several_targets_are_fitted_one_by_one(return_std: bool) -> None:
    together = LinearBaseline().fit(X, Y).predict(X, return_std=return_std)
    apart = [LinearBaseline("regression").fit(X, column).predict(X, return_std=return_std) for column in Y.T]
    np.testing.assert_array_equal(together, np.stack(apart, axis=-1))


def test_probabilities_are_those_of_logistic_regression() -> None:
    scaled = StandardScaler().fit_transform(IRIS[0])
    expected = LogisticRegression(max_iter=1000).fit(scaled, IRIS[1]).predict_proba(scaled)
    np.testing.assert_allclose(LinearBaseline().fit(*IRIS).predict_proba(IRIS[0]), expected)


def test_labels_are_those_of_the_most_probable_class() -> None:
    labels = load_iris().target_names[IRIS[1]]
    model = LinearBaseline().fit(IRIS[0], labels)
    np.testing.assert_array_equal(model.predict(IRIS[0]), model.classes_[model.predict_proba(IRIS[0]).argmax(axis=1)])


@pytest.mark.parametrize(("data", "kinds"), [((X, Y), (True, False)), (IRIS, (False, True))])
def test_task_is_read_from_the_targets(data: tuple[np.ndarray, np.ndarray], kinds: tuple[bool, bool]) -> None:
    model = LinearBaseline().fit(*data)
    assert (is_regressor(model), is_classifier(model)) == kinds


def test_deviation_of_a_class_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="predict_proba"):
        LinearBaseline().fit(*IRIS).predict(IRIS[0], return_std=True)


def test_numbers_have_no_probabilities() -> None:
    assert not hasattr(LinearBaseline().fit(X, Y), "predict_proba")
