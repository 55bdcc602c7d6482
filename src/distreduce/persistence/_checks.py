"""What the codecs of all models share: parameters, names, labels, and checks of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.tensor_file import MAX_BYTES
from distreduce._utils.tensor_reader import Reader, RefusedError, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce.estimators._renamed import translate_renamed
from distreduce.exceptions import NumericalError
from distreduce.gp._exact import MAX_EXACT


def write_params(model: Any, write: Writer) -> Node:
    """The parameters of the constructor."""
    return {name: write.value(name, value) for name, value in model.get_params(deep=False).items()}


def read_params(cls: Any, params: Node, read: Reader) -> Any:
    """An unfitted model with these parameters, all of which its own table of constraints allows."""
    model = cls(**translate_renamed(cls, {name: read.value(name, node) for name, node in params.items()}))
    model._validate_params()
    return model


def checked_parts(cls: Any, state: Node, read: Reader, *, known: set[str], needed: set[str]) -> tuple[Node, Node]:
    """Parameters and fitted attributes of a state that has all that is needed and nothing that is not known."""
    params, fitted = read.part(state, "params"), read.part(state, "fitted")
    require(isinstance(params, dict) and isinstance(fitted, dict), "its state is not in order")
    names = {*cls().get_params(deep=False), *getattr(cls, "_renamed", {})}
    unknown = sorted({*params} - names | {*fitted} - known)
    require(not unknown, f"it holds what this version of distreduce does not know: {unknown[:3]}")
    missing = sorted(needed - {*fitted})
    require(not missing, f"it lacks {missing[:3]}")
    return params, fitted


def read_names(name: str, node: Node) -> list[str]:
    """A list of texts."""
    require(isinstance(node, list) and all(isinstance(text, str) for text in node), f"{name} is no list of names")
    return list(node)


def check_floats(name: str, value: Any, *, missing: bool = False) -> None:
    """Finite double-precision numbers; NaN too where values may be `missing`."""
    numbers = value.data if sparse.issparse(value) else value
    require(value.dtype == np.float64, f"{name} is not of type float64")
    require(
        bool((np.isfinite(numbers) | (np.isnan(numbers) & missing)).all()), f"{name} has numbers that are not finite"
    )


def check_positive(name: str, value: Any) -> None:
    """Finite numbers above zero."""
    check_floats(name, value)
    require(bool((value > 0).all()), f"{name} has numbers that are not positive")


def check_shape(name: str, value: Any, *shape: int) -> None:
    """As many rows and columns as the rest of the model has."""
    require(value.shape == shape, f"{name} has the shape {value.shape}, not {shape}")


def check_indices(name: str, value: Any, size: int, below: int) -> None:
    """As many whole numbers, from zero on."""
    require(value.dtype.kind == "i", f"{name} are no whole numbers")
    check_shape(name, value, size)
    require(value.min() >= 0 and value.max() < below, f"{name} is out of range")


def read_positive(name: str, value: Any) -> float:
    """A single number above zero."""
    number = type(value) is float or (type(value) is int and abs(value) < 2**63)
    require(number and 0 < value < np.inf, f"{name} is no positive number")
    return float(value)


def check_keys(name: str, node: Node, keys: set[str]) -> None:
    """An object with these entries and no others."""
    require(isinstance(node, dict) and {*node} == keys, f"{name} has not the parts {sorted(keys)}")


def check_table(name: str, value: Any) -> None:
    """Rows and columns, at least one of each."""
    require(value.ndim == 2 and min(value.shape) > 0, f"{name} is no table")


def check_size(n: int, columns: int) -> None:
    """A factorisation is larger than the file: a small forgery must not fill the memory."""
    fits = n <= MAX_EXACT and 8 * n * columns <= MAX_BYTES
    require(fits, f"its exact GPs of {n} samples need more than {MAX_BYTES} bytes or have more than {MAX_EXACT}")


@contextmanager
def refusing_numbers() -> Iterator[None]:
    """Numbers that are finite and positive can still be too large or small together."""
    try:
        with np.errstate(all="ignore"):
            yield
    except NumericalError as error:
        raise RefusedError(f"its GP cannot be built: {error}") from error
