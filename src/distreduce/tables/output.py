"""Write the files and folders of `--out` atomically: complete, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TextIO

from distreduce._utils.files import exclusive, replacing, temporary_path
from distreduce.exceptions import InvalidInputError


def is_standard(path: Path) -> bool:
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
def whole_folder(
    path: Path, known: Collection[str], *, overwrite: bool, say: Callable[[str], object] = lambda line: None
) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path` at the end; it is removed if an exception occurs.

    A folder is replaced only if all its files have `known` names, at the beginning and at the end: nobody should lose
    what we did not write. A lock keeps a second process away. `say` gets a sentence about what a killed run left.
    """
    check_folder(path, known, overwrite=overwrite)
    hidden = _hidden_path(path, "new")
    with ExitStack() as stack:
        with _writing(path):
            stack.enter_context(_locking(path))
            for line in _recover(path, known):
                say(line)
            check_folder(path, known, overwrite=overwrite)  # the recovered folder counts
            hidden.mkdir()
        stack.callback(shutil.rmtree, hidden, ignore_errors=True)
        yield hidden
        _put_in_place(hidden, path, known, overwrite=overwrite)


def recover_folder(path: Path, known: Collection[str]) -> list[str]:
    """Bring back the folder that a killed run had moved away, and remove what it left; return what was done."""
    if not any(_left_overs(path, "old")):
        return []
    try:
        with _locking(path):
            return _recover(path, known)
    except (OSError, InvalidInputError):  # another process is at work there, or the place is read-only
        return []


def _put_in_place(hidden: Path, path: Path, known: Collection[str], *, overwrite: bool) -> None:
    """Rename the new folder; if that would take what others wrote meanwhile, rename it to a free name and raise."""
    old = _hidden_path(path, "old")
    try:
        check_folder(path, known, overwrite=overwrite)
        if path.exists():
            # Rename twice rather than delete first: the old folder is lost only once the new one stands.
            os.rename(path, old)
            _reject_others(old, known, path)  # nobody can add to it under this name
        try:
            os.rename(hidden, path)  # fails if there is a folder with files again
        except OSError as error:
            if not path.exists():
                raise
            raise InvalidInputError(f"The folder {path} exists already.") from error
    except InvalidInputError as error:
        kept = next(free for free in (Path(f"{path}-{n}") for n in count(2)) if not os.path.lexists(free))
        os.rename(hidden, kept)
        raise InvalidInputError(f"{error} It changed during the fit, whose results are in {kept}.") from error
    finally:
        if old.exists() and not path.exists():
            os.rename(old, path)  # give the old folder back
    _remove(old, known)


def _recover(path: Path, known: Collection[str]) -> list[str]:
    """Do what :func:`recover_folder` says; the caller holds the lock, so no process is at work on these folders."""
    done = []
    for old in _left_overs(path, "old"):
        if not os.path.lexists(path):
            os.rename(old, path)
            done.append(f"An earlier run was killed while it replaced {path}: the folder is back as it was.")
        else:
            _remove(old, known)
    for new in _left_overs(path, "new"):
        _remove(new, known)
        done.append(f"Removed {new}, which an earlier run left when it was killed.")
    return done


def _hidden_path(path: Path, mark: str) -> Path:
    return temporary_path(path, f"{os.path.basename(os.path.abspath(path))}.{mark}")


def _left_overs(path: Path, mark: str) -> Iterator[Path]:
    path = Path(os.path.abspath(path))
    pattern = re.compile(re.escape(f".{path.name}.{mark}-") + r"[0-9a-f]{16}\.tmp")
    if path.parent.is_dir():
        yield from sorted(place for place in path.parent.iterdir() if pattern.fullmatch(place.name) and place.is_dir())


def _locking(path: Path) -> AbstractContextManager[None]:
    path = Path(os.path.abspath(path))
    busy = InvalidInputError(f"Another process is writing to {path}; wait for it, or name another --out.")
    return exclusive(path.parent / f".{path.name}.lock", busy)


def _remove(folder: Path, known: Collection[str]) -> None:
    """Remove files that we wrote, and the folder if nothing else is in it."""
    with suppress(OSError):
        for place in folder.iterdir():
            if place.name in known and not place.is_dir():
                place.unlink()
        folder.rmdir()


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
    _reject_others(path, known, path)


def _reject_others(folder: Path, known: Collection[str], name: Path) -> None:
    others = sorted(entry.name for entry in folder.iterdir() if entry.name not in known or not entry.is_file())
    if others:
        raise InvalidInputError(
            f"The folder {name} holds {others[0]!r}, which distreduce did not write: it is left alone. "
            "Name another --out."
        )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); name another --out.") from error
