"""Our own format of a set on disk: a CSV table or an NPZ of arrays, told by a sha256 over its values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.atomic import replacing
from distreduce._utils.safe_npz import DAMAGE, Arrays, read_arrays
from distreduce.exceptions import DatasetFileError

LARGEST = 64 * 2**20  # bytes an NPZ may unpack to: the largest set has 24 MB


def fingerprint(arrays: Arrays) -> str:
    """sha256 over names, shapes, types and little-endian bytes, so that container and compression do not matter."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        plain = np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.str} {plain.shape}\n".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()


def read_file(path: Path, names: Sequence[str]) -> Arrays:
    """The arrays of these names (NPZ), or one array ``table`` with these columns (CSV)."""
    try:
        return {"table": _read_table(path, names)} if path.suffix == ".csv" else read_arrays(path, names, LARGEST)
    except DAMAGE as error:
        raise DatasetFileError(f"{path} cannot be read ({type(error).__name__}: {error}).") from error


def _read_table(path: Path, columns: Sequence[str]) -> NDArray[Any]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    if header.split(",") != list(columns):
        raise ValueError(f"its columns are not {', '.join(columns)}")
    return np.array([line.split(",") for line in lines], dtype=np.float64)


def write_file(path: Path, arrays: Arrays, names: Sequence[str]) -> None:
    """Write a file that :func:`read_file` reads, under a hidden name first: a reader never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as hidden, hidden.open("xb") as stream:
        _write(stream, arrays, names)


def _write(stream: IO[bytes], arrays: Arrays, names: Sequence[str]) -> None:
    if "table" not in arrays:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # the stubs take a name for allow_pickle
        return
    rows = [",".join(names), *(",".join(map(repr, row)) for row in arrays["table"].tolist())]
    stream.write(("\n".join(rows) + "\n").encode())  # repr is the shortest text that reads back to the same number
