"""Delimited text files as people have them: any common separator, decimal sign, encoding and header."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
from sklearn.utils.fixes import parse_version

from distreduce._utils.files import DAMAGE, allowed_bytes
from distreduce.exceptions import DatasetFileError, DistReduceError
from distreduce.tables.cells import GAPS, are_codes, are_mostly_numbers, is_number, to_text
from distreduce.tables.formats import TextLayout, kind_of
from distreduce.tables.header import MAX_HEADER, Header, find_header
from distreduce.tables.units import use_point

AS_FOUND = TextLayout()
START = 2**16  # bytes that tell text from binary files
MAGIC = {b"PK": "an Excel workbook or a zip archive", b"PAR1": "a Parquet file", b"\x1f\x8b": "a gzip archive",
         b"\x89HDF": "an HDF5 file", b"\xd0\xcf": "an old Excel workbook", b"%PDF": "a PDF"}  # fmt: skip
# Read the float64 nearest to the text. From pandas 3.1 on this is the default, and asking for it is deprecated.
EXACT: dict[str, Any] = (
    {} if parse_version(pd.__version__) >= parse_version("3.1") else {"float_precision": "round_trip"}
)


@contextmanager
def translate_read_errors(path: Path) -> Iterator[None]:
    """Turn whatever a library raises for a broken file into a DatasetFileError of one sentence that names the file."""
    try:
        yield
    except DistReduceError:
        raise
    except (*DAMAGE, csv.Error) as error:
        reason = str(error).strip() or type(error).__name__
        raise DatasetFileError(f"{path} cannot be read as {kind_of(path)[1:]} ({reason:.500}).") from error


@dataclass(frozen=True)
class TextFile:
    """How to read a text file."""

    path: Path
    encoding: str
    header: Header

    @classmethod
    def detect(cls, path: Path, layout: TextLayout = AS_FOUND) -> TextFile:
        """Look at a file; raise if it is not text, is empty or has no column names."""
        with translate_read_errors(path):
            encoding = _detect_encoding(path)
            with _open(path) as raw, io.TextIOWrapper(raw, encoding, newline="") as stream:
                header = find_header(stream.read(MAX_HEADER), path.name, layout, tabs_first=kind_of(path) == ".tsv")
        return cls(path, encoding, header)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how the file is read."""
        # Windows-1252 decodes almost any byte, so a wrong guess shows only in the text.
        fallback = ("The file is not UTF-8: it was read as Windows-1252.",) if self.encoding == "cp1252" else ()
        return (*self.header.notes, *fallback)

    def read(self, as_text: Sequence[str] = ()) -> pd.DataFrame:
        """Return the complete table; the columns `as_text`, and those of codes such as 01, are kept as written."""
        with self._errors():
            table = pd.read_csv(self.path, **self._options(as_text))
            # The parser reads 01 as 1: look at the columns of whole numbers again.
            whole = [name for name in table if is_number(table[name]) and (table[name].dropna() % 1 == 0).all()]
            if whole:
                texts = pd.read_csv(self.path, **self._options(whole), usecols=whole)
                codes = [name for name in whole if are_codes(texts[name].str.strip()).any()]
                table[codes] = texts[codes]
            # Only where nearly all are numbers: levels must stay as written, because new files are compared with them.
            return self._use_points(table, as_text, lambda cells: are_mostly_numbers(to_text(cells).dropna()))

    def read_chunks(self, rows: int, as_text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the table in chunks of at most `rows` rows; all columns of levels should be among `as_text`."""
        with self._errors():
            opened = pd.read_csv(self.path, **self._options(as_text), chunksize=rows)
        with opened as chunks:
            # Errors are translated around each step alone: what the caller raises between chunks passes unchanged.
            while True:
                with self._errors():
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                yield self._use_points(chunk, as_text, lambda _: True)

    def find_line(self, row: int) -> int:
        """Return the line, from 1, in which a row of the table ends; cells with line ends and blank lines count."""
        separator = self.header.separator
        with _open(self.path) as raw, io.TextIOWrapper(raw, self.encoding, newline="") as stream:
            reader = csv.reader(stream, delimiter=separator, skipinitialspace=True)
            lines = (reader.line_num for record in reader if "".join(record).strip() or len(record) > 1)
            return next(islice(lines, self.header.has_sep_line + self.header.named + row, None), 0)

    def _use_points(
        self, table: pd.DataFrame, as_text: Sequence[str], wanted: Callable[[pd.Series], bool]
    ) -> pd.DataFrame:
        """Return the table with points for decimal commas in `wanted` columns that a unit or a mistake made text."""
        pointed = {}
        for name in table if self.header.decimal == "," else ():
            if name not in as_text and pd.api.types.is_string_dtype(table[name].dtype):
                cells = table[name].map(lambda cell: use_point(cell.strip()) if isinstance(cell, str) else cell)
                if wanted(cells):
                    pointed[name] = cells
        return table.assign(**pointed)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with translate_read_errors(self.path), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            try:
                yield
            except pd.errors.ParserWarning as error:
                raise ValueError("its rows are longer than its first line, which names the columns") from error
            except pd.errors.ParserError as error:
                raise ValueError(_explain(str(error))) from error

    def _options(self, as_text: Sequence[str]) -> dict[str, Any]:
        header = self.header
        separator = r"\s+" if header.separator == " " else header.separator
        return {
            "sep": separator, "decimal": header.decimal, "encoding": self.encoding, "names": list(header.names),
            "skiprows": header.skipped, "header": 0 if header.named else None, "index_col": False,
            "skipinitialspace": True, "low_memory": False, "na_values": sorted(GAPS),
            "dtype": {name: str for name in as_text if name in header.names}, **EXACT,
        }  # fmt: skip


def _explain(reason: str) -> str:
    """Return what the parser of pandas says, as a sentence."""
    ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
    if ragged:
        return f"line {ragged[2]} has {ragged[3]} cells, but there are {ragged[1]} columns"
    return reason.removeprefix("Error tokenizing data. C error: ")


def _open(path: Path) -> BinaryIO:
    # GzipFile is a stream of bytes, though not by its type.
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _detect_encoding(path: Path) -> str:
    """Return UTF-8, UTF-16 (by its mark) or else Windows-1252; raise DatasetFileError if the file is not text."""
    allowed = allowed_bytes(path) if path.suffix.lower() == ".gz" else math.inf  # a kilobyte may stand for gigabytes
    with _open(path) as stream:
        start = stream.read(START)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        # Control characters other than tab and line ends: no text has them.
        if any(byte < 9 or 13 < byte < 32 for byte in start):
            kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "a binary file")
            raise DatasetFileError(f"{path} is not text but looks like {kind}; save it as comma-separated text.")
        # The complete file, because a single é may stand in the last row.
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while start:
                decoder.decode(start)
                start = stream.read(2**20)
                if stream.tell() > allowed:
                    raise ValueError(f"it would unpack to more than the {allowed} bytes allowed for its size")
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"  # spreadsheets write a byte-order mark before the first name
