"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn


@contextmanager
def progress_bar(*columns: ProgressColumn, silent: bool = False, **options: Any) -> Iterator[Progress]:
    """Show a bar of these columns, unless it is `silent` or nobody would see it."""
    screen = Console(stderr=True)
    bar = Progress(*columns, console=screen, disable=silent or not screen.is_terminal, **options)
    # A disabled bar is not entered: up to version 14, rich would end it with an empty line.
    with nullcontext() if bar.disable else bar:
        yield bar
