"""A schema language for model files: kinds of values, and records of named fields.

Every kind has two methods. `write` describes a value in JSON and hands its arrays to a `Writer`; `read` turns both back
into the value and rejects whatever the kind does not allow, because a file may come from a stranger.

Shapes are written in symbols, such as ``("n", "p")``. The first field that has a symbol fixes its size, and all later
ones must agree: fields are read in the order of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from distreduce._utils.tensor_file import Node, Reader, RefusedError, Writer, require

Sizes = dict[str, int]
Shape = tuple[str | int, ...]
Found = dict[str, Any]


class Kind:
    """What a file holds under a name; by default, a value that JSON can express."""

    def write(self, name: str, value: Any, write: Writer) -> Node:
        """Return the JSON of a value, and store its arrays in the writer."""
        return write.value(name, value)

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        """Return the value; raise RefusedError if the file does not hold one of this kind."""
        raise NotImplementedError


def check_shape(name: str, shape: tuple[int, ...], symbols: Shape, sizes: Sizes) -> None:
    """Reject a shape that has a side of 0 or disagrees with `sizes`; add the sizes of new symbols."""
    wanted = ", ".join(f"{symbol}={sizes[symbol]}" if symbol in sizes else f"{symbol}" for symbol in symbols)
    # setdefault: the first field that has a symbol fixes its size.
    fits = len(shape) == len(symbols) and all(
        size > 0 and size == (symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size))
        for size, symbol in zip(shape, symbols, strict=True)
    )
    require(fits, f"{name} has the shape {shape}, not ({wanted})")


@dataclass(frozen=True)
class Floats(Kind):
    """Finite float64 numbers greater than `above` and at least `least`, in a dense array or a sparse matrix."""

    shape: Shape
    above: float | None = None
    least: float | None = None
    missing: bool = False  # whether NaN is allowed
    compact: bool = False  # whether the numbers may be stored in single precision
    storage: str = "dense"  # or "sparse", or "any"

    def write(self, name: str, value: Any, write: Writer) -> Node:
        return (write.sparse if sparse.issparse(value) else write.array)(name, value, compact=self.compact)

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        is_csr = isinstance(node, dict) and node.get("kind") == "csr"
        as_sparse = self.storage == "sparse" or (self.storage == "any" and is_csr)
        full = read.prefix + name
        value: Any = read.sparse(name, node) if as_sparse else read.array(name, node)
        require(value.dtype == np.float64, f"{full} is of type {value.dtype}, not float64")
        check_shape(full, value.shape, self.shape, sizes)
        # Entries that are not stored are zero, and need no check.
        numbers: Any = value.data if sparse.issparse(value) else value
        finite = np.isfinite(numbers) | (np.isnan(numbers) & self.missing)
        require(bool(finite.all()), f"{full} has NaN or infinite values")
        if self.above is not None:
            require(bool((numbers > self.above).all()), f"{full} has values that are not greater than {self.above:g}")
        if self.least is not None:
            require(bool((numbers >= self.least).all()), f"{full} has values less than {self.least:g}")
        return value


@dataclass(frozen=True)
class Indices(Kind):
    """An array of integers from `least` up to the size `below`, if there is one."""

    shape: Shape
    below: str | None = None
    least: int = 0

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        full, value = read.prefix + name, read.array(name, node)
        require(value.dtype.kind == "i", f"{full} is of type {value.dtype}, not integer")
        check_shape(full, value.shape, self.shape, sizes)
        # check_shape has rejected empty arrays, which have no minimum.
        most = value.max() if self.below is None else sizes[self.below] - 1
        inside = bool(value.min() >= self.least and value.max() <= most)
        require(inside, f"{full} has indices outside {self.least}..{most}")
        return value.astype(np.intp, copy=False)  # a forged file may hold a type that sums would overflow


@dataclass(frozen=True)
class Labels(Kind):
    """Class labels: an array of numbers or texts, or Python strings as older versions of pandas hold them."""

    size: str

    def write(self, name: str, value: Any, write: Writer) -> Node:
        # There are no tensors of Python objects: such labels go into the JSON.
        if value.dtype == object and all(isinstance(label, str) for label in value):
            return [str(label) for label in value]
        return write.array(name, value)

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        if isinstance(node, list):
            return Names(self.size, as_array=True).read(name, node, read, sizes)
        value = read.array(name, node)
        check_shape(read.prefix + name, value.shape, (self.size,), sizes)
        finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        require(finite, f"{read.prefix}{name} has NaN or infinite values")
        return value


@dataclass(frozen=True)
class Names(Kind):
    """A list of strings, in Python also an array of objects."""

    size: str
    as_array: bool = False

    def write(self, name: str, value: Any, write: Writer) -> Node:
        return [str(text) for text in value]

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        full = read.prefix + name
        texts = isinstance(node, list) and all(isinstance(text, str) for text in node)
        require(texts, f"{full} is not a list of names")
        check_shape(full, (len(node),), (self.size,), sizes)
        return np.array(node, dtype=object) if self.as_array else list(node)


@dataclass(frozen=True)
class Scalar(Kind):
    """A bool, a string, or a number, which is positive if it must be."""

    type: type
    positive: bool = False
    choices: Collection[Any] | None = None

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        full, value = read.prefix + name, read.value(name, node)
        # A float may be written as an int, such as a perplexity of 30; a bool may not.
        number = self.type is float and type(value) is int and abs(value) < 2**63
        require(type(value) is self.type or number, f"{full} is not a {self.type.__name__}")
        require(not self.positive or 0 < value < np.inf, f"{full} is not a positive number")
        require(self.choices is None or value in self.choices, f"{full} is not one of {self.choices}")
        return float(value) if self.type is float else value


@dataclass(frozen=True)
class Count(Kind):
    """An integer that fixes the size of a symbol."""

    symbol: str
    least: int = 1

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> int:
        full = read.prefix + name
        # `type`, not isinstance: True is an int.
        if type(node) is not int or not self.least <= node < 2**63:
            raise RefusedError(f"{full} is not an integer of at least {self.least}")
        require(sizes.setdefault(self.symbol, node) == node, f"{full} is {node:d}, not {sizes[self.symbol]}")
        return node


@dataclass(frozen=True)
class Function(Kind):
    """A kernel, which the reader finds by its name."""

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        value = read.value(name, node)
        require(callable(value), f"{read.prefix}{name} is not a kernel")
        return value


@dataclass(frozen=True)
class Frame(Kind):
    """A pandas frame with `size` rows; its columns get the order of `columns`, others come last."""

    size: str
    columns: tuple[str, ...]

    def write(self, name: str, value: Any, write: Writer) -> Node:
        parts = write.within(name)
        return {str(column): parts.array(str(column), value[column].to_numpy()) for column in value.columns}

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> pd.DataFrame:
        full, parts = read.prefix + name, read.within(name)
        require(isinstance(node, dict), f"{full} is not a table")
        found = {column: parts.array(column, part) for column, part in node.items()}
        rows = sizes[self.size]
        fits = all(column.shape == (rows,) for column in found.values()) and (bool(found) or rows == 0)
        require(fits, f"{full} does not have {rows} rows in every column")
        # The JSON has its keys in alphabetical order.
        order = {column: place for place, column in enumerate(self.columns)}
        return pd.DataFrame({column: found[column] for column in sorted(found, key=lambda c: order.get(c, len(order)))})


@dataclass(frozen=True)
class Maybe(Kind):
    """None, or a value of another kind; without one, always None."""

    kind: Kind | None = None

    def write(self, name: str, value: Any, write: Writer) -> Node:
        return None if value is None or self.kind is None else self.kind.write(name, value, write)

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        require(node is None or self.kind is not None, f"{read.prefix}{name} is not null")
        return None if node is None or self.kind is None else self.kind.read(name, node, read, sizes)


@dataclass(frozen=True)
class Record(Kind):
    """Named fields, read in this order: attributes of an object in Python, or entries of a dict."""

    fields: Mapping[str, Kind]
    optional: Collection[str] = ()  # fields that may be absent
    check: Callable[[Found], object] = lambda found: None  # raises RefusedError if the fields do not fit together
    build: Callable[..., Any] = dict  # makes the value from the fields, given as keywords
    pack: Callable[[Any], Any] = lambda value: value  # turns the value into an object or dict that has the fields

    def write(self, name: str, value: Any, write: Writer) -> Node:
        value, parts = self.pack(value), write.within(name)
        # Optional fields may be absent; whether the others exist is checked when the file is read.
        has, get = (dict.__contains__, dict.get) if isinstance(value, dict) else (hasattr, getattr)
        return {key: kind.write(key, get(value, key), parts) for key, kind in self.fields.items() if has(value, key)}

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        check_keys(read.prefix + name, node, known={*self.fields}, needed={*self.fields} - {*self.optional})
        parts = read.within(name)
        found = {key: kind.read(key, node[key], parts, sizes) for key, kind in self.fields.items() if key in node}
        self.check(found)
        return self.build(**found)


def check_keys(name: str, node: Node, *, known: set[str], needed: set[str]) -> None:
    """Reject a JSON object that lacks an entry or has one that is not known."""
    if not isinstance(node, dict):
        raise RefusedError(f"{name} is not an object with the parts {sorted(known)}")
    unknown, missing = sorted({*node} - known), sorted(needed - {*node})
    require(not unknown, f"{name} has parts that this version of distreduce does not know: {unknown[:3]}")
    require(not missing, f"{name} lacks {missing[:3]}")


@dataclass(frozen=True)
class KeyedList(Kind):
    """A dict of records, in the file a list of objects with their name under `key`."""

    key: str
    allowed: Collection[str]
    record: Record
    can_be_empty: bool = False

    def write(self, name: str, value: Mapping[str, Any], write: Writer) -> Node:
        return [{self.key: each, **self.record.write(each, part, write)} for each, part in value.items()]

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> dict[str, Any]:
        full = read.prefix + name
        require(isinstance(node, list) and (self.can_be_empty or len(node) > 0), f"{full} is not a list of {self.key}s")
        found: dict[str, Any] = {}
        for part in node:
            each = part.get(self.key) if isinstance(part, dict) else None
            fresh = isinstance(each, str) and each in self.allowed and each not in found
            require(fresh, f"{full} has a {self.key} that is unknown or not unique")
            rest = {key: value for key, value in part.items() if key != self.key}
            # Sizes that only one record has stay its own.
            found[str(each)] = self.record.read(str(each), rest, read, dict(sizes))
        return found
