"""Supervised distributional reduction: few prototypes of (X, y), a map to them, Gaussian processes on it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from distreduce._utils.versions import __version__
from distreduce.estimators import SDR, DistR
from distreduce.gp import SDRGPClassifier, SDRGPRegressor

# Imported on first use, so that `import distreduce` needs neither matplotlib nor torch nor pooch.
_LAZY = ("baselines", "datasets", "interop", "metrics", "plotting", "report", "tables")

__all__ = ["SDR", "DistR", "SDRGPClassifier", "SDRGPRegressor", "__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"distreduce.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
