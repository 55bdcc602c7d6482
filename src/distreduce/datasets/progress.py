"""A bar while files arrive, on standard error and only where somebody sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from distreduce._utils.progress import progress_bar
from distreduce.datasets.spec import FileSet

Report = Callable[[str, int], None]


@contextmanager
def transfer_bar(spec: FileSet, wanted: bool) -> Iterator[Report]:
    """A function that takes the name of a file and its bytes that are here, and moves the bar of the whole set."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with progress_bar(*columns, visible=wanted) as bar:
        task = bar.add_task(f"fetching {spec.name}", total=spec.download_size)
        here: dict[str, int] = {}

        def report(name: str, size: int) -> None:
            here[name] = size
            bar.update(task, completed=sum(here.values()))

        yield report
