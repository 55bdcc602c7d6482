"""Which classes can be saved, and the two functions that do it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from sklearn.utils.validation import check_is_fitted

from distreduce._utils.tensor_file import MAX_BYTES, UNREADABLE, Path, open_file, read_tensors, write_file
from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce._utils.versions import library_versions
from distreduce.exceptions import InvalidInputError, ModelFileError, UnsavableModelError
from distreduce.persistence._values import ModelReader, ModelWriter

FORMAT = "distreduce-model"
FORMAT_VERSION = (2, 0)  # the first number grows when older versions of distreduce cannot read the file
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "safetensors")


class Codec(Protocol):
    """What a module must offer to save the models of a class."""

    def to_state(self, model: Any, write: Writer) -> Node:
        """The model as JSON, its arrays handed to `write`."""
        ...

    def from_state(self, cls: Any, state: Node, read: Reader) -> Any:
        """The model again; everything in `state` and in the tensors is checked with :func:`require` first."""
        ...


@dataclass(frozen=True)
class Entry:
    """Module that holds the class, and module that holds its codec; both are imported when needed."""

    module: str
    codec: str


REGISTRY: dict[str, Entry] = {
    "SDR": Entry("distreduce.estimators", "distreduce.persistence._reduction"),
    "DistR": Entry("distreduce.estimators", "distreduce.persistence._reduction"),
    "SDRGPRegressor": Entry("distreduce.gp", "distreduce.persistence._gp"),
    "SDRGPClassifier": Entry("distreduce.gp", "distreduce.persistence._gp"),
    "GPRegressor": Entry("distreduce.gp", "distreduce.persistence._gp"),
    "GPClassifier": Entry("distreduce.gp", "distreduce.persistence._gp"),
}


def save(model: Any, path: Path, *, dtype: str = "float64") -> None:
    """Save a fitted model to one file, which appears whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator of a class in :data:`REGISTRY`.
    path : str or path-like
        The file; an existing one is replaced once the new one is complete. Any name will do, ``.safetensors`` is usual.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the fitted arrays in the file. float32 halves it and changes the embedding in about the seventh
        digit; parameters stay exact, and so do hyperparameters and inducing points of GPs.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model has not been fitted.
    UnsavableModelError
        A parameter is a function, a generator of random numbers or the like. Nothing was written.
    ModelSaveError
        The file could not be written. A file that was there before is untouched.
    """
    if dtype not in ("float64", "float32"):
        raise InvalidInputError(f"dtype={dtype!r} must be 'float64' or 'float32'.")
    name = type(model).__name__
    if name not in REGISTRY or type(model) is not _class(name):
        raise UnsavableModelError(f"{name} cannot be saved; models of {', '.join(REGISTRY)} can.")
    check_is_fitted(model)
    write = ModelWriter(single=dtype == "float32")
    state = _codec(name).to_state(model, write)
    try:  # a file that could not be read again must not be written
        _codec(name).from_state(type(model), state, ModelReader(write.tensors))
    except ValueError as error:
        raise UnsavableModelError(f"This {name} cannot be saved with dtype={dtype!r}: {_reason(error)}.") from error
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "class": name,
        "written_by": library_versions(LIBRARIES),
        "state": state,
    }
    write_file(path, document, write.tensors)


def load(path: Path, *, expected: type | None = None, max_bytes: int | None = None) -> Any:
    """Load a model of whatever class the file holds. Safe with files from strangers: no code is taken from them.

    Parameters
    ----------
    path : str or path-like
        A file that :func:`save` wrote.
    expected : type, optional
        Refuse models that are not of this class.
    max_bytes : int, optional
        Refuse files that are larger (8 GiB by default). Loading takes a small multiple of the file's length in memory,
        and with exact GPs n² numbers each, 8 GiB in all at most.

    Returns
    -------
    estimator
        The fitted model; of a float64 file, it transforms and predicts the same numbers to the last bit.

    Raises
    ------
    ModelFileError
        The file is missing, damaged, too large, of a newer format, or not a model of that class.
    """
    try:
        with open_file(path, MAX_BYTES if max_bytes is None else max_bytes) as (document, handle):
            name = _checked_name(document, expected)
            read = ModelReader(read_tensors(handle, document))
        model = _codec(name).from_state(_class(name), document.get("state"), read)
        require(not read.unused(), f"it holds tensors that belong to nothing: {read.unused()[:3]}")
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {_reason(error)}.") from error
    return model


def _checked_name(document: dict[str, Any], expected: type | None) -> str:
    """The class of the file, if format, version and class are ones to go on with."""
    require(document.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    found = document.get("version")
    numbers = isinstance(found, list) and len(found) == 2 and all(type(part) is int and part >= 0 for part in found)
    require(numbers, "it has no format version")
    newer = f"its format is version {found}, newer than {list(FORMAT_VERSION)}; upgrade distreduce to read it"
    require(cast("list[int]", found)[0] <= FORMAT_VERSION[0], newer)
    name = document.get("class")
    require(isinstance(name, str) and name in REGISTRY, f"its class is none of {', '.join(REGISTRY)}")
    name = str(name)
    if expected is not None:
        wrong = f"it holds a {name}, not a {expected.__name__}; use {name}.load or distreduce.persistence.load"
        require(issubclass(_class(name), expected), wrong)
    return name


def _reason(error: BaseException) -> str:
    """The error's own words, cut short: a forged file may bring names of any length."""
    return (str(error) or type(error).__name__).rstrip(".")[:500]


def _class(name: str) -> type:
    return cast(type, getattr(import_module(REGISTRY[name].module), name))


def _codec(name: str) -> Codec:
    return cast(Codec, import_module(REGISTRY[name].codec))
