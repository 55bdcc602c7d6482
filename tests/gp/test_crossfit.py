"""Which samples are left out together, what experts say of them, and how new a sample is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.linear_model import LinearRegression

from distreduce._utils.threads import SERIAL
from distreduce.gp import _crossfit
from distreduce.gp._crossfit import CrossFitter, Novelty, arrange, number_folds
from distreduce.gp._experts import Lesson, learn_own
from distreduce.mapping.folds import find_near_copies


@given(st.lists(st.integers(0, 60), min_size=2, max_size=200))
def test_members_of_a_group_share_a_fold_wherever_they_stand(members):
    groups = np.unique(members, return_inverse=True)[1]
    folds = number_folds(groups)
    of_group = {group: fold for group, fold in zip(groups, folds, strict=True)}
    assert all(of_group[group] == fold for group, fold in zip(groups, folds, strict=True))
    np.testing.assert_array_equal(number_folds(groups[::-1]), folds[::-1])


@pytest.mark.parametrize(("n", "n_folds"), [(3, 3), (40, 10), (400, 5)])
def test_folds_are_of_one_size(n, n_folds):
    counts = np.bincount(number_folds(np.arange(n)))
    assert len(counts) == n_folds and np.ptp(counts) <= 1


def test_of_many_samples_one_part_is_left_out(monkeypatch):
    monkeypatch.setattr(_crossfit, "MANY", 100)
    folds = number_folds(np.arange(200))
    assert sorted(set(folds)) == [-1, 0] and np.sum(folds == 0) == 40


def test_near_copies_are_found_and_neighbours_are_not(rng):
    X = rng.normal(size=(100, 3))
    near = X[:20] + 1e-6 * rng.normal(size=(20, 3))
    groups = find_near_copies(np.r_[X, near])
    np.testing.assert_array_equal(groups[100:], groups[:20])
    assert len(set(groups)) == 100


def test_copies_are_grouped_and_repeated_measurements_are_not(rng):
    X, y = np.repeat(rng.normal(size=(30, 3)), 2, axis=0), rng.normal(size=(30, 1))
    copies = arrange(X, np.repeat(y, 2, axis=0), np.ones(60))
    np.testing.assert_array_equal(copies.weights, np.full(30, 2.0))
    measured = arrange(X, rng.normal(size=(60, 1)), np.ones(60))
    assert len(measured.order) == 60 and len(set(measured.groups)) == 60


@pytest.mark.parametrize("share", [0.4, 0.97])
def test_few_different_rows_with_labels_of_their_own_are_no_copies(rng, share):
    """A table of passengers has 14 different rows; labels that are sorted, or nearly all the same, agree by chance."""
    X, labels = np.eye(14)[rng.integers(0, 14, 500)], (rng.random(500) < share).astype(int)
    assert len(arrange(X, np.eye(2)[labels], np.ones(500)).order) == 500
    # Where the label follows from the row, leaving equal rows out together is the safe choice.
    assert len(arrange(X, np.eye(2)[X.argmax(axis=1) % 2], np.ones(500)).order) == 14


def test_a_large_group_counts_as_much_as_a_small_one(rng):
    groups = np.repeat([0, 1, 2], [90, 6, 4])
    arranged = arrange(rng.normal(size=(100, 2)), rng.normal(size=(100, 1)), np.ones(100), groups)
    np.testing.assert_allclose(np.bincount(arranged.groups, arranged.evidence), 1.0)
    # Unless they are periods: nobody drew these, and ten of them would be ten samples.
    periods = arrange(rng.normal(size=(100, 2)), rng.normal(size=(100, 1)), np.ones(100), groups, periods=True)
    np.testing.assert_allclose(periods.evidence, 1.0)


def test_each_sample_is_predicted_by_a_model_that_has_not_seen_it(rng):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + rng.normal(size=30)
    folds = number_folds(np.arange(30) // 2)
    lesson = Lesson(X, y[:, None], np.ones(30), is_class=False)
    fitter = CrossFitter({"own": lambda taught: learn_own(taught, LinearRegression())}, {"own": lesson}, folds, SERIAL)
    found = fitter.leave_out()
    expected = np.empty(30)
    for fold in set(folds):
        model = LinearRegression().fit(X[folds != fold], y[folds != fold])
        expected[folds == fold] = model.predict(X[folds == fold])
    np.testing.assert_allclose(found.left_out["own"][0], expected, rtol=1e-10)
    everything = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_allclose(fitter.fit_all(["own"], found.first)["own"].moments(X)[0], everything, rtol=1e-10)


def test_of_one_part_only_its_samples_are_predicted(rng):
    X = rng.normal(size=(30, 2))
    folds = np.where(np.arange(30) % 3 == 0, 0, -1)
    lesson = Lesson(X, X[:, :1], np.ones(30), is_class=False)
    fitter = CrossFitter({"own": lambda taught: learn_own(taught, LinearRegression())}, {"own": lesson}, folds, SERIAL)
    found = fitter.leave_out()
    np.testing.assert_array_equal(found.rows, np.arange(0, 30, 3))
    np.testing.assert_allclose(found.left_out["own"][0], X[::3, 0], rtol=1e-10)


def test_experts_are_given_up_after_the_first_folds(rng):
    X = rng.normal(size=(600, 2))
    lesson = Lesson(X, X[:, :1], np.ones(600), is_class=False)
    asked = []

    def expert(name):
        return lambda taught: asked.append(name) or learn_own(taught, LinearRegression())

    names = ("isotropic", "inputs", "rough_inputs", "linear")
    fitter = CrossFitter(
        {n: expert(n) for n in names}, dict.fromkeys(names, lesson), number_folds(np.arange(600)), SERIAL
    )
    found = fitter.leave_out(lambda said, rows: ["inputs"])
    # What the kept expert starts from stays too.
    assert list(found.left_out) == ["isotropic", "inputs"]
    assert [asked.count(name) for name in names] == [5, 5, 1, 1]
    np.testing.assert_allclose(found.left_out["inputs"][0], X[:, 0], rtol=1e-9)


@pytest.mark.parametrize("d", [1, 5])
def test_novelty_is_uniform_among_samples_like_those_of_training(d):
    rng = np.random.default_rng(1)
    novelty = Novelty.of(rng.normal(size=(1500, d)), np.arange(1500))
    found = novelty(rng.normal(size=(1500, d)))
    assert kstest(found, "uniform").statistic < 0.06


def test_novelty_far_away_is_the_least_p_value(rng):
    novelty = Novelty.of(rng.normal(size=(99, 3)), np.arange(99))
    np.testing.assert_allclose(novelty(np.full((2, 3), 1e3)), 0.01)


def test_copies_do_not_make_other_samples_new(rng):
    """With copies, every training sample would have neighbours at no distance, and every new one would be far."""
    X = rng.normal(size=(300, 2))
    near = X + 1e-9 * rng.normal(size=X.shape)
    novelty = Novelty.of(np.r_[X, near], np.r_[:300, :300])
    assert novelty(rng.normal(size=(500, 2))).mean() == pytest.approx(0.5, abs=0.06)


def test_samples_of_new_groups_are_not_novel(rng):
    """Rows of one patient lie together: against their own group, those of the next patient looked far."""
    groups, found = np.repeat(np.arange(40), 8), []
    for _ in range(10):
        X, new = (rng.normal(size=(40, 3))[groups] + 0.5 * rng.normal(size=(320, 3)) for _ in range(2))
        found.append([(Novelty.of(X, np.arange(320), own)(new) < 0.02).mean() for own in (None, groups)])
    by_row, by_group = np.mean(found, axis=0)
    assert by_row > 0.06 and by_group == pytest.approx(0.02, abs=0.015)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_novelty_among_few_samples_is_a_p_value(rng, n):
    found = Novelty.of(rng.normal(size=(n, 2)), np.arange(n))(rng.normal(size=(9, 2)))
    assert ((found > 0) & (found <= 1)).all()
