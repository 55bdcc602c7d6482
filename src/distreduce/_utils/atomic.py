"""Write files atomically: readers see the old file or the complete new one, never a part."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def temporary_path(path: Path, mark: str | None = None) -> Path:
    """Return an unused hidden path in the folder of `path`.

    Its name is ``.{mark}-{random}.tmp``, so that left-overs of a killed process can be found; `mark` is the name of
    `path` by default.
    """
    path = Path(os.path.abspath(path))
    return path.parent / f".{mark or path.name}-{secrets.token_hex(8)}.tmp"


@contextmanager
def replacing(path: str | os.PathLike[str], *, mark: str | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to, which then replaces `path` atomically; removed if an exception occurs.

    Symbolic links are followed, and the access rights of a file that is replaced are kept. The file and its folder are
    flushed to disk.

    Raises
    ------
    OSError
        `path` is a folder or a device, is write-protected, or cannot be written.
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
