"""GPClassifier and SDRGPClassifier: scikit-learn's contract, data of every kind, probabilities, quality."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_checks import ABOUT_THE_EXPERTS, parametrize_with_some_checks
from threadpoolctl import threadpool_info

from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPClassifier, SDRGPClassifier, _classification, _exact
from distreduce.gp._classification import draw_from_every_class
from distreduce.metrics import expected_calibration_error

pytestmark = pytest.mark.usefixtures("light")
Array = NDArray[np.float64]
QUICK = SDRGPClassifier(2, experts=[], gp_steps=10, random_state=0)
BOTH = [GPClassifier(random_state=0), QUICK]
both = pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)


@parametrize_with_checks([GPClassifier(gp_steps=5), SDRGPClassifier(2, residual=False, gp_steps=3)])
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_some_checks(
    [SDRGPClassifier(gp_steps=3)], (*ABOUT_THE_EXPERTS, "check_classifiers_one_label_sample_weights")
)
def test_scikit_learn_check_of_all_experts(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def X(rng: np.random.Generator) -> Array:
    return rng.normal(size=(40, 3))


@pytest.fixture
def y(X: Array) -> NDArray[np.intp]:
    return (X[:, 0] > 0).astype(int)


def probabilities(model: Any, X: Array, y: Any) -> Array:
    return np.asarray(clone(model).fit(X, y).predict_proba(X))


def assert_distribution(found: Array, shape: tuple[int, int]) -> None:
    """Finite, and a probability of each class."""
    np.testing.assert_allclose(found.sum(axis=1), np.ones(shape[0]), atol=1e-12)
    assert found.shape == shape


# ---------------------------------------------------------------------------------------------------- labels, samples


@both
@pytest.mark.parametrize(
    "names", [["no", "yes"], [False, True], [-3, 12], [2.0, 5.0], np.array(["b", "a"], dtype=object)], ids=str
)
def test_labels_of_any_type(model: Any, X: Array, y: NDArray[np.intp], names: Any) -> None:
    labels = np.asarray(names)[y]
    assert accuracy_score(labels, clone(model).fit(X, labels).predict(X)) == 1.0


@both
def test_columns_follow_the_sorted_labels(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    """0 is "b" and 1 is "a": the columns change places."""
    renamed = probabilities(model, X, np.array(["b", "a"])[y])
    assert ((renamed[:, 0] > 0.5) == (y == 1)).all()


@both
def test_class_with_a_single_member(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    y[3] = 2
    assert_distribution(probabilities(model, X, y), (40, 3))


@both
def test_imbalanced_classes_leave_a_new_sample_to_the_majority(model: Any, X: Array) -> None:
    fitted = clone(model).fit(X, np.arange(40) < 2)
    assert fitted.predict_proba(X[20:])[:, 1].mean() < 0.25


@both
def test_equal_samples_of_different_classes_are_undecided(model: Any, X: Array) -> None:
    found = probabilities(model, np.repeat(X[:10], 4, axis=0), np.tile([0, 1], 20))
    np.testing.assert_allclose(found, 0.5, atol=0.1)


@both
def test_constant_column_changes_nothing(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    """Except the length scales' common start, which depends on the number of columns."""
    wide = probabilities(model, np.c_[X, np.full(40, 7.0)], y)
    np.testing.assert_allclose(wide, probabilities(model, X, y), atol=0.01)


@both
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("all_differ", [False, True])
def test_few_samples(model: Any, X: Array, n: int, all_differ: bool) -> None:
    y = np.arange(n) if all_differ else np.arange(n) % 2
    assert_distribution(probabilities(model, X[:n], y), (n, len(set(y))))


@both
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_of_the_features_does_not_matter(model: Any, X: Array, y: NDArray[np.intp], scale: float) -> None:
    """Not even where their squares are out of range."""
    np.testing.assert_allclose(probabilities(model, X * scale, y), probabilities(model, X, y), atol=1e-3)


