"""Where finished cells are kept: a file of JSON lines an experiment, a line a cell.

A line is written with one call and forced to the disk, so that a run killed at any point loses at most the cells it was
computing; the torn line that a crash can leave is dropped by the next run. Lines sort and diff well in git.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distreduce._utils.lock import exclusive
from distreduce.exceptions import StoreError
from distreduce_paper.cell import Cell
from distreduce_paper.record import Record, parsed

MAX_BYTES = 2**28  # of a file; all experiments of the paper take three megabytes


class Store:
    """The records of a folder. Of several records of one cell the last one counts."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def path(self, experiment: str) -> Path:
        """The file of an experiment, which is in the folder whatever a record calls its experiment."""
        name = f"{experiment}.jsonl"
        if Path(name).name != name or "\\" in name or "\0" in name:
            raise StoreError(f"{experiment!r:.100} cannot name a file; an experiment's name has no slashes.")
        return self.folder / name

    def records(self, experiment: str) -> list[Record]:
        """The latest record of each cell, in the order in which the cells were first finished."""
        latest = {Cell.from_dict(record).key: record for record in self._lines(experiment)}
        return list(latest.values())

    def finished(self, experiment: str, *, also_failed: bool = True) -> set[str]:
        """Keys of the cells with a result, and with `also_failed` of those with an error."""
        return {
            Cell.from_dict(record).key
            for record in self.records(experiment)
            if also_failed or "error" not in record
        }  # fmt: skip

    def add(self, record: Record) -> None:
        """Append a record so that it is there wholly or not at all."""
        line = (json.dumps(record, sort_keys=True, allow_nan=True) + "\n").encode()
        path = self.path(record["experiment"])
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _append(descriptor, line)
        except OSError as error:
            raise StoreError(f"A record could not be added to {path}: {error}; run the same command again.") from error
        finally:
            os.close(descriptor)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for one run: makes it if needed, drops torn lines, and refuses a second writer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        busy = StoreError(
            f"Another run is writing to {self.folder}; wait for it to end, or give another folder with --results."
        )
        with exclusive(self.folder / ".lock", busy):
            for path in self.folder.glob("*.jsonl"):
                _drop_torn_line(path)
            yield

    def _lines(self, experiment: str) -> Iterator[Record]:
        path = self.path(experiment)
        if not path.exists():
            return
        for number, line in enumerate(_content(path).split(b"\n")[:-1], start=1):
            try:
                yield parsed(line)
            except ValueError as error:
                raise StoreError(
                    f"Line {number} of {path} is not a record ({error!s:.200}); delete that line, and its cell is run "
                    "again."
                ) from error


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); give another folder with --results.") from error
    if len(content) > MAX_BYTES:
        raise StoreError(f"{path} has more than {MAX_BYTES} bytes; give another folder with --results.")
    return content


def _append(descriptor: int, line: bytes) -> None:
    before = os.fstat(descriptor).st_size
    if os.write(descriptor, line) < len(line):  # a full disk takes a part
        os.ftruncate(descriptor, before)
        raise OSError("the disk is full")
    os.fsync(descriptor)


def _drop_torn_line(path: Path) -> None:
    content = _content(path)
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
