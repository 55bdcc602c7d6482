"""Write the files and folders of `--out` atomically: complete, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from distreduce._utils.atomic import replacing, temporary_path
from distreduce.exceptions import InvalidInputError


def is_standard(path: Path) -> bool:
    """Return whether a path means standard output."""
    return str(path) in ("-", "/dev/stdout")


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[Path | TextIO]:
    """Yield a temporary file that replaces `path` at the end; it is removed if an exception occurs.

    Standard output, pipes and devices are written to directly. If `path` is a link, its target is replaced.
    """
    if path.is_dir():
        raise InvalidInputError(f"--out {path} is a folder; name a file.")
    if is_standard(path):
        yield sys.stdout
        return
    if path.exists() and not path.is_file():
        # Pipes and devices (/dev/fd/3) cannot be replaced by a rename.
        with _writing(path):
            stream = path.open("w", encoding="utf-8", newline="")
        with stream:
            yield stream
        return
    if path.exists() and not overwrite:
        raise InvalidInputError(f"{path} exists already; give --overwrite to replace it, or another --out.")
    with replacing(path) as hidden:
        with _writing(path):
            hidden.touch(exist_ok=False)  # fail now, before the work, if the folder is not writable
        yield hidden


@contextmanager
def whole_folder(path: Path, known: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path` at the end; it is removed if an exception occurs.

    A folder is replaced only if all its files have `known` names: nobody should lose what we did not write.
    """
    check_folder(path, known, overwrite=overwrite)
    hidden, old = temporary_path(path), temporary_path(path)
    try:
        with _writing(path):
            hidden.mkdir()
        yield hidden
        if path.exists():
            # Rename twice rather than delete first: the old folder is lost only once the new one stands.
            os.rename(path, old)
        try:
            os.rename(hidden, path)
        except OSError:
            if old.exists():
                os.rename(old, path)  # give the old folder back
            raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_folder(path: Path, known: Collection[str], *, overwrite: bool) -> None:
    """Raise InvalidInputError if the folder must not be written there."""
    if not os.path.lexists(path):  # a broken link exists, too
        return
    if not path.is_dir() or path.is_symlink():
        raise InvalidInputError(f"--out {path} is not a folder; name another.")
    if Path.cwd().is_relative_to(path.resolve()):
        raise InvalidInputError(f"--out {path} is the folder that you are in, or above it; name another.")
    if not overwrite:
        raise InvalidInputError(f"The folder {path} exists already; give --overwrite to replace it, or another --out.")
    others = sorted(entry.name for entry in path.iterdir() if entry.name not in known or not entry.is_file())
    if others:
        raise InvalidInputError(
            f"The folder {path} holds {others[0]!r}, which distreduce did not write: it is left alone. "
            "Name another --out."
        )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); name another --out.") from error
