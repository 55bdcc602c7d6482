"""``distreduce data list | fetch | verify``: which data sets there are, where they are, and whether they are sound."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import typer

from distreduce.exceptions import DatasetError

app = typer.Typer(help="Data sets: list, fetch and verify them.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
MARKS = {"ok": "green", "fetched": "green", "here": "green", "damaged": "bold red", "failed": "bold red"}


@dataclass(frozen=True)
class Entry:
    """A set as ``list`` shows it; `place` is folder, cache, built in or None."""

    name: str
    samples: int
    features: int
    task: str
    place: str | None = None
    path: str | None = None
    bytes: int | None = None
    to_fetch: int | None = None


@dataclass(frozen=True)
class State:
    """What ``fetch`` or ``verify`` found of a file."""

    name: str
    state: str
    path: str | None = None
    error: str | None = None


@app.command("list")
def list_sets(as_json: Json = False) -> None:
    """Show the data sets that can be loaded by name, and where each is now."""
    entries = _entries()
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Data sets: distreduce.datasets.load(name)")
    for title, side in (("name", "left"), ("samples × features", "right"), ("task", "left"), ("where", "left")):
        table.add_column(title, justify="right" if side == "right" else "left", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for entry in entries:
        where = entry.place or f"[yellow]not here[/], {_size(entry.to_fetch)} to fetch"
        shape = f"{entry.samples} × {entry.features:5d}"
        table.add_row(entry.name, shape, entry.task, where, "" if entry.bytes is None else _size(entry.bytes))
    Console().print(table)
    typer.echo(f"folder: {_folder() or 'DISTREDUCE_DATA is not set'}\ncache:  {_cache()}")


@app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Sets to fetch.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch every set that lives in a file.")] = False,
    as_json: Json = False,
) -> None:
    """Bring data sets into the cache; what is here already is only checked.

    A set that fails does not stop the others; the exit code is 1 then.
    """
    from distreduce.datasets.registry import FILE_SETS

    if everything == bool(names):
        raise typer.BadParameter("name data sets, or give --all.", param_hint="NAME…")
    chosen = list(FILE_SETS) if everything else _known(names or [])
    states = [_fetch(name, progress=not as_json) for name in chosen]
    _show(states, as_json)
    raise typer.Exit(int(any(state.state == "failed" for state in states)))


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="All by default.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the values of every file that is here with those published; the exit code is 1 if one differs."""
    from distreduce.datasets.registry import FILE_SETS

    states = [state for name in (_known(names) if names else FILE_SETS) for state in _verify(name)]
    _show(states, as_json)
    raise typer.Exit(int(any(state.state == "damaged" for state in states)))


def _entries() -> list[Entry]:
    from distreduce.datasets.built_in import BUNDLED_SETS, GENERATED_SETS
    from distreduce.datasets.places import copies
    from distreduce.datasets.registry import FILE_SETS

    entries = []
    for name, spec in FILE_SETS.items():
        here = next(iter(copies(spec)), None)
        entry = Entry(name, *spec.shape, spec.task, to_fetch=spec.download_size)
        if here is not None:
            size = here.path.stat().st_size
            entry = replace(entry, place=here.place, path=str(here.path), bytes=size, to_fetch=None)
        entries.append(entry)
    entries += [Entry(name, *spec.shape, spec.task, "built in") for name, spec in GENERATED_SETS.items()]
    entries += [Entry(name, *spec.shape, spec.task, "built in") for name, spec in BUNDLED_SETS.items()]
    return entries


def _known(names: list[str]) -> list[str]:
    """The names without repetition, all of them checked before anything is done."""
    from distreduce.datasets.loading import names as all_names
    from distreduce.datasets.loading import unknown_name

    for name in names:
        if name not in all_names():
            raise unknown_name(name)
    return list(dict.fromkeys(names))


def _fetch(name: str, *, progress: bool) -> State:
    from distreduce.datasets.loading import fetch as fetch_one
    from distreduce.datasets.places import copies
    from distreduce.datasets.registry import FILE_SETS

    if name not in FILE_SETS:
        return State(name, "built in")
    try:
        before = bool(copies(FILE_SETS[name]))
        return State(name, state="here" if before else "fetched", path=str(fetch_one(name, progress=progress)))
    except DatasetError as error:
        return State(name, "failed", error=str(error))


def _verify(name: str) -> list[State]:
    from distreduce.datasets.places import copies
    from distreduce.datasets.registry import FILE_SETS

    if name not in FILE_SETS:
        return [State(name, "built in")]
    states = []
    for copy in copies(FILE_SETS[name]):
        try:
            copy.read(FILE_SETS[name])
            states.append(State(name, "ok", str(copy.path)))
        except DatasetError as error:
            states.append(State(name, "damaged", str(copy.path), str(error)))
    return states or [State(name, "missing")]


def _show(states: list[State], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(state) for state in states], indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for state in states:
        words = Text(state.error or state.path or "", overflow="fold")
        table.add_row(state.name, Text(state.state, style=MARKS.get(state.state, "yellow")), words)
    Console().print(table)


def _size(count: int | None) -> str:
    count = count or 0
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"


def _folder() -> str | None:
    from distreduce.datasets.places import data_folder

    folder = data_folder()
    return None if folder is None else str(folder)


def _cache() -> str:
    from distreduce.datasets.places import cache_folder

    return str(cache_folder())
