"""Trees as arrays against the scikit-learn models that they were taken from."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from distreduce.gp._experts import FOREST_TREES, Lesson, learn_boosting, learn_forest
from distreduce.gp._trees import Trees

X, Y = make_friedman1(300, n_features=5, noise=1.0, random_state=0)
NEW = make_friedman1(200, n_features=5, noise=1.0, random_state=1)[0]
WIDE, CLASSES = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)


def leaves(trees, inputs):
    """The node that each sample ends at, tree by tree, by walking down in Python."""
    found = np.empty((len(inputs), len(trees.roots)), dtype=int)
    for i, row in enumerate(inputs.astype(np.float32) if trees.single else inputs):
        for t, node in enumerate(trees.roots):
            while trees.feature[node] >= 0:
                goes_left = row[trees.feature[node]] <= trees.threshold[node]
                node = (trees.left if goes_left else trees.right)[node]
            found[i, t] = node - trees.roots[t]
    return found


def test_samples_reach_the_leaves_of_scikit_learns_forest():
    model = RandomForestRegressor(20, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(leaves(Trees.of_forest(model.estimators_), NEW), model.apply(NEW))


def test_sums_of_a_forest_are_those_of_its_trees():
    model = RandomForestRegressor(20, random_state=0).fit(X, Y)
    total, squares = Trees.of_forest(model.estimators_).sums(NEW)
    each = np.array([tree.predict(NEW) for tree in model.estimators_])
    np.testing.assert_allclose(total[:, 0] / 20, model.predict(NEW), rtol=1e-12)
    np.testing.assert_allclose(squares[:, 0], (each**2).sum(axis=0), rtol=1e-12)


def test_many_inputs_have_the_bits_of_few():
    trees = Trees.of_forest(RandomForestRegressor(20, random_state=0).fit(X, Y).estimators_)
    for together, alone in zip(trees.sums(np.tile(NEW, (3, 1))), trees.sums(NEW), strict=True):
        np.testing.assert_array_equal(together[:200], alone)


def test_thresholds_are_met_in_single_precision():
    """A sample whose rounding to single precision lies on the other side of a threshold."""
    model = RandomForestRegressor(5, bootstrap=False, random_state=0).fit(X, Y)
    trees = Trees.of_forest(model.estimators_)
    thresholds = trees.threshold[trees.feature == 0]
    on_the_edge = np.repeat(NEW[:1], 2 * len(thresholds), axis=0)
    on_the_edge[:, 0] = np.r_[np.nextafter(thresholds, 9.0), thresholds]
    np.testing.assert_allclose(trees.sums(on_the_edge)[0][:, 0] / 5, model.predict(on_the_edge), rtol=1e-12)


def test_shares_of_a_forest_are_its_probabilities():
    model = RandomForestClassifier(20, random_state=0).fit(WIDE, CLASSES)
    found = Trees.of_forest(model.estimators_).sums(WIDE + 0.1)[0] / 20
    np.testing.assert_allclose(found, model.predict_proba(WIDE + 0.1), atol=1e-12)


def test_boosted_numbers_are_scikit_learns():
    model = HistGradientBoostingRegressor(max_iter=30).fit(X, Y)
    found = Trees.of_boosting(model).sums(NEW)[0] + np.ravel(model._baseline_prediction)
    np.testing.assert_allclose(found[:, 0], model.predict(NEW), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosted_classes_are_scikit_learns(n_classes):
    labels = np.minimum(CLASSES, n_classes - 1)
    model = HistGradientBoostingClassifier(max_iter=30).fit(WIDE, labels)
    found = Trees.of_boosting(model).sums(WIDE + 0.1)[0] + np.ravel(model._baseline_prediction)
    np.testing.assert_allclose(np.squeeze(found), model.decision_function(WIDE + 0.1), rtol=1e-10, atol=1e-12)


def lesson(labels, n_classes):
    return Lesson(WIDE, np.eye(n_classes)[labels], np.ones(300), is_class=True)


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("present", [[0, 2], [1, 3], [0, 1, 3]])
def test_boosting_of_a_fold_without_some_classes_keeps_their_columns(present):
    """Class numbers go through `present`, whose gaps are classes that the fold lacks."""
    labels = np.array(present)[CLASSES % len(present)]
    theirs = HistGradientBoostingClassifier(early_stopping=False, random_state=0).fit(WIDE, labels)
    found = softmax(learn_boosting(lesson(labels, 5)).scores(WIDE))
    np.testing.assert_allclose(found[:, present], theirs.predict_proba(WIDE), atol=2e-3)
    assert np.delete(found, present, axis=1).max() < 2e-3


@pytest.mark.parametrize("present", [[3], [0, 2], [0, 1, 3]])
def test_a_forest_of_a_fold_without_some_classes_keeps_their_columns(present):
    labels = np.array(present)[CLASSES % len(present)]
    theirs = RandomForestClassifier(FOREST_TREES, random_state=0).fit(WIDE, labels)
    expected = np.zeros((300, 5))
    expected[:, present] = theirs.predict_proba(WIDE)
    found = np.exp(learn_forest(lesson(labels, 5)).scores(WIDE))
    np.testing.assert_allclose(found, expected + 0.5 / FOREST_TREES, atol=1e-12)
