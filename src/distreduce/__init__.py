"""Supervised distributional reduction: few prototypes of (X, y), a map to them, Gaussian processes on it."""

from distreduce.estimators import SDR, DistR
from distreduce.gp import SDRGPClassifier, SDRGPRegressor

__version__ = "0.1.0"
__all__ = ["SDR", "DistR", "SDRGPClassifier", "SDRGPRegressor", "__version__"]
