"""Supervised distributional reduction: few prototypes of (X, y), a map to them, Gaussian processes on it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distreduce._utils.versions import __version__

if TYPE_CHECKING:
    from distreduce.cli.fitted_folder import load_folder
    from distreduce.estimators import SDR, DistR, SDRImputer, align_embedding, cross_val_embedding
    from distreduce.gp import SDRGPClassifier, SDRGPRegressor

# Everything is imported on first use: `distreduce --help` must not wait for scikit-learn and Numba.
_NAMES = {
    "SDR": "distreduce.estimators",
    "DistR": "distreduce.estimators",
    "SDRGPClassifier": "distreduce.gp",
    "SDRGPRegressor": "distreduce.gp",
    "SDRImputer": "distreduce.estimators",
    "align_embedding": "distreduce.estimators",
    "cross_val_embedding": "distreduce.estimators",
    "load_folder": "distreduce.cli.fitted_folder",
}
_ROOMS = ("baselines", "datasets", "gp", "interop", "metrics", "plotting", "report", "tables")

__all__ = [
    "SDR",
    "DistR",
    "SDRGPClassifier",
    "SDRGPRegressor",
    "SDRImputer",
    "__version__",
    "align_embedding",
    "cross_val_embedding",
    "load_folder",
    *_ROOMS,
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in _ROOMS:
        return import_module(f"distreduce.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
