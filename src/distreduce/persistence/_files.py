"""Save a fitted model to a file, and load it again; kernels and losses as JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from distreduce._utils import tensor_file
from distreduce._utils.tensor_file import Node, Reader, RefusedError, Writer, require
from distreduce._utils.typing import FilePath
from distreduce._utils.versions import library_versions
from distreduce.exceptions import InvalidInputError, ModelFileError, UnsavableModelError
from distreduce.kernels import RBF, Delta, Linear, RationalQuadratic
from distreduce.losses import LOSSES, BregmanLoss
from distreduce.persistence._models import REGISTRY

KERNEL_CLASSES: dict[str, type] = {kind.__name__: kind for kind in (RBF, RationalQuadratic, Linear, Delta)}


@dataclass(frozen=True)
class ModelWriter(Writer):
    """Writes kernels and losses of this package by their names."""

    def other(self, name: str, value: Any) -> Node:
        if type(value) in KERNEL_CLASSES.values():
            parts = self.within(name)
            content = {part.name: parts.value(part.name, getattr(value, part.name)) for part in fields(value)}
            return {"kind": "kernel", "class": type(value).__name__, "fields": content}
        # The class itself: a user's subclass may have kept the name of its parent.
        if isinstance(value, BregmanLoss) and type(value) is type(LOSSES.get(value.name)):
            return {"kind": "loss", "name": value.name}
        raise UnsavableModelError(f"{self.prefix}{name} is {value!r}, which cannot be saved. {_advice(value)}")


@dataclass(frozen=True)
class ModelReader(Reader):
    """Reads what :class:`ModelWriter` wrote; names are looked up in tables of this package."""

    def other(self, name: str, node: Node) -> Any:
        if node.get("kind") == "loss":
            loss = node.get("name")
            require(isinstance(loss, str) and loss in LOSSES, f"{self.prefix}{name} is an unknown loss")
            return LOSSES[str(loss)]
        require(node.get("kind") == "kernel", f"{self.prefix}{name} is of an unknown kind")
        kind = KERNEL_CLASSES.get(str(node.get("class")))
        content = self.part(node, "fields")
        if kind is None or not isinstance(content, dict):
            raise RefusedError(f"{self.prefix}{name} is an unknown kernel")
        names = {part.name for part in fields(kind)}  # the class is one of ours, but its arguments come from the file
        require(set(content) == names, f"{self.prefix}{name} does not have the parameters of {kind.__name__}")
        parts = self.within(name)
        values = {key: parts.value(key, value) for key, value in content.items()}
        # Kernels check ranges, not types.
        for value in values.values():
            good = isinstance(value, Real) or (kind is RBF and isinstance(value, tuple))
            require(good, f"{self.prefix}{name} has a parameter that is not a number")
        return kind(**values)


def _advice(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "Call set_params(random_state=None), or set an int, and save again; the fit is unchanged."
    return (
        f"Kernels of distreduce.kernels ({', '.join(KERNEL_CLASSES)}) and losses of distreduce.losses "
        f"({', '.join(LOSSES)}) can be saved; your own functions and classes cannot, because files never hold code. "
        "Fit with one of these, or reset a parameter that only the next fit uses with set_params."
    )


FORMAT = "distreduce-model"
FORMAT_VERSION = (3, 0)  # the first number grows when older versions of distreduce cannot read the file
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "safetensors")


def save(model: Any, path: FilePath, *, dtype: str = "float64") -> None:
    """Save a fitted model of a class in :data:`REGISTRY` to one file, as its method ``save`` describes.

    All parameters are saved except `checkpoint`, which is a place on this machine. float32 halves the file and changes
    the embedding in about the seventh digit; parameters stay exact, and so do hyperparameters of GPs.
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
    tensor_file.write_file(path, head | {"state": state}, write.tensors)


def load(path: FilePath, *, expected: type | None = None, max_bytes: int | None = None) -> Any:
    """Load a model of any class, or of the class `expected`, as the method ``load`` of an estimator describes.

    Safe with files from strangers: nothing in a file is executed. Loading takes a small multiple of the size of the
    file in memory, and n² numbers for each exact GP, 8 GiB at most.
    """
    try:
        with tensor_file.open_file(path, max_bytes) as (document, handle):
            name = _check_head(document, expected)
            read = ModelReader(tensor_file.read_tensors(handle, document))
        model = REGISTRY[name].read_state(document.get("state"), read, {})
        # `save` writes no tensor that the state does not name.
        require(not read.unused(), f"it holds tensors that belong to nothing: {read.unused()[:3]}")
    except tensor_file.UNREADABLE as error:
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
