"""Progress bars that leave nothing behind where nobody sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def shown(bar: Progress) -> Iterator[Progress]:
    """The bar, on the screen unless it is disabled: up to version 14, rich ends a disabled one with an empty line."""
    if bar.disable:
        yield bar
    else:
        with bar:
            yield bar
