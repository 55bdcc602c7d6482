"""The command ``distreduce``."""

from __future__ import annotations

import io
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from distreduce._utils.progress import progress_bar
from distreduce.cli import apply
from distreduce.cli.data import app as data_app
from distreduce.cli.fit import fit
from distreduce.exceptions import DistReduceError
from distreduce_paper.commands.bench import bench
from distreduce_paper.commands.reproduce import app as reproduce_app

if TYPE_CHECKING:
    from distreduce.cli.demo import Outcome

LONGEST = 2000  # characters of an error

app = typer.Typer(
    help="Supervised distributional reduction: few weighted, low-dimensional prototypes of (X, y).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(reproduce_app, name="reproduce")
for command in (fit, apply.transform, apply.predict, apply.report, bench):
    app.command()(command)


def main() -> None:
    """Entry point: an error is one sentence on standard error and exit code 1; wrong usage is exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # not every terminal has R²
    try:
        with _leaving_nothing():
            app(prog_name="distreduce")
    except DistReduceError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.strerror}: {error.filename}." if error.strerror else str(error))


@contextmanager
def _leaving_nothing() -> Iterator[None]:
    """Who is told to end, or loses the terminal, cleans up first; what is ignored (nohup) stays so."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ours = [one for one in signals if signal.getsignal(one) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _fail(sentence: str) -> None:
    """One line on standard error; a name from somebody's file must not steer the terminal, nor fill it."""
    line = "".join(sign if sign.isprintable() else " " for sign in sentence)
    typer.echo(f"distreduce: {line[:LONGEST] + '…' if len(line) > LONGEST else line}", err=True)
    sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        from distreduce import __version__

        typer.echo(f"distreduce {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Supervised distributional reduction: few weighted, low-dimensional prototypes of (X, y)."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the tables.")] = Path("distreduce-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the splits and of the fits.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the files are still written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of a table.")] = False,
) -> None:
    """Reduce two data sets that come with scikit-learn, and write a picture and two tables.

    Digits (1797 × 64, 10 classes) become at most 60 prototypes; diabetes (442 × 10, a number) keeps every sample.
    A fifth of each is held out. Takes less than a minute, needs no network and opens no window.
    """
    from distreduce.cli.demo import STEPS, run_demo

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with progress_bar(*columns, visible=not (quiet or as_json)) as bar:
        task = bar.add_task("reading data", total=STEPS + 1)
        outcomes = run_demo(out, seed, lambda words: bar.update(task, description=words, advance=1))
    if as_json:
        typer.echo(json.dumps({"folder": str(out), "results": [asdict(outcome) for outcome in outcomes]}, indent=2))
    elif not quiet:
        Console().print(_table(outcomes))
        files = "embedding.png, prototypes.csv and embedding.csv"
        typer.echo(f"Wrote {files} to {out.resolve()}")


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(title="SDR in two dimensions; scores of a 10-NN are on the fifth held out")
    table.add_column("")
    for outcome in outcomes:
        table.add_column(f"{outcome.data} ({outcome.n_train} × {outcome.n_features})", justify="right")

    table.add_row("prototypes used", *(f"{o.prototypes_used} of {o.n_prototypes}" for o in outcomes))
    for name in ("homogeneity", "nmi", "silhouette"):
        values = [getattr(outcome, name) for outcome in outcomes]
        table.add_row(name.replace("nmi", "NMI"), *("–" if value is None else f"{value:.1f}" for value in values))
    table.add_row("CKA", *(f"{o.cka:.3f}" for o in outcomes))
    table.add_section()
    for name, label in (("sdr_2d", "SDR, 2-D"), ("pca_2d", "PCA, 2-D"), ("all_features", "all features")):
        table.add_row(f"10-NN, {label}", *(f"{o.score} {getattr(o, name):.3f}" for o in outcomes))
    return table
