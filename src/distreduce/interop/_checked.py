"""The archive of a map from anybody: checked here, then given to the reader that needs NumPy alone."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from distreduce._utils.safe_npz import DAMAGE, Arrays, read_arrays
from distreduce.exceptions import ModelFileError
from distreduce.interop import _archive
from distreduce.interop._plain import NAMES

FLOATS = ("alpha", "offset", "scale", "coefficients", "centres")


@wraps(_archive.load_map)
def load_map(path: Any) -> Callable[[Any], Any]:
    try:
        found = read_arrays(pathlib.Path(path))
        # Other formats and versions are told by the reader itself.
        if str(found.get("format")) == "distreduce-map" and (found.get("version") == 1):
            _check(found)
        return _archive.load_map(path)
    except DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise ModelFileError(f"{os.fspath(path)!r} is no map that can be read: {reason:.500}") from error


def _check(found: Arrays) -> None:
    """The shapes that save_map's notes state, and finite numbers."""
    _require(str(found["kernel"]) in NAMES.values(), "its kernel is not known")
    for name in FLOATS:
        value = found.get(name, np.ones(1))
        _require(value.dtype == np.float64 and bool(np.isfinite(value).all()), f"{name} has no finite numbers")
    coefficients, offset = found["coefficients"], found["offset"]
    _require(coefficients.ndim == 2 and coefficients.size > 0, "coefficients is no table")
    _require(offset.ndim == 1 and len(offset) > 0, "offset is no row")
    d = len(offset)
    shapes = {"alpha": (), "offset": (d,), "scale": (d,), "centres": (len(coefficients), d), "feature_names": (d,)}
    for name, shape in shapes.items():
        _require(name not in found or found[name].shape == shape, f"{name} has not the shape {shape}")
    _require(bool((found["scale"] > 0).all()) and bool(found["alpha"] > 0), "a scale is not positive")
    distances = found["kernel"] != "linear" and d == len(coefficients)
    _require("centres" in found or distances, "it has no centres")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)
