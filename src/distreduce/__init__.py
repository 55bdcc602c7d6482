"""Supervised distributional reduction: few prototypes of (X, y), a map to them, Gaussian processes on it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from distreduce.estimators import SDR, DistR
from distreduce.gp import SDRGPClassifier, SDRGPRegressor

__version__ = "0.1.0"
__all__ = ["SDR", "DistR", "SDRGPClassifier", "SDRGPRegressor", "__version__", "datasets"]


def __getattr__(name: str) -> Any:
    if name != "datasets":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("distreduce.datasets")
