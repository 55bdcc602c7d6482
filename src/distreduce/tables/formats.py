"""Which files can be read, by their suffix; imports no reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distreduce.exceptions import DatasetFileError

TEXT = (".csv", ".tsv", ".txt", ".dat")
SUFFIXES = (*TEXT, ".csv.gz", ".parquet", ".xlsx", ".npz", ".h5ad")


@dataclass(frozen=True)
class TextLayout:
    """What the user says about a text file: its separator (" " for any blanks), and whether its first row is names."""

    separator: str | None = None
    named: bool = True

    def name_column(self, given: str) -> str:
        """Return the name of a column: without names in the file, 4 is the fourth, "column 4"."""
        return given if self.named or not given.isdecimal() else f"column {int(given)}"


def kind_of(path: Path) -> str:
    """Return the suffix in lower case; that of a compressed text file is the one before ``.gz``."""
    name = path.name.lower()
    plain = Path(name.removesuffix(".gz")).suffix
    return plain if plain in TEXT else Path(name).suffix


def check_file(path: Path) -> None:
    """Raise DatasetFileError unless `path` is a file with a known suffix."""
    if path.is_dir():
        raise DatasetFileError(f"{path} is a folder; name a file in it.")
    if kind_of(path) not in SUFFIXES:
        raise DatasetFileError(f"{path} ends in none of {', '.join(SUFFIXES)}; convert it to one of them.")
    if not path.is_file():
        raise DatasetFileError(f"There is no file {path} (looked from {Path.cwd()}).")
