"""The command ``distreduce``: finds its sub-commands, and turns errors and signals into exit codes."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from distreduce._utils.text import strip_control
from distreduce._utils.versions import __version__
from distreduce.exceptions import DistReduceError

MAX_ERROR = 2000  # characters
# Other packages add commands by entry points of this group: functions or Typer applications.
GROUP = "distreduce.commands"
COMMANDS = {
    "fit": "distreduce.cli.fit:fit",
    "transform": "distreduce.cli.apply:transform",
    "predict": "distreduce.cli.apply:predict",
    "score": "distreduce.cli.score:score",
    "report": "distreduce.cli.report:report",
    "demo": "distreduce.cli.demo:demo",
    "data": "distreduce.cli.data:app",
}
# What `distreduce --help` shows without importing the commands: their first sentences.
SUMMARIES = {
    "fit": "Reduce your table to a picture with prototypes, fit a predictor with uncertainty, and write a report.",
    "transform": "Place new rows in the picture: the place of each row and the prototype nearest to that place.",
    "predict": "Predict new rows: mean, standard deviation and 5, 50, 95 % quantiles; or class and probabilities.",
    "score": "Score the predictor of a folder on rows whose targets are known.",
    "report": "Write report.html of a fit again; its rows are read from the fitted file.",
    "demo": "Fit 600 handwritten digits that come with scikit-learn, as `distreduce fit` fits your own file.",
    "data": "List, fetch and verify data sets.",
    "bench": "Time fits on this machine, each next to a reference, with the score of both.",
    "reproduce": "Rebuild the paper's tables and figures next to its own numbers.",
}


class LazyGroup(TyperGroup):
    """Sub-commands that are imported when they are called; ``--help`` imports those of other packages only."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with `SUMMARIES` in place of the commands."""
        self._listing = True
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of our own commands, then those of other packages."""
        return [*COMMANDS, *sorted(entry_points(group=GROUP).names - COMMANDS.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        if getattr(self, "_listing", False) and cmd_name in SUMMARIES:
            return TyperCommand(cmd_name, help=SUMMARIES[cmd_name])
        if cmd_name in COMMANDS:
            return _load(EntryPoint(cmd_name, COMMANDS[cmd_name], GROUP))
        return next((_load(entry) for entry in entry_points(group=GROUP, name=cmd_name)), None)


def _load(entry: EntryPoint) -> Any:
    """Import a command: a Typer application, or a function whose parameters are the options."""
    settings: dict[str, Any] = {}
    try:
        found = entry.load()
    except Exception as error:
        if entry.name in COMMANDS:
            raise
        # A broken package must not take the other commands away: its own command reports the error.
        found = _make_failing(f"The command {entry.name!r} ({entry.value}) cannot be loaded: {error!r}.")
        # Whatever the options, the error is about the import.
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    if isinstance(found, typer.Typer):  # a group of commands, such as `data`
        command: Any = typer.main.get_group(found)
    else:
        single = typer.Typer(add_completion=False)
        single.command(context_settings=settings, add_help_option=not settings)(found)
        command = typer.main.get_command(single)
    command.name = entry.name
    return command


def _make_failing(sentence: str) -> Callable[[], None]:
    def fail() -> None:
        """Cannot be loaded."""
        raise DistReduceError(sentence)

    return fail


HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)


def main() -> None:
    """Run the command: an error is one sentence on standard error and exit code 1, wrong usage is exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # not every terminal has R²
    try:
        with _exit_on_signals():
            app(prog_name="distreduce")
    except DistReduceError as error:
        _fail(str(error))
    except OSError as error:
        named = f": {error.filename}" if error.filename else ""  # a full disk names no file
        _fail(f"{error.strerror}{named}." if error.strerror else str(error))


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that cleans up; a signal that is ignored (nohup) stays ignored."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)  # the convention of shells

    # Python allows handlers in the main thread only, and Windows has no SIGHUP.
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
    """Print one line on standard error and exit; names from files must neither control the terminal nor fill it."""
    line = strip_control(sentence)
    typer.echo(f"distreduce: {line[:MAX_ERROR] + '…' if len(line) > MAX_ERROR else line}", err=True)
    sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"distreduce {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Turn a table into a picture with a few prototypes, and predict one of its columns with uncertainty.

    Begin with `distreduce fit houses.csv --target price`, and open distreduce-houses/report.html.
    """
