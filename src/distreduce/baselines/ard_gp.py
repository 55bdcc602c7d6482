"""The plain ARD Gaussian process on X, the row that the paper lacks: our GPs without any reduction before them."""

from distreduce.gp import GPClassifier as ARDGPClassifier
from distreduce.gp import GPRegressor as ARDGPRegressor

__all__ = ["ARDGPClassifier", "ARDGPRegressor"]
