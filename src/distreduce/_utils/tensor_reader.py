"""Read values from JSON and tensors. Everything is checked: a file may come from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.tensor_writer import TEXT_UNITS, Node

if TYPE_CHECKING:
    from typing_extensions import Self


class RefusedError(ValueError):
    """A file does not hold what it must; callers raise a ModelFileError or CheckpointError that names the file."""


def require(condition: bool, reason: str) -> None:
    """Raise RefusedError unless the condition holds."""
    if not condition:
        raise RefusedError(reason)


@dataclass(frozen=True)
class Reader:
    """Turns JSON and tensors back into values, and remembers which tensors were used."""

    tensors: Mapping[str, NDArray[Any]]
    used: set[str] = field(default_factory=set)
    prefix: str = ""

    def within(self, name: str) -> Self:
        """Return a reader for the parts of a value."""
        return replace(self, prefix=f"{self.prefix}{name}.")

    def unused(self) -> list[str]:
        """Return the names of tensors that no value used."""
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
        if not isinstance(node, dict) or node.get("kind") != "csr":
            raise RefusedError(f"{full} is not a sparse matrix")
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
