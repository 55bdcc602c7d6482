"""Files: atomic writes, a lock between processes, and NPZ archives whose size is checked before unpacking."""

from __future__ import annotations

import ast
import lzma
import math
import os
import secrets
import stat
import struct
import sys
import time
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def temporary_path(path: Path, mark: str | None = None) -> Path:
    """Return an unused hidden path in the folder of `path`.

    Its name, ``.{mark}-{random}.tmp``, tells the left-overs of a killed process; `mark` is by default that of `path`.
    """
    path = Path(os.path.abspath(path))
    return path.parent / f".{mark or path.name}-{secrets.token_hex(8)}.tmp"


@contextmanager
def replacing(path: str | os.PathLike[str], *, mark: str | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to, which then replaces `path` atomically; removed if an exception occurs.

    Symbolic links are followed, and the access rights of a file that is replaced are kept. The file and its folder are
    flushed to disk. Raises OSError if `path` is a folder or a device, is write-protected, or cannot be written.
    """
    target = Path(os.path.realpath(path))
    if os.path.lexists(target):
        if not target.is_file():
            raise FileExistsError(f"{os.fspath(path)!r} exists and is not a file")
        # os.replace needs write access to the folder only: it would replace a protected file.
        if not os.access(target, os.W_OK):
            raise PermissionError(f"{os.fspath(path)!r} is write-protected")
    temporary = temporary_path(target, mark)
    try:
        yield temporary
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        _flush(temporary)  # before the rename, or a crash could leave the name with an empty file
        os.replace(temporary, target)
    finally:
        with suppress(OSError):  # it is gone if all went well
            os.unlink(temporary)
    with suppress(OSError):  # Windows cannot open folders
        _flush(target.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


PAUSE = 0.1  # seconds between two attempts


@contextmanager
def exclusive(path: Path, error: Exception, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`, in a folder that exists, while the block runs, and remove it afterwards.

    `error` is raised if another process still holds the lock after `wait` seconds. A link is not followed.
    """
    end = time.monotonic() + wait
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        # The previous holder may have removed the file between the two calls: then try the new one.
        if _locked(handle) and _same_file(handle, path):
            try:
                yield
            finally:
                _release(handle, path)
            return
        os.close(handle)
        if time.monotonic() >= end:
            raise error
        time.sleep(PAUSE)


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:  # the previous holder has just removed it
        return False


if sys.platform == "win32":
    import msvcrt

    def _locked(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(handle: int, path: Path) -> None:
        os.close(handle)  # Windows cannot remove an open file; one that another process waits for is left to it
        with suppress(PermissionError):
            path.unlink(missing_ok=True)

else:
    import fcntl

    def _locked(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a network file system without locks: atomic files let two work at once
            return True
        return True

    def _release(handle: int, path: Path) -> None:
        path.unlink(missing_ok=True)  # before closing: afterwards it may belong to another process
        os.close(handle)


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

    Raises one of `DAMAGE` if the file is damaged, is not an archive, or needs more than `largest` bytes of memory.
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
    count = math.prod(int(side) for side in header["shape"])  # Python's integers do not overflow
    kind = np.dtype(header["descr"])
    if not kind.hasobject and (count < 0 or count * max(kind.itemsize, 1) > member.file_size):  # NumPy rejects objects
        raise ValueError(f"its member {member.filename!r:.100} claims more values than it has")
