"""Files that are there wholly or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def beside(path: Path) -> Path:
    """A hidden name in the folder of `path` that nobody else has."""
    path = Path(os.path.abspath(path))
    return path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden path to write to; on the disk, it takes the place of `path`, and after an error it is gone."""
    hidden = beside(path)
    try:
        yield hidden
        with hidden.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)
