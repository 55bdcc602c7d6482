"""Save a fitted model to a file, and load it again."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from distreduce._utils.tensor_file import MAX_BYTES, UNREADABLE, Path, open_file, read_tensors, write_file
from distreduce._utils.tensor_reader import RefusedError, require
from distreduce._utils.versions import library_versions
from distreduce.exceptions import InvalidInputError, ModelFileError, UnsavableModelError
from distreduce.persistence._models import REGISTRY
from distreduce.persistence._values import ModelReader, ModelWriter

FORMAT = "distreduce-model"
FORMAT_VERSION = (3, 0)  # the first number grows when older versions of distreduce cannot read the file
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "safetensors")


def save(model: Any, path: Path, *, dtype: str = "float64") -> None:
    """Save a fitted model of a class in :data:`REGISTRY` to one file, as its method ``save`` describes.

    All parameters are saved except `checkpoint`, which is a place on this machine. float32 halves the file and changes
    the embedding in about the seventh digit; parameters stay exact, and so do hyperparameters and inducing points of
    GPs.
    """
    if dtype not in ("float64", "float32"):
        raise InvalidInputError(f"dtype={dtype!r} must be 'float64' or 'float32'.")
    name = type(model).__name__
    # Not isinstance: a subclass may have state that the schema does not know.
    if name not in REGISTRY or type(model) is not REGISTRY[name].cls:
        raise UnsavableModelError(f"{name} cannot be saved; models of {', '.join(REGISTRY)} can.")
    check_is_fitted(model)
    write = ModelWriter(single=dtype == "float32")
    state = REGISTRY[name].write_state(model, write)
    try:  # never write a file that could not be read again
        REGISTRY[name].read_state(state, ModelReader(write.tensors), {})
    except ValueError as error:
        raise UnsavableModelError(f"This {name} cannot be saved with dtype={dtype!r}: {_reason(error)}.") from error
    head = {"format": FORMAT, "version": FORMAT_VERSION, "class": name, "written_by": library_versions(LIBRARIES)}
    write_file(path, head | {"state": state}, write.tensors)


def load(path: Path, *, expected: type | None = None, max_bytes: int | None = None) -> Any:
    """Load a model of any class, or of the class `expected`, as the method ``load`` of an estimator describes.

    Safe with files from strangers: nothing in a file is executed. Loading takes a small multiple of the size of the
    file in memory, and n² numbers for each exact GP, 8 GiB at most.
    """
    try:
        with open_file(path, MAX_BYTES if max_bytes is None else max_bytes) as (document, handle):
            name = _check_head(document, expected)
            read = ModelReader(read_tensors(handle, document))
        model = REGISTRY[name].read_state(document.get("state"), read, {})
        # `save` writes no tensor that the state does not name.
        require(not read.unused(), f"it holds tensors that belong to nothing: {read.unused()[:3]}")
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {_reason(error)}.") from error
    return model


def _check_head(document: dict[str, Any], expected: type | None) -> str:
    """Return the name of the class, if format, version and class can be read."""
    require(document.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    version, name = document.get("version"), document.get("class")
    # `type(v) is int`, because JSON's true is an int in Python.
    if not (isinstance(version, list) and len(version) == 2 and all(type(v) is int and v >= 0 for v in version)):
        raise RefusedError("it has no format version")
    newer = f"its format is version {version}, newer than {list(FORMAT_VERSION)}; upgrade distreduce to read it"
    require(version[0] <= FORMAT_VERSION[0], newer)
    if not isinstance(name, str) or name not in REGISTRY:
        raise RefusedError(f"its class is not one of {', '.join(REGISTRY)}")
    if expected is not None:
        wrong = f"it holds {name}, not {expected.__name__}; use {name}.load or distreduce.persistence.load"
        require(issubclass(REGISTRY[name].cls, expected), wrong)
    return name


def _reason(error: BaseException) -> str:
    """Return the message of an error, cut short: a forged file may hold names of any length."""
    return (str(error) or type(error).__name__).rstrip(".")[:500]
