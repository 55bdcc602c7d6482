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
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
from sklearn.utils.fixes import parse_version

from distreduce._utils.files import DAMAGE, allowed_bytes
from distreduce.exceptions import DatasetFileError, DistReduceError, InvalidInputError
from distreduce.tables.cells import (
    CONTINENTAL,
    GAPS,
    MEASURE,
    NEARLY_ALL,
    are_codes,
    are_mostly_numbers,
    is_number,
    to_text,
    use_point,
)
from distreduce.tables.formats import TextLayout, kind_of

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


MAX_HEADER = 2**24  # characters up to the end of the names
MAX_COLUMNS = 100_000  # pandas needs half a minute for half as many, and seven minutes for twice as many
SAMPLE = 2**16  # characters after the names that decide on the decimal sign
SEPARATORS = ",;\t|"
POINT, COMMA = re.compile(r"[+-]?\d*\.\d+"), re.compile(r"[+-]?\d*,\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")  # 1,250 is ambiguous; 0,250 is a fraction
DECIMAL_COMMA = "Numbers have a decimal comma: 1,5 was read as one and a half."


@dataclass(frozen=True)
class Header:
    """How to read the rows of a file, and notes on these decisions."""

    separator: str
    decimal: str
    skipped: int  # records above the names
    names: tuple[str, ...]  # unique and not empty
    unnamed: tuple[str, ...]  # those that were made up
    notes: tuple[str, ...]
    named: bool = True
    has_sep_line: bool = False  # of Excel, above the names


def find_header(text: str, where: str, layout: TextLayout, *, tabs_first: bool) -> Header:
    """Parse the start of a file, at most `MAX_HEADER` characters; raise InvalidInputError if it names no columns."""
    if not text.strip():
        raise InvalidInputError(f"{where} is empty.")
    # Excel may write a line "sep=;" above the names.
    sep_line = re.match(r'"?sep=([,;\t|])"?[ ,;\t|]*(?:\r\n|\r|\n)', text, re.IGNORECASE)
    body = text[sep_line.end() :] if sep_line else text
    found_separator = sep_line[1] if sep_line else _detect_separator(body, tabs_first=tabs_first)
    separator = layout.separator or found_separator
    # The names: the first record that is not blank. The stream then stands at the rows below it.
    stream = io.StringIO(body, newline="")
    skipped, found = _first_record(_records(stream, separator))
    if found is None:
        raise InvalidInputError(f"{where} has no column names in its first line, nor any values.")
    # The end of `text` without a row below the names: they may have been cut off.
    if stream.tell() == len(body) and len(text) == MAX_HEADER:
        raise InvalidInputError(f"{where} has more than {MAX_HEADER:,} characters before its first row of values.")
    if len(found) > MAX_COLUMNS:
        raise InvalidInputError(f"{where} has {len(found):,} columns; at most {MAX_COLUMNS:,} can be read.")
    # Checks that need the rows below the names.
    below = stream.tell()
    rows = _sample_rows(stream, separator)
    _reject_comment(found, rows, where)
    if layout.named and sum(bool(cell.strip()) for cell in found) == 1:
        # A title alone does not show what separates the cells.
        sign = layout.separator or _detect_separator(body[below:], tabs_first=tabs_first)
        if sign != " ":  # these are words of a text
            reject_title(found, _sample_rows(io.StringIO(body[below:], newline=""), sign), where)
    if not layout.named:
        rows, found = [found, *rows], [""] * len(found)
    # Without names, the first sample would silently become the header.
    elif all(map(_is_number, found)):
        raise InvalidInputError(
            f"The first row of {where} holds numbers; give it a first row of column names, or --no-header to call the "
            "columns 'column 1', 'column 2', …"
        )
    # Names as they are used, and the decimal sign.
    found = [cell.strip() for cell in found]
    names, notes = unique_names(found)
    unnamed = tuple(name for name, given in zip(names, found, strict=True) if layout.named and not given)
    decimal = _detect_decimal(separator, names, rows, where)
    if decimal == ",":
        notes.append(DECIMAL_COMMA)
    return Header(
        separator, decimal, skipped + bool(sep_line), tuple(names), unnamed, tuple(notes), layout.named, bool(sep_line)
    )


def _records(stream: io.StringIO, separator: str) -> Iterator[list[str]]:
    if separator == " ":  # any number of blanks, also before the first cell
        return (next(csv.reader([" ".join(line.split())], delimiter=" "), []) for line in stream)
    return csv.reader(stream, delimiter=separator, skipinitialspace=True)


def _first_record(records: Iterator[list[str]]) -> tuple[int, list[str] | None]:
    """Return the first record that is not blank, and how many stand before it."""
    for number, record in enumerate(records):
        if "".join(record).strip(SEPARATORS + " \r\n"):
            return number, record
    return 0, None


