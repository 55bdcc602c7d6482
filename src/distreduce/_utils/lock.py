"""One process at a time, for as long as it lives."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distreduce.exceptions import DownloadError

LONGEST_WAIT = 600.0  # seconds
PAUSE = 0.1


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for another process to let go of it.

    The system frees the lock of a process that dies. The file is removed by its last holder; one that waited for a
    file that is gone by now takes the new one.
    """
    end = time.monotonic() + LONGEST_WAIT
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT)
        if _locked(handle) and _same_file(handle, path):
            try:
                yield
            finally:
                _release(handle, path)
            return
        os.close(handle)
        if time.monotonic() > end:
            raise DownloadError(
                f"another process has been fetching it for {LONGEST_WAIT:g} s (lock {path}); end it and try again"
            )
        time.sleep(PAUSE)


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
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
        os.close(handle)  # an open file cannot be removed; one that somebody waits for is left to them
        with suppress(PermissionError):
            path.unlink(missing_ok=True)

else:
    import fcntl

    def _locked(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a network file system without locks: files are replaced whole, so two may work at once
            return True
        return True

    def _release(handle: int, path: Path) -> None:
        path.unlink(missing_ok=True)  # while it is still ours: later it might be another's
        os.close(handle)
