"""One input given to one reader: accepted, refused by name, or a fault of ours."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from hostile.readers import Reader
from hostile.watch import watching

from distreduce.exceptions import DistReduceError

ACCEPTED = "accepted"


class HostileFileError(AssertionError):
    """A reader did what it must not do with a file from a stranger."""


def outcome(reader: Reader, raw: bytes, folder: Path) -> str:
    """`ACCEPTED` or the name of the error; raises for an error without a name and for anything but reading."""
    path = folder / reader.file
    path.write_bytes(raw)
    with watching(folder if reader.writes else None) as seen, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            reader.read(path)
            found = ACCEPTED
        except DistReduceError as error:
            found = type(error).__name__
        except Exception as error:
            raise HostileFileError(f"{type(error).__name__}: {error!s:.300}") from error
    if seen:
        raise HostileFileError(f"besides reading: {seen[:3]}")
    return found


def warm_up(reader: Reader, folder: Path) -> None:
    """Read every original once, so that imports are done before anybody watches."""
    for raw in reader.originals():
        path = folder / reader.file
        path.write_bytes(raw)
        with suppress(DistReduceError):
            reader.read(path)
