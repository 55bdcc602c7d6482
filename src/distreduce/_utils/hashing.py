"""Hashes of data, parameters and files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

BLOCK_ROWS = 4096


def fingerprint(*values: Any) -> str:
    """Return the SHA-256 of the contents of values. Functions are hashed by name, other objects by their attributes."""
    digest = hashlib.sha256()
    for part in _parts(values):
        digest.update(len(part).to_bytes(8, "little"))  # with its length: ("ab", "c") and ("a", "bc") must differ
        digest.update(part)
    return digest.hexdigest()


def fingerprint_of_rows(*tables: Any) -> str:
    """Return the fingerprint of tables, read in blocks of rows: they need not fit into memory.

    A module-level function, because it is sent to the processes that hold the shards.
    """
    return fingerprint(*(None if table is None else list(_blocks(table)) for table in tables))


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _blocks(table: Any) -> Iterator[Any]:
    for start in range(0, table.shape[0], BLOCK_ROWS):
        block = table[start : start + BLOCK_ROWS]
        yield block if sparse.issparse(block) else np.asarray(block)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the bytes of a value, each part after the name of its type."""
    yield type(value).__name__.encode()
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray):
        yield repr((value.dtype.str, value.shape)).encode()
        # The bytes of an array of objects are addresses.
        yield repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
    elif sparse.issparse(value):
        rows = value.tocsr()
        yield from _parts((rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, np.random.RandomState):
        yield from _parts(value.get_state())
    else:
        for part in _members(value):
            yield from _parts(part)


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [member for key in sorted(value) for member in (key, value[key])]  # insertion order does not matter
    if isinstance(value, tuple | list):
        return [len(value), *value]
    if is_dataclass(value):
        return [member for field in fields(value) for member in (field.name, getattr(value, field.name))]
    if hasattr(value, "__array__"):  # a series or a table
        return [np.asarray(value)]
    return [getattr(value, "__qualname__", type(value).__qualname__), getattr(value, "__dict__", {})]
