"""GPClassifier and SDRGPClassifier: scikit-learn's contract, every kind of labels, probabilities, quality."""

from __future__ import annotations
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from distreduce.gp import GPClassifier, SDRGPClassifier

@parametrize_with_checks([GPClassifier(), SDRGPClassifier()])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)
