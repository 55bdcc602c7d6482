"""The ARD Gaussian processes on X, without a reduction: a baseline that the paper does not have."""

from distreduce.gp import GPClassifier as ARDGPClassifier
from distreduce.gp import GPRegressor as ARDGPRegressor

__all__ = ["ARDGPClassifier", "ARDGPRegressor"]
