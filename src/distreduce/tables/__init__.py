"""People's own tables: read a file into typed columns, then encode these as X and y.

The pipeline is `reading` (file -> features and targets), `columns` (what each column holds), `recipe` (learn, apply and
save the encoding), `target` (y) and `prepare` (all of it). :class:`TablePreparer` encodes data frames.
docs/command-line.md states the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distreduce.tables.preparer import TablePreparer

__all__ = ["TablePreparer"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line checks its arguments before it waits for pandas.
    if name == "TablePreparer":
        from distreduce.tables.preparer import TablePreparer

        return TablePreparer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
