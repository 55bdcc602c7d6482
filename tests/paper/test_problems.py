"""Every method gets the same samples; the held-out part does not affect how they are scaled."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from distreduce.exceptions import InvalidInputError
from distreduce_paper import problems
from distreduce_paper.problems import Problem, add_problem, load_split, load_whole


def noise(n: int, width: int, task: str = "regression"):
    """Loader whose samples do not depend on the seed."""
    rng = np.random.default_rng(5)
    X, y = rng.gamma(2.0, 3.0, size=(n, width)), rng.normal(4.0, 3.0, size=n)
    return lambda seed: (X, y if task == "regression" else (y > 4).astype(int))


@pytest.fixture
def table():
    add_problem("table", Problem(noise(100, 4), "regression"))
    return noise(100, 4)(0)


@pytest.fixture
def pictures():
    add_problem("pictures", Problem(noise(90, 128 * 128, "classification"), "classification", images=True))
    return noise(90, 128 * 128, "classification")(0)


def test_a_split_is_scikit_learns_scaled_by_its_training_part(table):
    X, X_test, y, y_test = train_test_split(*table, test_size=0.2, random_state=3)
    for_X, for_y = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    wanted = (for_X.transform(X), for_X.transform(X_test), for_y.transform(y[:, None])[:, 0])
    found = load_split("table", 3)
    for one, other in zip((found.X_train, found.X_test, found.y_train), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(found.y_test, for_y.transform(y_test[:, None])[:, 0], rtol=1e-12)


def test_the_held_out_part_does_not_change_the_training_part(table):
    X, y = (part.copy() for part in table)
    _, held_out = train_test_split(np.arange(100), test_size=0.2, random_state=3)
    X[held_out] += 50.0
    y[held_out] -= 50.0
    add_problem("changed", Problem(lambda seed: (X, y), "regression"))
    np.testing.assert_array_equal(load_split("changed", 3).X_train, load_split("table", 3).X_train)
    np.testing.assert_array_equal(load_split("changed", 3).y_train, load_split("table", 3).y_train)


@pytest.mark.parametrize("quick", [True, False])
def test_a_seed_gives_the_same_samples_again(table, quick):
    for one, other in zip(
        astuple(load_split("table", 1, quick=quick)), astuple(load_split("table", 1, quick=quick)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_another_seed_gives_another_split(table):
    assert not np.array_equal(load_split("table", 1).y_test, load_split("table", 2).y_test)


def test_methods_that_read_images_hold_out_the_same_samples(pictures):
    np.testing.assert_array_equal(load_split("pictures", 1, images=True).y_test, load_split("pictures", 1).y_test)


def test_images_of_128_are_averaged_to_32_for_methods_that_read_them(pictures):
    found = load_split("pictures", 1, images=True).X_test
    X = train_test_split(pictures[0], test_size=0.2, random_state=1)[1].reshape(-1, 128, 128)
    assert found.shape == (18, 1024) and found[5, 32 * 2 + 7] == pytest.approx(X[5, 8:12, 28:32].mean())


def test_images_become_principal_components_of_the_training_part_on_one_scale(pictures):
    found = load_split("pictures", 1)
    X, X_test = train_test_split(pictures[0], test_size=0.2, random_state=1)
    pca = PCA(50, random_state=0).fit(X)
    np.testing.assert_allclose(found.X_test, pca.transform(X_test) / pca.transform(X).std(), rtol=1e-6, atol=1e-8)


def test_labels_stay_as_they_are(pictures):
    assert set(load_split("pictures", 0).y_train) == {0, 1}


def test_two_targets_are_standardised_one_by_one(table):
    X, y = table
    add_problem("two", Problem(lambda seed: (X, np.column_stack([y, 100 * y**2])), "regression"))
    np.testing.assert_allclose(load_split("two", 0).y_train.std(axis=0), 1.0)


@pytest.mark.parametrize("shape", [(90, 36), (40, 400)])
def test_small_sets_of_images_have_fewer_components(shape):
    add_problem("small", Problem(noise(*shape), "regression", images=True))
    assert load_split("small", 0).X_train.shape[1] == min(shape[0] * 4 // 5, shape[1])


def test_quick_draws_a_part_without_repeats():
    add_problem("long", Problem(lambda seed: (np.arange(1000.0)[:, None], np.arange(1000.0)), "regression"))
    found = load_split("long", 0, quick=True)
    assert len(np.unique(np.concatenate([found.X_train, found.X_test]))) == problems.QUICK_SAMPLES


def test_a_whole_set_is_standardised_and_its_targets_are_as_they_are(table):
    X, y = load_whole("table", 3)
    np.testing.assert_allclose(X, StandardScaler().fit_transform(table[0]))
    np.testing.assert_array_equal(y, table[1])


def test_a_method_that_works_in_place_does_not_change_what_the_next_one_is_given(table):
    X, y = load_whole("table", 0)
    X += 1.0
    y += 1.0
    assert abs(load_whole("table", 0)[0].mean()) < 1e-12 and load_whole("table", 0)[1].mean() == table[1].mean()


@pytest.mark.parametrize(("seeded", "draws"), [(True, {1, 2}), (False, {0})])
def test_only_sets_that_are_drawn_depend_on_the_seed(seeded, draws):
    seen = set()

    def load(seed):
        seen.add(seed)
        return noise(30, 2)(seed)

    add_problem("drawn", Problem(load, "regression", seeded=seeded))
    for seed in (1, 2):
        load_whole("drawn", seed)
    assert seen == draws


def test_a_set_that_is_registered_anew_is_read_anew(table):
    load_whole("table", 0)
    add_problem("table", Problem(noise(60, 3), "regression"))
    assert load_whole("table", 0)[0].shape == (60, 3)


def test_an_unknown_set_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidInputError, match="no data set 'moon' .* there are boston, energy"):
        problems.get_problem("moon")


@pytest.mark.data
@pytest.mark.parametrize(("name", "shape"), [("boston", (404, 13)), ("energy", (614, 8)), ("concrete", (824, 8))])
def test_the_tables_of_the_paper(data_dir, name, shape):
    assert load_split(name, 0).X_train.shape == shape


@pytest.mark.data
@pytest.mark.parametrize(("name", "width"), [("mnist2k", 784), ("coil20", 1024)])
def test_the_images_of_the_paper_are_pixels_in_0_to_1(data_dir, name, width):
    found = load_split(name, 0, images=True, quick=True)
    assert found.X_train.shape == (192, width) and 0.0 <= found.X_train.min() < 0.5 < found.X_train.max() <= 1.0


@pytest.mark.parametrize(("name", "n"), [("s_curve", 100), ("swiss_roll", 100), ("friedman", 500)])
def test_the_generated_sets_of_the_paper_are_drawn_with_the_seed(name, n):
    assert len(load_whole(name, 0)[1]) == n and not np.array_equal(load_whole(name, 0)[1], load_whole(name, 1)[1])
