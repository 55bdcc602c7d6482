"""Read NPZ archives safely: the memory that a file needs is checked before anything is unpacked."""

from __future__ import annotations

import ast
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
LARGEST = 8 * 2**30
# Bytes in memory per byte of a file, beyond a quarter of a gigabyte: a zip of one megabyte can hold a gigabyte.
RATIO = 100
ALWAYS = 2**28
MOST_MEMBERS = 10_000
# All that NumPy, zipfile and the decompressors raise for a damaged or forged archive.
DAMAGE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError, TypeError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError,
)  # fmt: skip


def allowed_bytes(path: Path) -> int:
    """Return how much memory the content of a file may take."""
    return min(LARGEST, ALWAYS + RATIO * os.path.getsize(path))


def read_arrays(path: Path, names: Sequence[str] | None = None, largest: int | None = None) -> Arrays:
    """Return the arrays of an NPZ file, all or some by name; pickled objects are rejected.

    Raises
    ------
    one of `DAMAGE`
        The file is not an archive, is damaged, or needs more than `largest` bytes (:func:`allowed_bytes` by default).
    """
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a zip archive")
    # Check all headers first: np.load allocates before it reads.
    with zipfile.ZipFile(path) as archive:
        _check(archive, allowed_bytes(path) if largest is None else largest)
    with np.load(path, allow_pickle=False) as store:
        found = {name: store[name] for name in (store.files if names is None else names)}
    strangers = [name for name, value in found.items() if not isinstance(value, np.ndarray)]
    if strangers:  # NumPy returns the bytes of a member that is not an array
        raise ValueError(f"its member {strangers[0]!r:.100} is not an array")
    return found


def _check(archive: zipfile.ZipFile, largest: int) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} members; at most {MOST_MEMBERS} are read")
    unpacked = sum(member.file_size for member in members)
    if unpacked > largest:
        raise ValueError(f"it would unpack to {unpacked} bytes, more than the {largest} allowed for its size")
    for member in members:
        with archive.open(member) as stream:
            _check_array(stream, member)


def _check_array(stream: IO[bytes], member: zipfile.ZipInfo) -> None:
    """Check the header: NumPy allocates the memory that it asks for before it looks whether the values exist."""
    if stream.read(6) != b"\x93NUMPY":
        raise ValueError(f"its member {member.filename!r:.100} is not an array")
    wide = stream.read(2)[:1] > b"\x01"  # from version 2 on, the length has four bytes
    (length,) = struct.unpack("<I" if wide else "<H", stream.read(4 if wide else 2))
    header = ast.literal_eval(stream.read(min(length, 10_000)).decode("latin1").strip())  # NumPy's own limit
    count = 1
    # As Python integers, which do not overflow.
    for side in header["shape"]:
        count *= int(side)
    kind = np.dtype(header["descr"])
    if not kind.hasobject and (count < 0 or count * max(kind.itemsize, 1) > member.file_size):  # NumPy rejects objects
        raise ValueError(f"its member {member.filename!r:.100} claims more values than it has")
