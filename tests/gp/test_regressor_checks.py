"""scikit-learn's own checks of an estimator, with no expected failures."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from distreduce.gp import GPRegressor, SDRGPRegressor


@parametrize_with_checks([GPRegressor(), SDRGPRegressor()])
def test_scikit_learn_check(estimator, check):
    check(estimator)
