"""Gaussian processes on SDR: a regressor, a classifier, and a GPyTorch kernel, which alone imports torch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from distreduce.exceptions import MissingDependencyError
from distreduce.gp._classification import GPClassifier
from distreduce.gp._regression import GPRegressor
from distreduce.gp._sdr_classifier import SDRGPClassifier
from distreduce.gp._sdr_regressor import SDRGPRegressor

__all__ = ["GPClassifier", "GPRegressor", "SDRGPClassifier", "SDRGPRegressor", "SDRKernel"]


def __getattr__(name: str) -> Any:
    if name != "SDRKernel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module("distreduce.gp.kernel").SDRKernel
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"SDRKernel needs {error.name}, which is not installed: pip install 'distreduce[gp]'."
        ) from error
