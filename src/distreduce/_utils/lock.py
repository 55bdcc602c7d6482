"""A lock between processes, which the operating system releases when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.1  # seconds between two attempts


@contextmanager
def exclusive(path: Path, error: Exception, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`, in a folder that exists, while the block runs, and remove it afterwards.

    `error` is raised if another process still holds the lock after `wait` seconds.
    """
    end = time.monotonic() + wait
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT)
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
