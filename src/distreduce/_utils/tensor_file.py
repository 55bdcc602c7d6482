"""Files of JSON and tensors: written atomically, and read with limits on all that a forged file could ask for."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from distreduce._utils.atomic import replacing
from distreduce._utils.tensor_reader import require
from distreduce._utils.tensor_writer import DTYPES
from distreduce.exceptions import ModelSaveError, UnsavableModelError

Path = str | os.PathLike[str]
Tensors = dict[str, NDArray[Any]]

KEY = "distreduce"  # a single key: safetensors writes several in random order, and equal models should give equal files
MAX_BYTES = 8 * 2**30
# Parsed JSON takes up to about twenty times its length in memory: at most half a gigabyte for this much text.
MAX_JSON = 16 * 2**20
MAX_HEADER = 2 * MAX_JSON + 2**20  # the JSON with every quote escaped, and one line per tensor
MAX_DEPTH = 16
UNREADABLE = (OSError, ValueError, OverflowError, RecursionError, MemoryError, SafetensorError)


def write_file(path: Path, document: Mapping[str, Any], tensors: Tensors, *, mark: str = "distreduce") -> None:
    """Write a file atomically; until it is complete, its name is hidden and begins with `mark`.

    Raises
    ------
    UnsavableModelError
        The JSON of the document is too long.
    ModelSaveError
        The file could not be written.
    """
    text = _canonical({**document, "sha256": checksum(document, tensors)})
    if len(text) > MAX_JSON:
        raise UnsavableModelError(
            f"The names and numbers of the model take {len(text)} characters; a file may have {MAX_JSON}. "
            "Fit to an array without feature names."
        )
    try:
        with replacing(path, mark=mark) as temporary:
            temporary.touch(exist_ok=False)
            mode = temporary.stat().st_mode  # the mode that the umask gives to a new file
            save_file(tensors, temporary, metadata={KEY: text})
            os.chmod(temporary, stat.S_IMODE(mode))  # safetensors makes its files private
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelSaveError(
            f"The model was not saved to {os.fspath(path)!r}: {error}. Nothing was written there; choose a folder that "
            "exists, may be written to and has room."
        ) from error


@contextmanager
def open_file(path: Path, max_bytes: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the JSON of a file and a handle for :func:`read_tensors`; raise one of `UNREADABLE` for other files."""
    _check_sizes(path, max_bytes)
    with safe_open(path, framework="numpy") as handle:
        metadata = handle.metadata() or {}
        require(KEY in metadata, "it is a safetensors file, but not one of distreduce")
        yield _parse(metadata[KEY]), handle


def _check_sizes(path: Path, max_bytes: int) -> None:
    status = os.stat(path)
    require(stat.S_ISREG(status.st_mode), "it is not a regular file")
    require(status.st_size <= max_bytes, f"it has {status.st_size} bytes, more than max_bytes={max_bytes}")
    # The first eight bytes are the length of the header: check it before safetensors reads that much.
    with open(path, "rb") as file:
        start = file.read(8)
    require(len(start) == 8, "it is empty or cut off")
    (length,) = struct.unpack("<Q", start)
    require(length <= status.st_size - 8, "it is cut off, or not a safetensors file")
    require(length <= MAX_HEADER, f"its header has {length} bytes; at most {MAX_HEADER} are read")


def _parse(text: str) -> dict[str, Any]:
    require(len(text) <= MAX_JSON, f"its JSON has {len(text)} characters; at most {MAX_JSON} are read")
    document = json.loads(text, parse_constant=_no_constant)
    level, depth = [document], 0  # level by level, because recursion on a forged file could exhaust the stack
    while level:
        require(depth <= MAX_DEPTH, f"its JSON is nested more than {MAX_DEPTH} deep")
        branches = [node for node in level if isinstance(node, dict | list)]
        level = [leaf for node in branches for leaf in (node.values() if isinstance(node, dict) else node)]
        depth += 1
    require(isinstance(document, dict), "its JSON is not an object")
    return document


def _no_constant(name: str) -> float:
    raise ValueError(f"its JSON holds {name}, which is not valid JSON")


def read_tensors(handle: Any, document: Mapping[str, Any]) -> Tensors:
    """Return all tensors as arrays; raise RefusedError unless the checksum matches."""
    tensors = {}
    for name in handle.keys():
        kind = handle.get_slice(name).get_dtype()
        require(kind in DTYPES, f"tensor {name!r} has the type {kind}, which models do not use")
        # safetensors panics if it gets no memory, with an error that is no Exception: ask for as much first.
        np.empty((2, *handle.get_slice(name).get_shape()), dtype=DTYPES[kind])
        tensors[name] = np.array(handle.get_tensor(name), dtype=DTYPES[kind])
        # Bytes other than 0 and 1 would be booleans that NumPy treats inconsistently.
        if kind == "BOOL":
            require(bool((tensors[name].view(np.uint8) <= 1).all()), f"tensor {name!r} is not boolean")
    rest = {key: value for key, value in document.items() if key != "sha256"}  # the checksum does not cover itself
    require(document.get("sha256") == checksum(rest, tensors), "it is damaged: its checksum does not match")
    return tensors


def checksum(document: Mapping[str, Any], tensors: Tensors) -> str:
    """Return the SHA-256 of the JSON and every tensor. It detects damage, not forgery."""
    digest = hashlib.sha256(_canonical(document).encode())
    for name in sorted(tensors):  # the order in the file does not matter
        # Types and shapes too: equal bytes may be different arrays.
        digest.update(_canonical([name, str(tensors[name].dtype), tensors[name].shape]).encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def _canonical(node: Any) -> str:
    return json.dumps(node, sort_keys=True, separators=(",", ":"), allow_nan=False)
