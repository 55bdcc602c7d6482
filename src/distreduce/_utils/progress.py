"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


@contextmanager
def progress_bar(*columns: str | ProgressColumn, visible: bool = True, **options: Any) -> Iterator[Progress]:
    """Show a rich progress bar on standard error while the block runs, and remove it afterwards.

    Nothing is shown unless `visible` is true and standard error is a terminal. `options` go to
    :class:`rich.progress.Progress`.
    """
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    disabled = not (visible and screen.is_terminal)
    bar = Progress(*columns, console=screen, disable=disabled, transient=True, **options)
    if disabled:  # not entered: up to version 14, rich ends a disabled bar with an empty line
        yield bar
    else:
        with bar:
            yield bar
