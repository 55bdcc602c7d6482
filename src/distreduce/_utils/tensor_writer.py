"""Write values as JSON and tensors: numbers, text, arrays and sparse matrices."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce.exceptions import UnsavableModelError

if TYPE_CHECKING:
    from typing_extensions import Self

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
        """Return a writer for the parts of a value."""
        return replace(self, prefix=f"{self.prefix}{name}.")

    def value(self, name: str, value: Any) -> Node:
        """Write any value that a parameter may have; arrays stay exact."""
        # Plain Python types first: NumPy scalars and paths are not JSON.
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value is None or isinstance(value, bool | int | float | str):
            return self._scalar(name, value)
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

    def _scalar(self, name: str, value: Any) -> Node:
        if isinstance(value, float) and not math.isfinite(value):
            raise UnsavableModelError(f"{self.prefix}{name} is {value}; a file can only hold finite numbers.")
        return str(value) if isinstance(value, str) else value  # a subclass of str becomes a str

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
            raise UnsavableModelError(
                f"{self.prefix}{name} is a sparse array that is not two-dimensional; give a dense one."
            )
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
