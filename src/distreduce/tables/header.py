"""The first record of separated text: which sign separates, what the columns are called, and what stands before it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from distreduce.exceptions import InvalidInputError
from distreduce.tables.files import refuse_numbers_as_names

LONGEST = 2**24  # characters up to the end of the names
MOST_COLUMNS = 100_000  # pandas takes half a minute for half as many, and seven for twice as many
SAMPLE = 2**16  # characters after the names that the decimal sign is told from
SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class Header:
    """Where the names are, and the first rows below them; `skipped` are the records above."""

    separator: str
    skipped: int
    names: tuple[str, ...]
    notes: tuple[str, ...]
    rows: list[list[str]]


def find_header(text: str, where: str, *, tabs_first: bool) -> Header:
    """Look at the start of a file, `LONGEST` characters of it; refuses what has no column names."""
    if not text.strip():
        raise InvalidInputError(f"{where} is empty.")
    line = re.match(r'"?sep=([,;\t|])"?[ ,;\t|]*(?:\r\n|\r|\n)', text, re.IGNORECASE)  # Excel's own first line
    body = text[line.end() :] if line else text
    separator = line[1] if line else _separator(body, tabs_first=tabs_first)
    stream = io.StringIO(body, newline="")
    skipped, found = _first(_records(stream, separator))
    if found is None:
        raise InvalidInputError(f"{where} has no column names in its first line, nor any values.")
    if stream.tell() == len(body) and len(text) == LONGEST:
        raise InvalidInputError(f"{where} has more than {LONGEST:,} characters before its first row of values.")
    if len(found) > MOST_COLUMNS:
        raise InvalidInputError(f"{where} has {len(found):,} columns; at most {MOST_COLUMNS:,} can be read.")
    rows = _sample(stream, separator)
    _refuse_comment(found, rows, where)
    refuse_numbers_as_names(found, where)
    names, notes = unique_names([cell.strip() for cell in found])
    return Header(separator, skipped + bool(line), tuple(names), tuple(notes), rows)


def _records(stream: io.StringIO, separator: str) -> Iterator[list[str]]:
    return csv.reader(stream, delimiter=separator, skipinitialspace=True)


def _first(records: Iterator[list[str]]) -> tuple[int, list[str] | None]:
    """The first record with anything in it, and how many are before it."""
    for number, record in enumerate(records):
        if "".join(record).strip(SEPARATORS + " \r\n"):
            return number, record
    return 0, None


def _separator(text: str, *, tabs_first: bool) -> str:
    """The sign that makes the most of the first record; a line may break within quotes, so that no line is enough."""
    cells = {sign: _cells(text, sign) for sign in SEPARATORS}
    if tabs_first and cells["\t"] > 1:
        return "\t"
    return max(SEPARATORS, key=cells.__getitem__)  # the first among equals


def _cells(text: str, separator: str) -> int:
    try:
        return len(_first(_records(io.StringIO(text, newline=""), separator))[1] or ())
    except csv.Error:  # a quote that never ends, for this sign
        return 0


def _sample(stream: io.StringIO, separator: str) -> list[list[str]]:
    """Up to a thousand records below the names; the last one is left out if it was cut."""
    text = stream.read(SAMPLE)
    rows = list(islice(_records(io.StringIO(text, newline=""), separator), 1000))
    return rows[:-1] if len(text) == SAMPLE and len(rows) > 1 else rows


def _refuse_comment(found: list[str], rows: list[list[str]], where: str) -> None:
    """A sign # may begin a name as well: a comment is what has other cells than every row below it."""
    if found[0].startswith("#") and (len(found) == 1 or all(len(row) != len(found) for row in rows)):
        raise InvalidInputError(
            f"{where} begins with a comment ({found[0]!r:.60}); delete the lines above the names of the columns."
        )


def unique_names(found: list[str]) -> tuple[list[str], list[str]]:
    """Names as they can be asked for: none empty, none twice; and notes on those that were changed."""
    names: dict[str, None] = {}
    notes = []
    given, counts = {*found}, dict[str, int]()  # a line of ten thousand equal names must not take minutes
    for position, name in enumerate(found, start=1):
        wanted = name or f"column {position}"
        unique, count = wanted, counts.get(wanted, 1)
        while unique in names or (count > 1 and unique in given):
            count += 1
            unique = f"{wanted} ({count})"
        counts[wanted] = count
        if name and unique != name:
            notes.append(f"{name!r} is the name of several columns; column {position} is called {unique!r} here.")
        names[unique] = None
    return list(names), notes
