"""Small, repeated, flat, huge and tiny data: finite results and no warning that misleads (warnings are errors here)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_wine

from distreduce import SDR, DistR, SDRGPRegressor
from distreduce.exceptions import DataWarning, InvalidInputError, NumericalError, OptimisticPictureWarning

ESTIMATORS = [SDR(random_state=0), SDR(n_prototypes=2, random_state=0), DistR(random_state=0)]
each_model = pytest.mark.parametrize("model", ESTIMATORS, ids=repr)


def assert_sane(model: Any, X: np.ndarray) -> None:
    fitted = [model.embedding_, model.prototypes_, model.transform(X), model.history_["objective"]]
    assert all(np.isfinite(array).all() for array in fitted) and np.ptp(model.embedding_) > 0


@each_model
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("labels", [False, True])
def test_few_samples(model: Any, n: int, labels: bool, rng: np.random.Generator) -> None:
    X = rng.normal(size=(n, 3))
    y = np.arange(n) % 2 if labels else np.arange(n) + 0.5
    assert_sane(clone(model).fit(X, y), X)


@each_model
def test_one_feature(model: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 1))
    assert_sane(clone(model).fit(X, X[:, 0] ** 2), X)


@each_model
@pytest.mark.parametrize("p", [5, 40])
def test_more_components_than_features_or_samples(model: Any, p: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 3))
    assert_sane(clone(model).set_params(n_components=p).fit(X, X[:, 0]), X)


@each_model
def test_constant_column(model: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    with_constant = np.c_[X, np.full(30, 5.0)]
    expected = clone(model).fit(X, X[:, 0]).objective_
    assert clone(model).fit(with_constant, X[:, 0]).objective_ == pytest.approx(expected, rel=1e-3)


@each_model
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e30, 1e-30, 1e300, 1e-300])
def test_scale(model: Any, scale: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    assert_sane(clone(model).fit(scale * X, X[:, 0] + X[:, 1]), scale * X)


@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e300])
def test_scale_of_y(scale: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    assert_sane(SDR(random_state=0).fit(X, scale * (X[:, 0] + X[:, 1])), X)


@each_model
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_offset(model: Any, offset: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    expected = clone(model).fit(X, X[:, 0]).objective_
    assert clone(model).fit(X + offset, X[:, 0]).objective_ == pytest.approx(expected, rel=0.05)


@each_model
@pytest.mark.parametrize("d", [100])
def test_offset_of_wide_data(model: Any, d: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, d))
    expected = clone(model).fit(X, X[:, 0]).objective_
    assert clone(model).fit(X + 1e6, X[:, 0]).objective_ == pytest.approx(expected, rel=0.05)


def test_features_of_very_different_scale(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3)) * [1e-12, 1.0, 1e12]
    assert_sane(SDR(random_state=0).fit(X, X[:, 1]), X)


def test_one_far_outlier(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    X[7] = 1e9
    assert_sane(SDR(random_state=0).fit(X, np.arange(40) % 2), X)


@each_model
def test_many_duplicates(model: Any, rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(6, 3)), 20, axis=0)
    assert_sane(clone(model).fit(X, X[:, 0]), X)


def test_duplicates_share_a_place(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(6, 3)), 20, axis=0)
    model = SDR(random_state=0).fit(X, X[:, 0])
    assert_allclose(model.embedding_[::20].repeat(20, axis=0), model.embedding_, atol=1e-12)


def test_duplicates_keep_a_prototype_each(rng: np.random.Generator) -> None:
    """m = n means n prototypes, however many of the samples are equal."""
    X = np.repeat(rng.normal(size=(6, 3)), 5, axis=0)
    model = SDR(random_state=0).fit(X, X[:, 0])
    assert (model.prototypes_.shape, model.coupling_.shape) == ((30, 2), (30, 30))


def test_duplicates_with_contradicting_targets(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(10, 3)), 4, axis=0)
    model = SDR(random_state=0, n_prototypes=5).fit(X, np.arange(40) % 2)
    assert_sane(model, X)


def test_fewer_distinct_samples_than_prototypes_are_told(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(6, 3)), 5, axis=0)
    with pytest.warns(DataWarning, match="n_prototypes=8, but only 6"):
        SDR(n_prototypes=8, random_state=0).fit(X, X[:, 0])


def test_warning_about_duplicates_points_at_the_callers_line(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(6, 3)), 5, axis=0)
    with pytest.warns(DataWarning) as caught:
        SDR(n_prototypes=8, random_state=0).fit(X, X[:, 0])
    assert caught[0].filename == __file__


def test_as_many_prototypes_as_distinct_samples_need_no_warning(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(6, 3)), 5, axis=0)
    assert len(SDR(n_prototypes=6, random_state=0).fit(X, X[:, 0]).prototypes_) == 6


def test_init_array_for_duplicates_with_different_rows_keeps_the_mass(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(12, 3)), 2, axis=0)
    model = SDR(n_prototypes=3, init=np.arange(24) % 3, random_state=0).fit(X, X[:, 0])
    assert_allclose(np.asarray(model.coupling_.sum(axis=1)).ravel(), 1.0, atol=1e-10)


@pytest.mark.parametrize("n_prototypes", [None, 8])
def test_class_of_one_member(n_prototypes: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    y = np.r_[["lone"], np.array(["u", "v"])[np.arange(39) % 2]]
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["lone", "u", "v"]


def test_every_sample_a_class_of_its_own(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 3))
    assert_sane(SDR(random_state=0).fit(X, [f"class {i}" for i in range(20)]), X)


def test_one_known_target_of_two_classes_each(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    y = np.full(30, np.nan)
    y[:2] = [0, 1]
    assert_sane(SDR(random_state=0).fit(X, y), X)


@pytest.mark.parametrize("n_prototypes", [29, 30])
def test_nearly_as_many_prototypes_as_samples(n_prototypes: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    assert_sane(SDR(n_prototypes=n_prototypes, random_state=0).fit(X, X[:, 0]), X)


@pytest.mark.parametrize("perplexity", [1, 1.0001, 29.9])
def test_extreme_perplexity(perplexity: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    assert_sane(SDR(perplexity=perplexity, random_state=0).fit(X, X[:, 0]), X)


@pytest.mark.parametrize("spread", [1e-8, 1e8])
def test_weights_of_very_different_size(spread: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    weights = np.where(np.arange(30) % 2, 1.0, spread)
    assert_sane(SDR(random_state=0).fit(X, X[:, 0], sample_weight=weights), X)


def test_points_on_a_line_with_one_repeated_distance() -> None:
    X = np.arange(25.0)[:, None]
    assert_sane(SDR(random_state=0).fit(X, X[:, 0] % 5 + 0.5), X)


def test_grid_with_many_equal_distances() -> None:
    X = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    assert_sane(DistR(n_prototypes=9, random_state=0).fit(X), X)


def test_simplex_where_all_distances_are_equal() -> None:
    X = np.eye(20)
    assert_sane(SDR(random_state=0).fit(X, np.arange(20) % 4 + 0.5), X)


@pytest.mark.parametrize("solver", ["joint", "alternating"])
def test_init_array_for_more_prototypes_than_distinct_samples(solver: str, rng: np.random.Generator) -> None:
    """Each distinct sample becomes a prototype: the start is theirs, not the one given for more."""
    X = np.repeat(rng.normal(size=(6, 3)), 5, axis=0)
    model = SDR(n_prototypes=8, init=np.zeros(30, dtype=int), solver=solver, random_state=0)
    with pytest.warns(DataWarning, match="n_prototypes=8, but only 6"):
        assert_sane(model.fit(X, X[:, 0]), X)


def test_clusters_that_are_equal_to_rounding_bring_no_warning() -> None:
    """k-means on the spectral embedding finds 51 clusters of 52 and says so: nothing that a user could mend."""
    X = np.random.default_rng(0).normal(size=(104, 1))
    model = SDR(1, n_prototypes=52, random_state=0, max_iter=1, tol=1.0)
    assert_sane(model.fit(X, [f"class {i}" for i in range(104)]), X)


@pytest.mark.parametrize("large", [1e150, 1e165, 7e200])
def test_a_constant_beside_which_all_differences_vanish_is_named(large: float, rng: np.random.Generator) -> None:
    X = np.c_[rng.normal(size=(30, 2)), np.full(30, large)]
    for model in ESTIMATORS:
        with pytest.raises(InvalidInputError, match="vanish beside the largest number of X"):
            clone(model).fit(X, X[:, 0])
    predictor = SDRGPRegressor(experts=[], gp_steps=3, random_state=0).fit(X, X[:, 0])  # it scales the features
    assert np.corrcoef(predictor.predict(X), X[:, 0])[0, 1] > 0.9


@pytest.mark.parametrize("m", [None, 8])
def test_prototypes_of_a_class_do_not_share_a_spot(m: int | None) -> None:
    X, y = load_wine(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[::2]
    model = SDR(n_prototypes=m or 20, random_state=0).fit(X, y[::2])
    used = model.prototypes_[model.prototype_weights_ > 0]
    gaps = np.sort(np.linalg.norm(used[:, None] - used, axis=2), axis=1)[:, 1]
    assert np.mean(gaps > 0.01 * np.ptp(model.embedding_, axis=0).max()) > 0.8


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.AffinityConvergenceWarning")
def test_extreme_numbers_bring_no_warnings_of_other_libraries(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    next_to_nothing = np.where(X[:, 1] > 0, 1e-300, 1.0)
    assert_sane(SDR(n_prototypes=6, random_state=0).fit(X, X[:, 0], sample_weight=next_to_nothing), X)
    huge = np.where(X > 0, 1e308, -1e308)  # whose sum is not a number
    assert_sane(SDR(n_prototypes=6, random_state=0).fit(huge, X[:, 0]), huge)
    with pytest.raises(NumericalError, match="input kernel is not finite"):
        SDR(n_prototypes=6, random_state=0, input_kernel="linear").fit(1e155 * X, X[:, 0])


@pytest.mark.filterwarnings("ignore:sample_weight counts copies")
@pytest.mark.parametrize("orders", [8, 12])
def test_weights_of_many_orders_of_magnitude(orders: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimisticPictureWarning)
        model = SDR(random_state=0).fit(X, X[:, 0], sample_weight=10.0 ** rng.uniform(-orders, orders, 60))
    assert_sane(model, X)


@pytest.mark.filterwarnings("ignore:sample_weight counts copies")
@pytest.mark.parametrize("seed", [0, 2])
def test_masses_that_seem_infeasible_to_the_simplex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, weights = np.round(rng.normal(size=(40, 2))), 10.0 ** np.random.default_rng(seed + 1).uniform(-12, 12, 40)
    model = DistR(random_state=0, max_iter=5).fit(X, sample_weight=weights)  # neither POT's warning nor a roll-back
    assert_sane(model, X)