@both
def test_origin_of_the_features_does_not_matter(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    """A millionth of their size is all that tells the samples apart."""
    np.testing.assert_allclose(probabilities(model, X + 1e6, y), probabilities(model, X, y), atol=1e-3)


@both
def test_order_of_the_samples_does_not_matter(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    fitted, reversed_ = clone(model).fit(X, y), clone(model).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(reversed_.predict_proba(X), fitted.predict_proba(X), atol=1e-3)


@both
@pytest.mark.parametrize("size", [3, 10])
def test_hyperparameters_from_a_part_of_the_samples(
    model: Any, X: Array, y: NDArray[np.intp], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Three samples lack one of four classes."""
    y[:2] = 2, 3
    monkeypatch.setattr(_classification, "TRAINING_SAMPLES", size)
    assert_distribution(probabilities(model, X, y), (40, 4))


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=30), size=st.integers(5, 40), seed=st.integers(0, 99))
def test_a_part_of_the_samples_has_every_class(labels: list[int], size: int, seed: int) -> None:
    rows = draw_from_every_class(np.array(labels), size, np.random.RandomState(seed))
    assert (len(set(rows)), set(np.array(labels)[rows])) == (min(size, len(labels)), set(labels))


def test_parts_are_drawn_evenly_from_the_samples() -> None:
    """Every sample of a class is drawn as often as another: 30 of 100, 1000 times."""
    labels, draw = np.zeros(100, dtype=int), np.random.RandomState(0)
    counts = np.bincount(np.concatenate([draw_from_every_class(labels, 30, draw) for _ in range(1000)]))
    assert abs(counts - 300).max() < 5 * np.sqrt(1000 * 0.3 * 0.7)


# ------------------------------------------------------------------------------------------------------ probabilities


@both
def test_one_sample_is_treated_as_in_a_batch(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    fitted = clone(model).fit(X, y)
    alone = np.vstack([fitted.predict_proba(row[None]) for row in X[:5]])
    np.testing.assert_allclose(alone, fitted.predict_proba(X)[:5], atol=1e-10)


@both
def test_seed_gives_the_same_bits(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    np.testing.assert_array_equal(probabilities(model, X, y), probabilities(model, X, y))


def test_seed_of_the_draws_matters(X: Array, y: NDArray[np.intp]) -> None:
    first, second = (probabilities(GPClassifier(random_state=seed), X, y) for seed in (0, 1))
    assert not np.array_equal(first, second)


@both
def test_threads_do_not_change_a_bit(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    one, two = (probabilities(clone(model).set_params(n_jobs=jobs), X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@both
def test_global_state_is_left_alone(model: Any, X: Array, y: NDArray[np.intp]) -> None:
    def state() -> Any:
        name, keys, *rest = np.random.get_state()  # noqa: NPY002 (that generator is what must not move)
        return name, keys.tolist(), rest, [pool["num_threads"] for pool in threadpool_info()]

    probabilities(model, X, y)  # the first fit loads libraries
    before = state()
    probabilities(clone(model).set_params(random_state=None), X, y)
    assert state() == before


@both
def test_prediction_takes_bounded_memory(
    model: Any, X: Array, y: NDArray[np.intp], monkeypatch: pytest.MonkeyPatch
) -> None:
    """50,000 samples at once would need 200 MB for the posterior samples alone, and as much again to work on them."""
    many = np.tile(X, (1250, 1))
    fitted = clone(model).fit(X, y)
    monkeypatch.setattr(_exact, "BATCH_NUMBERS", 400_000)
    tracemalloc.start()
    fitted.predict_proba(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_batches_do_not_change_probabilities(X: Array, y: NDArray[np.intp], monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = GPClassifier(random_state=0).fit(X, y)
    whole = fitted.predict_proba(X)
    monkeypatch.setattr(_exact, "BATCH_NUMBERS", 3 * fitted.draws_.size)
    np.testing.assert_allclose(fitted.predict_proba(X), whole, atol=1e-12)


def test_far_away_a_sample_gets_the_prior(X: Array, y: NDArray[np.intp]) -> None:
    """Where the kernel vanishes the latent functions have their prior means and variance."""
    fitted = GPClassifier(random_state=0, n_draws=200_000).fit(X, y)
    latent = fitted.gp_.means + np.sqrt(fitted.gp_.hyperparameters.signal) * np.random.default_rng(5).normal(
        size=(200_000, 2)
    )
    expected = (1 / (1 + np.exp(latent[:, 1] - latent[:, 0]))).mean()
    assert fitted.predict_proba(np.full((1, 3), 1e6))[0, 0] == pytest.approx(expected, abs=0.01)


# ------------------------------------------------------------------------------------------------------------- errors


@both
def test_single_class_is_refused(model: Any, X: Array) -> None:
    with pytest.raises(InvalidInputError, match=r"single class \(7\); give samples of two or more classes"):
        clone(model).fit(X, np.full(40, 7))


def test_constant_features_cannot_be_reduced() -> None:
    with pytest.raises(InvalidInputError, match="X is constant"):
        SDRGPClassifier().fit(np.ones((6, 2)), [0, 1] * 3)


@pytest.mark.parametrize("model", [GPClassifier(), SDRGPClassifier.paper(2, max_reduction_samples=50, random_state=0)])
def test_too_many_samples_for_an_exact_gp(model: Any) -> None:
    with pytest.raises(InvalidInputError, match="An exact GP of 10001 samples is too large"):
        clone(model).fit(np.arange(10_001.0)[:, None], np.arange(10_001) % 2)


# --------------------------------------------------------------------------------------------------- the SDR embedding


def test_many_samples_are_used_beside_those_of_the_reduction(rng: np.random.Generator) -> None:
    """More than an exact GP takes: each prediction is conditioned on its neighbours."""
    X = rng.normal(size=(5500, 3))
    y = X[:, 0] * X[:, 1] > 0
    model = clone(QUICK).set_params(n_prototypes=20, max_reduction_samples=100, gp_steps=3)
    assert model.fit(X[:4500], y[:4500]).score(X[4500:], y[4500:]) > 0.9


def test_rare_class_need_not_be_seen_by_the_reduction(X: Array, y: NDArray[np.intp]) -> None:
    y[11] = 2
    model = clone(QUICK).set_params(n_prototypes=5, max_reduction_samples=12).fit(X, y)
    assert_distribution(model.predict_proba(X), (40, 3))


def test_papers_recipe_tells_irises_apart() -> None:
    X, y = load_iris(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    assert SDRGPClassifier.paper(2, random_state=0).fit(train, y_train).score(test, y_test) > 0.9


# ------------------------------------------------------------------------------------------------------------ quality


@pytest.fixture(scope="module")
def digits() -> Any:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=400, test_size=800, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def predicted(digits: Any) -> Array:
    train, test, labels, _ = digits
    model = SDRGPClassifier(experts=["linear"], gp_steps=5, random_state=0)
    return np.asarray(model.fit(train, labels).predict_proba(test))


@pytest.fixture(scope="module")
def linear(digits: Any) -> Array:
    train, test, labels, _ = digits
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return np.asarray(model.fit(train, labels).predict_proba(test))


def test_digits_are_read_better_than_by_logistic_regression(digits: Any, predicted: Array, linear: Array) -> None:
    truth = digits[3]
    assert accuracy_score(truth, predicted.argmax(axis=1)) > accuracy_score(truth, linear.argmax(axis=1)) + 0.01


def test_digits_have_better_probabilities_than_logistic_regressions(
    digits: Any, predicted: Array, linear: Array
) -> None:
    assert log_loss(digits[3], predicted) < 0.8 * log_loss(digits[3], linear)


def test_digits_probabilities_are_calibrated(digits: Any, predicted: Array) -> None:
    assert expected_calibration_error(digits[3], predicted, np.arange(10)) < 0.06


@both
@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_unknown_labels_are_refused(model: Any, X: Array, unknown: Any) -> None:
    with pytest.raises(InvalidInputError, match="unknown labels.*leave these rows out"):
        clone(model).fit(X, [unknown, *"ab" * (len(X) // 2)][: len(X)])


def test_the_reduction_knows_the_labels(X: Array, y: NDArray[np.intp]) -> None:
    model = clone(QUICK).fit(X, np.array(["no", "yes"])[y])
    assert model.reduction_.classes_.tolist() == ["no", "yes"]


def test_nothing_of_an_earlier_fit_is_left():
    """The stack of the defaults would go on predicting in the place of the paper's GP."""
    X, y = load_iris(return_X_y=True)
    paper, rows = {"training_inputs": "fitted", "gp_optimizer": "adam", "gp_steps": 2}, slice(None, None, 3)
    model = clone(QUICK).fit(X[::2], y[::2]).set_params(**paper).fit(X[rows], y[rows])
    fresh = clone(QUICK).set_params(**paper).fit(X[rows], y[rows])
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))