def _detect_separator(text: str, *, tabs_first: bool) -> str:
    """Return the separator that splits the first record into most cells; the record may span lines within quotes."""
    cells = {sign: _count_cells(text, sign) for sign in SEPARATORS}
    # In a .tsv file commas belong to the text, however many there are.
    if tabs_first and cells["\t"] > 1:
        return "\t"
    best = max(SEPARATORS, key=cells.__getitem__)  # the first one wins a tie
    # Blanks separate only if nothing else does, and every line has the same number of words.
    lines = {len(line.split()) for line in text[:SAMPLE].splitlines()[:20] if line.strip()}
    return " " if cells[best] == 1 and len(lines) == 1 and max(lines) > 1 else best


def _count_cells(text: str, separator: str) -> int:
    try:
        return len(_first_record(_records(io.StringIO(text, newline=""), separator))[1] or ())
    except csv.Error:  # an open quote, read with this separator
        return 0


def _sample_rows(stream: io.StringIO, separator: str) -> list[list[str]]:
    """Return up to a thousand records below the names, without the last one if it may be cut off."""
    text = stream.read(SAMPLE)
    rows = list(islice(_records(io.StringIO(text, newline=""), separator), 1000))
    return rows[:-1] if len(text) == SAMPLE and len(rows) > 1 else rows


def _reject_comment(found: list[str], rows: list[list[str]], where: str) -> None:
    # A name may begin with #, too: a comment has a different number of cells than every row below it.
    if found[0].startswith("#") and (len(found) == 1 or all(len(row) != len(found) for row in rows)):
        raise InvalidInputError(
            f"{where} begins with a comment ({found[0]!r:.60}); delete the lines above the column names."
        )


def reject_title(found: Sequence[str], rows: Sequence[Sequence[str]], where: str) -> None:
    """Raise InvalidInputError if the first line of a table, which has a single text, stands above the names."""
    # Only if names stand below it: several texts without a number, above rows that are no longer and have numbers.
    names, *rest = [cells for row in rows if (cells := [cell for cell in row if cell.strip()])] or [[]]
    numbers = any(_is_number(cell) for row in rest for cell in row)
    if len(names) >= max(2, *map(len, rest), 0) and numbers and not any(map(_is_number, names)):
        title = f"The first line of {where} ({''.join(found).strip()!r:.60}) looks like a title"
        raise InvalidInputError(f"{title}; delete the lines above the column names.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def unique_names(found: list[str]) -> tuple[list[str], list[str]]:
    """Make every name unique and not empty; return the names, and a note on each duplicate."""
    names: dict[str, None] = {}
    notes = []
    given, counts = {*found}, dict[str, int]()  # linear time: a header may hold ten thousand equal names
    for position, name in enumerate(found, start=1):
        wanted = name or f"column {position}"
        unique, count = wanted, counts.get(wanted, 1)
        # "a (2)" may itself be a name further on in the file: skip it.
        while unique in names or (count > 1 and unique in given):
            count += 1
            unique = f"{wanted} ({count})"
        counts[wanted] = count
        if name and unique != name:
            notes.append(f"{name!r} is the name of several columns; column {position} is called {unique!r} here.")
        names[unique] = None
    return list(names), notes


def _has_commas_before_units(column: list[str]) -> bool:
    """Return whether a column of numbers with units has one such as 21,11 €; 341,750 € may be thousands."""
    cells = [cell for cell in column if cell not in GAPS]
    found = [match["number"] for match in map(MEASURE.fullmatch, cells) if match]
    # Texts may hold such a cell by chance, so nearly all must be numbers.
    commas = [number for number in found if "," in number and CONTINENTAL.fullmatch(number)]
    return len(found) >= NEARLY_ALL * len(cells) and not all(map(THOUSANDS.fullmatch, commas))


def _detect_decimal(separator: str, names: Sequence[str], rows: list[list[str]], where: str) -> str:
    """Return the decimal comma if the comma does not separate cells, some number has a comma and none has a point.

    One number that cannot be a count of thousands decides for all columns: no program writes both.
    """
    columns = [[cell.strip() for cell in column] for column in zip_longest(*rows, fillvalue="")]
    if separator == "," or any(POINT.fullmatch(cell) for column in columns for cell in column):
        return "."
    ambiguous = None
    for name, column in zip(names, columns, strict=False):
        commas = [cell for cell in column if COMMA.fullmatch(cell) or THOUSANDS.fullmatch(cell)]
        if any(not THOUSANDS.fullmatch(cell) for cell in commas):  # such as 1,5 or 0,250
            return ","
        if commas and ambiguous is None:
            ambiguous = name, commas[0]
    if any(map(_has_commas_before_units, columns)):
        return ","
    if ambiguous is None:
        return "."
    raise InvalidInputError(
        f"Column {ambiguous[0]!r} of {where} has {ambiguous[1]!r}, which may mean thousands or a fraction, and no "
        "other number of the file decides it. Write thousands without a comma (1250) and fractions with a point (1.25)."
    )
