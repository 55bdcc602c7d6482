"""Separated text as people have it: any usual separator, decimal comma, encoding and header."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from distreduce.exceptions import DatasetFileError
from distreduce.tables.decimals import decimal_sign
from distreduce.tables.files import EXACT, damage_named
from distreduce.tables.header import LONGEST, find_header

START = 2**16  # bytes that tell text from other files
MISSING = ("?", "-", ".")  # besides pandas' own: empty, NA, NaN, null, None, …
MAGIC = {b"PK": "an Excel workbook or a zip archive", b"PAR1": "a Parquet file", b"\x1f\x8b": "a gzip archive",
         b"\x89HDF": "an HDF5 file", b"\xd0\xcf": "an old Excel workbook", b"%PDF": "a PDF"}  # fmt: skip


@dataclass(frozen=True)
class TextFile:
    """How to read a .csv or .tsv file; `skipped` records are above the names, `notes` say what was not as expected."""

    path: Path
    encoding: str
    separator: str
    decimal: str
    skipped: int
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> TextFile:
        """Look at a file: refuses what is no text, what is empty and what has no column names."""
        encoding = _encoding(path)
        with damage_named(path), path.open(encoding=encoding, newline="") as stream:
            header = find_header(stream.read(LONGEST), path.name, tabs_first=path.suffix.lower() == ".tsv")
        notes = list(header.notes)
        if encoding == "cp1252":
            notes.append("The file is not UTF-8: it was read as Windows-1252.")
        decimal = decimal_sign(header, path.name)
        if decimal == ",":
            notes.append("Numbers have a decimal comma: 1,5 was read as one and a half.")
        return cls(path, encoding, header.separator, decimal, header.skipped, header.names, tuple(notes))

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
            "skiprows": self.skipped, "header": 0, "index_col": False, "skipinitialspace": True, "low_memory": False,
            "na_values": list(MISSING), "dtype": {name: str for name in as_text if name in self.names}, **EXACT,
        }  # fmt: skip


def _encoding(path: Path) -> str:
    """UTF-8 or UTF-16 (with its mark), else Windows-1252; refuses what is no text."""
    with path.open("rb") as stream:
        start = stream.read(START)
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
