"""Files and folders that are written whole or not at all."""

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
    """Whether a path stands for standard output."""
    return str(path) in ("-", "/dev/stdout")


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[Path | TextIO]:
    """A hidden file beside `path` to write to; it takes the place of `path` if all goes well, else it goes away.

    Standard output, pipes and devices are written to at once: nobody wants a file in their place. Of a link, the file
    that it points to is replaced.
    """
    if path.is_dir():
        raise InvalidInputError(f"--out {path} is a folder; name a file.")
    if is_standard(path):
        yield sys.stdout
        return
    if path.exists() and not path.is_file():
        with _writing(path):
            stream = path.open("w", encoding="utf-8", newline="")
        with stream:
            yield stream
        return
    if path.exists() and not overwrite:
        raise InvalidInputError(f"{path} exists already; give --overwrite to replace it, or another --out.")
    with replacing(path) as hidden:
        with _writing(path):
            hidden.touch(exist_ok=False)
        yield hidden


@contextmanager
def whole_folder(path: Path, known: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """A hidden folder beside `path` to write to, which becomes `path` if all goes well; `path` is untouched till then.

    A folder that is replaced must hold nothing but files with `known` names: nobody should lose what we did not write.
    """
    check_folder(path, known, overwrite=overwrite)
    hidden, old = temporary_path(path), temporary_path(path)
    try:
        with _writing(path):
            hidden.mkdir()
        yield hidden
        if path.exists():
            os.rename(path, old)
        try:
            os.rename(hidden, path)
        except OSError:
            if old.exists():
                os.rename(old, path)
            raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_folder(path: Path, known: Collection[str], *, overwrite: bool) -> None:
    """Refuse a place where the folder must not be written."""
    if not os.path.lexists(path):
        return
    if not path.is_dir() or path.is_symlink():
        raise InvalidInputError(f"--out {path} is no folder; name another.")
    if Path.cwd().is_relative_to(path.resolve()):
        raise InvalidInputError(f"--out {path} is the folder that you are in, or above it; name another.")
    if not overwrite:
        raise InvalidInputError(f"The folder {path} exists already; give --overwrite to replace it, or another --out.")
    strangers = sorted(entry.name for entry in path.iterdir() if entry.name not in known or not entry.is_file())
    if strangers:
        raise InvalidInputError(
            f"The folder {path} holds {strangers[0]!r}, which distreduce did not write: it is left alone. "
            "Name another --out."
        )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"Nothing can be written to {path} ({error.strerror}); name another --out.") from error
