"""``distreduce data list | fetch | verify``: which data sets there are, where they are, and whether they are intact."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distreduce.datasets.download import cache_folder, copies, data_folder
from distreduce.datasets.loading import BUNDLED_SETS, FILE_SETS, GENERATED_SETS, unknown_name
from distreduce.datasets.loading import fetch as fetch_set
from distreduce.datasets.loading import names as list_names
from distreduce.exceptions import DatasetError

app = typer.Typer(help="List, fetch and verify data sets.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
STYLES = {"ok": "green", "fetched": "green", "here": "green", "damaged": "bold red", "failed": "bold red"}


# What `list` shows of a data set, and what `fetch` and `verify` found: also the objects of --json.
Entry = dict[str, Any]


@app.command("list")
def list_sets(as_json: Json = False) -> None:
    """Show the data sets that can be loaded by name, and where each one is."""
    entries = _list_entries()
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    table = Table(
        title="Data sets: distreduce.datasets.load(name)", title_justify="left", title_style="", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for title in ("name", "samples", "features", "task", "where"):
        table.add_column(title, justify="right" if title in ("samples", "features") else "left", no_wrap=True)
    for entry in entries:
        # Where the file is, or what it would cost to get it.
        where = entry["place"] or f"[yellow]not here[/], {_size_text(entry['to_fetch'])} to fetch"
        where += "" if entry["bytes"] is None else f", {_size_text(entry['bytes'])}"
        table.add_row(entry["name"], f"{entry['samples']:,}", f"{entry['features']:,}", entry["task"], where)
    Console().print(table)
    typer.echo(f"folder: {data_folder() or 'DISTREDUCE_DATA is not set'}\ncache:  {cache_folder()}")


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Data sets to fetch.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch every data set that is a file.")] = False,
    as_json: Json = False,
) -> None:
    """Download data sets into the cache; existing files are only checked.

    If a data set fails, the others are still fetched, and the exit code is 1.
    """
    if everything == bool(names):
        raise typer.BadParameter("name data sets, or give --all.", param_hint="NAME…")
    chosen = list(FILE_SETS) if everything else _check_names(names or [])
    states = [_fetch(name, progress=not as_json) for name in chosen]
    _show(states, as_json)
    raise typer.Exit(int(any(state["state"] == "failed" for state in states)))


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="All by default.")] = None,
    as_json: Json = False,
) -> None:
    """Compare the values of every local file with the published ones; the exit code is 1 if a file differs."""
    states = [state for name in (_check_names(names) if names else FILE_SETS) for state in _verify(name)]
    _show(states, as_json)
    raise typer.Exit(int(any(state["state"] == "damaged" for state in states)))


def _list_entries() -> list[Entry]:
    entries = []
    sets: dict[str, Any] = {**FILE_SETS, **GENERATED_SETS, **BUNDLED_SETS}
    for name, spec in sets.items():
        # Every entry has the same keys: users of --json need not ask which kind it is.
        samples, features = spec.shape
        entry = {"name": name, "samples": samples, "features": features, "task": spec.task, "place": "built in"}
        entry |= {"path": None, "bytes": None, "to_fetch": None}
        if name in FILE_SETS:
            here = next(iter(copies(FILE_SETS[name])), None)
            if here is None:
                entry |= {"place": None, "to_fetch": FILE_SETS[name].download_size}
            else:
                entry |= {"place": here.place, "path": str(here.path), "bytes": here.path.stat().st_size}
        entries.append(entry)
    return entries


def _make_state(name: str, state: str, path: object = None, error: object = None) -> Entry:
    return {"name": name, "state": state, "path": path and str(path), "error": error and str(error)}


def _check_names(names: list[str]) -> list[str]:
    """Return the names without repetition; raise if one is unknown, before anything is done."""
    for name in names:
        if name not in list_names():
            raise unknown_name(name)
    return list(dict.fromkeys(names))


def _fetch(name: str, *, progress: bool) -> Entry:
    if name not in FILE_SETS:
        return _make_state(name, "built in")
    try:
        before = bool(copies(FILE_SETS[name]))  # ask before the fetch, which makes a copy
        return _make_state(name, "here" if before else "fetched", fetch_set(name, progress=progress))
    except DatasetError as error:
        return _make_state(name, "failed", error=error)


def _verify(name: str) -> list[Entry]:
    if name not in FILE_SETS:
        return [_make_state(name, "built in")]
    states = []
    for copy in copies(FILE_SETS[name]):  # the folder and the cache may both have one
        try:
            copy.read(FILE_SETS[name])
            states.append(_make_state(name, "ok", copy.path))
        except DatasetError as error:
            states.append(_make_state(name, "damaged", copy.path, error))
    return states or [_make_state(name, "missing")]


def _show(states: list[Entry], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(states, indent=2))
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for state in states:
        words = Text(state["error"] or state["path"] or "", overflow="fold")
        table.add_row(state["name"], Text(state["state"], style=STYLES.get(state["state"], "yellow")), words)
    Console().print(table)


def _size_text(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"
