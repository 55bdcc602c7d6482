"""Separated text as people have it: any usual separator, decimal comma, encoding and header."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from distreduce.datasets.own_files import EXACT, damage_named, refuse_numbers_as_names
from distreduce.exceptions import DatasetFileError, InvalidInputError

SAMPLE = 2**16  # characters from the start of the file that the separator and the decimal sign are told from
MISSING = ("?", "-", ".")  # besides pandas' own: empty, NA, NaN, null, None, …
MAGIC = {b"PK": "an Excel workbook or a zip archive", b"PAR1": "a Parquet file", b"\x1f\x8b": "a gzip archive",
         b"\x89HDF": "an HDF5 file", b"\xd0\xcf": "an old Excel workbook", b"%PDF": "a PDF"}  # fmt: skip


@dataclass(frozen=True)
class TextFile:
    """How to read a .csv or .tsv file; `notes` say what was not as expected."""

    path: Path
    encoding: str
    separator: str
    decimal: str
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> TextFile:
        """Look at a file: refuses what is no text, what is empty and what has no column names."""
        encoding = _encoding(path)
        with damage_named(path), path.open(encoding=encoding, newline="") as stream:
            text = stream.read(SAMPLE)
        header = next((line for line in text.splitlines() if line.strip()), None)
        if header is None:
            raise InvalidInputError(f"{path.name} is empty.")
        separator = _separator(header, tabs_first=path.suffix.lower() == ".tsv")
        with damage_named(path):
            rows = list(islice(csv.reader(text.splitlines(keepends=True), delimiter=separator), 1000))
        found = next((row for row in rows if any(cell.strip() for cell in row)), None)
        if found is None:
            raise InvalidInputError(f"{path.name} has no column names in its first line, nor any values.")
        refuse_numbers_as_names(found, path.name)
        names, notes = _unique_names([cell.strip() for cell in found])
        if encoding == "cp1252":
            notes.append("The file is not UTF-8: it was read as Windows-1252.")
        decimal = "," if separator != "," and _decimal_commas(rows) else "."
        return cls(path, encoding, separator, decimal, tuple(names), tuple(notes))

    def read(self, as_text: Sequence[str] = ()) -> pd.DataFrame:
        """The whole table; the columns `as_text` stay as they are written, "007" and all."""
        with self._errors():
            return pd.read_csv(self.path, **self._options(as_text))

    def chunks(self, rows: int, as_text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """The table in parts of so many rows."""
        with self._errors():
            opened = pd.read_csv(self.path, **self._options(as_text), chunksize=rows)
        with opened as parts:
            while True:
                with self._errors():
                    part = next(parts, None)
                if part is None:
                    return
                yield part

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with damage_named(self.path), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows that are longer than the header
            try:
                yield
            except pd.errors.ParserWarning as error:
                raise ValueError("its rows are longer than its first line, which names the columns") from error

    def _options(self, as_text: Sequence[str]) -> dict[str, Any]:
        return {
            "sep": self.separator, "decimal": self.decimal, "encoding": self.encoding, "names": list(self.names),
            "header": 0, "index_col": False, "skipinitialspace": True, "low_memory": False, "na_values": list(MISSING),
            "dtype": {name: str for name in as_text if name in self.names}, **EXACT,
        }  # fmt: skip


def _encoding(path: Path) -> str:
    """UTF-8 or UTF-16 (with its mark), else Windows-1252; refuses what is no text."""
    with path.open("rb") as stream:
        start = stream.read(SAMPLE)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if any(byte < 9 or 13 < byte < 32 for byte in start):
            kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "a binary file")
            raise DatasetFileError(f"{path} is no text but looks like {kind}; save it as comma-separated text.")
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while start:
                decoder.decode(start)
                start = stream.read(2**20)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"  # spreadsheets put a mark before the first name


def _separator(header: str, *, tabs_first: bool) -> str:
    """The sign that stands most often between the names, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    if tabs_first and "\t" in bare:
        return "\t"
    return max(",;\t|", key=bare.count)  # the first among equals


def _unique_names(found: list[str]) -> tuple[list[str], list[str]]:
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


def _decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows[1:] for cell in row]
    commas = any(re.fullmatch(r"[+-]?\d*,\d+", cell) for cell in cells)
    return commas and not any(re.fullmatch(r"[+-]?\d*\.\d+", cell) for cell in cells)
