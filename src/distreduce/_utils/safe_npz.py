"""NPZ archives from anybody: what they would take in memory is known before anything is unpacked."""

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
# Bytes in memory for each byte of a file, beyond a quarter of a gigabyte: a zip of a megabyte can hold a gigabyte.
RATIO = 100
ALWAYS = 2**28
MOST_MEMBERS = 10_000
# Whatever NumPy, zipfile and the decompressors raise for an archive that is damaged or forged.
DAMAGE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError, TypeError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError,
)  # fmt: skip


def allowed_bytes(path: Path) -> int:
    """What the content of a file may take in memory."""
    return min(LARGEST, ALWAYS + RATIO * os.path.getsize(path))


def read_arrays(path: Path, names: Sequence[str] | None = None, largest: int | None = None) -> Arrays:
    """Arrays of an NPZ file, all or those of these names; never a pickle.

    Raises
    ------
    one of `DAMAGE`
        It is no archive, it is damaged, or it would take more than `largest` bytes (:func:`allowed_bytes` by default).
    """
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no zip archive")
    with zipfile.ZipFile(path) as archive:
        _check(archive, allowed_bytes(path) if largest is None else largest)
    with np.load(path, allow_pickle=False) as store:
        found = {name: store[name] for name in (store.files if names is None else names)}
    strangers = [name for name, value in found.items() if not isinstance(value, np.ndarray)]
    if strangers:  # NumPy gives the bytes of a member that is no array
        raise ValueError(f"its member {strangers[0]!r:.100} is no array")
    return found


def _check(archive: zipfile.ZipFile, largest: int) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} members; at most {MOST_MEMBERS} are read")
    unpacked = sum(member.file_size for member in members)
    if unpacked > largest:
        raise ValueError(f"it would unpack to {unpacked} bytes, more than the {largest} that are allowed for its size")
    for member in members:
        with archive.open(member) as stream:
            _check_array(stream, member)


def _check_array(stream: IO[bytes], member: zipfile.ZipInfo) -> None:
    """NumPy takes the memory that a header asks for before it looks whether the numbers are there."""
    if stream.read(6) != b"\x93NUMPY":
        raise ValueError(f"its member {member.filename!r:.100} is no array")
    wide = stream.read(2)[:1] > b"\x01"
    (length,) = struct.unpack("<I" if wide else "<H", stream.read(4 if wide else 2))
    header = ast.literal_eval(stream.read(min(length, 10_000)).decode("latin1").strip())  # NumPy's own limit
    count = 1
    for side in header["shape"]:
        count *= int(side)
    kind = np.dtype(header["descr"])
    if not kind.hasobject and (count < 0 or count * max(kind.itemsize, 1) > member.file_size):  # objects: NumPy refuses
        raise ValueError(f"its member {member.filename!r:.100} claims more numbers than it has")
