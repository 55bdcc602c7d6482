"""Held-out predictions on the page, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, confusion_matrix

from distreduce.exceptions import InvalidInputError
from distreduce.report import HeldOut, HeldOutClasses
from distreduce.report.predictions import bin_confidence, describe_predictions


@pytest.fixture
def gaussian(rng):
    mean = rng.normal(size=200)
    return HeldOut(mean + rng.normal(size=200), mean, np.full(200, 0.7))


@pytest.fixture
def shares(rng):
    proba = rng.dirichlet([1, 1, 1], size=300)
    names = np.array(["a", "b", "c"])
    return HeldOutClasses(names[[rng.choice(3, p=row) for row in proba]], proba, names)


def score(found, heading):
    return found.scores[0][found.headings.index(heading)]


def test_accuracy_is_that_of_scikit_learn(shares):
    expected = accuracy_score(shares.y, shares.classes[shares.proba.argmax(axis=1)])
    assert score(describe_predictions(shares), "accuracy") == f"{expected:.3f}"


def test_confusion_is_that_of_scikit_learn(shares):
    expected = confusion_matrix(shares.y, shares.classes[shares.proba.argmax(axis=1)])
    assert describe_predictions(shares).confusion == expected.tolist()


def test_reliability_is_that_of_scikit_learn(shares):
    confidence, right, share = bin_confidence(shares)
    correct = shares.y == shares.classes[shares.proba.argmax(axis=1)]
    expected = calibration_curve(correct, shares.proba.max(axis=1), n_bins=10)
    np.testing.assert_allclose(np.c_[right, confidence][share > 0], np.c_[expected])


def test_several_models_have_a_row_each(gaussian):
    found = describe_predictions({"first": gaussian, "second": gaussian})
    assert [row[0] for row in found.scores] == ["first", "second"]


def test_a_confusion_of_many_classes_is_left_out_with_a_word():
    names = np.arange(31)
    found = describe_predictions(HeldOutClasses(names, np.eye(31), names))
    assert not found.confusion and "31 classes" in found.notes[0]


@pytest.mark.parametrize("wrong", [{}, {"a": 1}, 3, "text"])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="HeldOut"):
        describe_predictions(wrong)


def test_both_kinds_together_are_refused(gaussian, shares):
    with pytest.raises(InvalidInputError, match="one kind"):
        describe_predictions({"a": gaussian, "b": shares})


def test_without_predictions_there_is_nothing():
    assert describe_predictions(None) is None
