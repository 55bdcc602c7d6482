"""Files of JSON and tensors: written atomically, and read with limits on all that a forged file could ask for.

Everything that is read is checked: a file may come from a stranger.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy import sparse

from distreduce._utils.files import replacing
from distreduce._utils.typing import FilePath, Self
from distreduce.exceptions import ModelSaveError, UnsavableModelError

Node = Any  # a JSON value

DTYPES = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64",
}  # fmt: skip
TEXT_UNITS = {"U": np.uint32, "S": np.uint8}  # text is stored as the code points of its characters


@dataclass(frozen=True)
class Writer:
    """Collects the tensors of values under their names, and returns the JSON that describes each value.

    With `single`, arrays that are marked as `compact` are stored in single precision.
    """

    single: bool = False
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    prefix: str = ""

    def within(self, name: str) -> Self:
        return replace(self, prefix=f"{self.prefix}{name}.")

    def value(self, name: str, value: Any) -> Node:
        """Write any value that a parameter may have; arrays stay exact."""
        # Plain Python types first: NumPy scalars and paths are not JSON.
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value is None or isinstance(value, bool | int | float | str):
            if isinstance(value, float) and not math.isfinite(value):
                raise UnsavableModelError(f"{self.prefix}{name} is {value}; a file can only hold finite numbers.")
            return str(value) if isinstance(value, str) else value  # a subclass of str becomes a str
        if sparse.issparse(value):
            return self.sparse(name, value)
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {"kind": kind, "items": self.array(name, _numbers(self.prefix + name, value))}
        if hasattr(value, "__array__"):
            return self.array(name, value)
        return self.other(name, value)

    def other(self, name: str, value: Any) -> Node:
        """Write a value of another type; for subclasses to extend."""
        raise UnsavableModelError(f"{self.prefix}{name} is {value!r}, which a file cannot hold.")

    def array(self, name: str, value: Any, *, compact: bool = False) -> Node:
        """Write an array of numbers or text. Its memory order is kept, because rounding in products depends on it."""
        A = np.asarray(value)
        if A.dtype.kind in TEXT_UNITS:
            # Texts of equal width, as code points along one more axis.
            width = max(1, A.dtype.itemsize // np.dtype(TEXT_UNITS[A.dtype.kind]).itemsize)
            code = A.dtype.kind
            text = np.ascontiguousarray(A, dtype=f"={code}{width}")
            self.tensors[self.prefix + name] = text.reshape(-1).view(TEXT_UNITS[code]).reshape(*A.shape, width)
            return {"kind": "text", "code": code}
        if A.dtype.name not in DTYPES.values():
            raise UnsavableModelError(
                f"{self.prefix}{name} is an array of type {A.dtype}; a file holds numbers, booleans and text. "
                "Convert it (labels: to str) and fit again."
            )
        # safetensors knows C order only: store the transpose, and remember that.
        turned = A.flags.f_contiguous and not A.flags.c_contiguous
        stored = A.T if turned else A
        dtype = np.float32 if self.single and compact and A.dtype == np.float64 else A.dtype.newbyteorder("=")
        with np.errstate(over="ignore"):  # overflow to infinity is found when the state is checked
            self.tensors[self.prefix + name] = np.asarray(stored, dtype=dtype, order="C")
        return {"kind": "array", "dtype": A.dtype.name, "order": "F" if turned else "C"}

    def sparse(self, name: str, value: Any, *, compact: bool = False) -> Node:
        """Write a sparse matrix, as compressed rows."""
        if value.ndim != 2:
            raise UnsavableModelError(f"{self.prefix}{name} is sparse, but not two-dimensional; give a dense array.")
        rows, parts = value.tocsr(), self.within(name)
        arrays = {part: parts.array(part, getattr(rows, part)) for part in ("indices", "indptr")}
        arrays["data"] = parts.array("data", rows.data, compact=compact)
        container = "array" if isinstance(value, sparse.sparray) else "matrix"
        return {"kind": "csr", "container": container, "shape": [int(size) for size in rows.shape], **arrays}


def _numbers(name: str, value: Any) -> NDArray[Any]:
    try:
        numbers = np.asarray(value)
    except ValueError:  # a ragged list
        numbers = np.empty(0, dtype=object)
    names = numbers.dtype.kind == "U" and all(isinstance(item, str) for item in value)
    if numbers.dtype.kind not in "biuf" and not names:
        raise UnsavableModelError(f"{name} is a {type(value).__name__} that does not hold numbers or names: {value!r}.")
    return numbers


class RefusedError(ValueError):
    """A file does not hold what it must; callers raise a ModelFileError or CheckpointError that names the file."""


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise RefusedError(reason)


@dataclass(frozen=True)
class Reader:
    """Turns JSON and tensors back into values, and remembers which tensors were used."""

    tensors: Mapping[str, NDArray[Any]]
    used: set[str] = field(default_factory=set)
    prefix: str = ""

    def within(self, name: str) -> Self:
        return replace(self, prefix=f"{self.prefix}{name}.")

    def unused(self) -> list[str]:
        return sorted(set(self.tensors) - self.used)

    def value(self, name: str, node: Node) -> Any:
        """Read what :meth:`Writer.value` wrote."""
        if not isinstance(node, dict):
            require(not isinstance(node, list), f"{self.prefix}{name} is a bare list")
            require(not isinstance(node, int) or abs(node) < 2**64, f"{self.prefix}{name} is too large")
            return node
        kind = node.get("kind")
        if kind in ("array", "text"):
            return self.array(name, node)
        if kind in ("list", "tuple"):
            items = self.array(name, self.part(node, "items")).tolist()
            require(isinstance(items, list), f"{self.prefix}{name} is not a sequence")
            return items if kind == "list" else tuple(items)
        if kind == "csr":
            return self.sparse(name, node)
        return self.other(name, node)

    def other(self, name: str, node: Node) -> Any:
        """Read a value of another kind; for subclasses to extend."""
        raise RefusedError(f"{self.prefix}{name} is of an unknown kind")

    def part(self, node: Node, key: str) -> Node:
        """Return an entry that must exist."""
        require(isinstance(node, dict) and key in node, f"{self.prefix or 'the state '}lacks {key!r}")
        return node[key]

    def array(self, name: str, node: Node) -> NDArray[Any]:
        """Read what :meth:`Writer.array` wrote, in its type and memory order."""
        full = self.prefix + name
        require(isinstance(node, dict) and node.get("kind") in ("array", "text"), f"{full} is not an array")
        # Each tensor belongs to one value: a small forged file must not become many large arrays.
        require(full in self.tensors and full not in self.used, f"tensor {full!r} is missing")
        self.used.add(full)
        tensor = self.tensors[full]
        if node["kind"] == "text":
            return _text(full, node.get("code"), tensor)
        dtype, order = node.get("dtype"), node.get("order")
        require(order in ("C", "F"), f"{full} has no memory order")
        stored = tensor.dtype.name
        # Single precision may be widened; nothing else is converted.
        fits = stored == dtype or (stored, dtype) == ("float32", "float64")
        require(fits, f"tensor {full!r} has the type {stored}, not {dtype!r}")
        with np.errstate(invalid="ignore"):  # signalling NaNs are found with all others, when the values are checked
            tensor = tensor.astype(str(dtype), copy=False)
        return tensor.T if order == "F" else tensor

    def sparse(self, name: str, node: Node) -> Any:
        """Read what :meth:`Writer.sparse` wrote; indices are checked before SciPy sees them."""
        full = self.prefix + name
        require(isinstance(node, dict) and node.get("kind") == "csr", f"{full} is not a sparse matrix")
        shape = self.part(node, "shape")
        sizes = isinstance(shape, list) and len(shape) == 2
        require(sizes and all(type(size) is int and 0 <= size < 2**63 for size in shape), f"{full} has no valid shape")
        parts = self.within(name)
        data, indices, indptr = (parts.array(part, self.part(node, part)) for part in ("data", "indices", "indptr"))
        _check_compressed_rows(full, data, indices, indptr, shape)
        container = sparse.csr_matrix if node.get("container") == "matrix" else sparse.csr_array
        return container((data, indices, indptr), shape=tuple(shape))


def _text(name: str, code: Any, tensor: NDArray[Any]) -> NDArray[Any]:
    require(code in ("U", "S") and tensor.dtype == TEXT_UNITS[code], f"{name} is not text")
    require(tensor.ndim > 0 and tensor.shape[-1] > 0, f"{name} is text of length 0")
    # NumPy does not check code points: larger ones would fail when the text is used.
    require(code == "S" or bool((tensor <= 0x10FFFF).all()), f"{name} has numbers that are not characters")
    return np.ascontiguousarray(tensor).reshape(-1).view(f"={code}{tensor.shape[-1]}").reshape(tensor.shape[:-1])


def _check_compressed_rows(name: str, data: Any, indices: Any, indptr: Any, shape: list[int]) -> None:
    one_dimensional = data.ndim == indices.ndim == indptr.ndim == 1
    index_types = indices.dtype.name in ("int32", "int64") and indptr.dtype.name in ("int32", "int64")
    require(one_dimensional and index_types and data.dtype.kind in "biuf", f"{name} is not a sparse matrix")
    require(len(indptr) == shape[0] + 1 and len(data) == len(indices), f"{name} has arrays of the wrong length")
    # Compare instead of subtracting: the difference of forged numbers may overflow.
    ordered = indptr[0] == 0 and indptr[-1] == len(data) and bool((indptr[:-1] <= indptr[1:]).all())
    require(bool(ordered), f"{name} has row starts out of order")
    inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < shape[1])
    require(bool(inside), f"{name} has column indices out of range")


Tensors = dict[str, NDArray[Any]]

KEY = "distreduce"  # a single key: safetensors writes several in random order, and equal models should give equal files
MAX_BYTES = 8 * 2**30
# Parsed JSON takes up to about twenty times its length in memory: at most half a gigabyte for this much text.
MAX_JSON = 16 * 2**20
MAX_HEADER = 2 * MAX_JSON + 2**20  # the JSON with every quote escaped, and one line per tensor
MAX_DEPTH = 16
UNREADABLE = (OSError, ValueError, OverflowError, RecursionError, MemoryError, SafetensorError)


def write_file(path: FilePath, document: Mapping[str, Any], tensors: Tensors, *, mark: str = "distreduce") -> None:
    """Write a file atomically; until it is complete, its name is hidden and begins with `mark`.

    Raises UnsavableModelError if the JSON of the document is too long, ModelSaveError if the file could not be written.
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
def open_file(path: FilePath, max_bytes: int | None = None) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the JSON of a file and a handle for :func:`read_tensors`; raise one of `UNREADABLE` for other files."""
    _check_sizes(path, MAX_BYTES if max_bytes is None else max_bytes)
    with safe_open(path, framework="numpy") as handle:
        metadata = handle.metadata() or {}
        require(KEY in metadata, "it is a safetensors file, but not one of distreduce")
        yield _parse(metadata[KEY]), handle


def _check_sizes(path: FilePath, max_bytes: int) -> None:
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
        # safetensors panics if it gets no memory, and the panic is not an Exception: ask for as much first.
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
