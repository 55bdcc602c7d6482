"""``distreduce transform | predict | report`` on a folder of which one file comes from a stranger."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

from hostile.originals import table

from distreduce.cli.main import main
from distreduce.exceptions import DistReduceError

COMMANDS = {
    "model.safetensors": "transform", "embedding.csv": "report", "metrics.json": "report", "held_out.csv": "report"
}  # fmt: skip


class CommandRefusedError(DistReduceError):
    """The command ended with exit code 1 and one sentence."""


@cache
def fitted_folder() -> dict[str, bytes]:
    """The files that ``distreduce fit`` wrote, and one of new rows."""
    with tempfile.TemporaryDirectory() as place:
        where = Path(place)
        table().to_csv(where / "t.csv", index=False)
        options = ["-t", "price", "--prototypes", "4", "--quiet", "--out", str(where / "fit")]
        code, said = run(["fit", str(where / "t.csv"), *options])
        assert code == 0, said
        files = {path.name: path.read_bytes() for path in (where / "fit").iterdir() if path.suffix != ".html"}
    return {**files, "t.csv": _csv(), "new.csv": _csv()}


def _csv() -> bytes:
    return table().to_csv(index=False).encode()


def run(arguments: list[str]) -> tuple[int, str]:
    """Exit code and standard error of the command, in this process."""
    screen = io.StringIO()
    with patch.object(sys, "argv", ["distreduce", *arguments]), redirect_stdout(io.StringIO()), redirect_stderr(screen):
        try:
            main()
        except SystemExit as stopped:
            return int(stopped.code or 0), screen.getvalue()
    raise AssertionError("the command did not end")


def run_on(path: Path) -> None:
    """The command that reads a file of that name, all others being as they were."""
    folder = path.parent
    for name, content in fitted_folder().items():
        if name != path.name:
            (folder / name).write_bytes(content)
    command = COMMANDS.get(path.name, "predict")
    new = [] if command == "report" else [str(folder / "new.csv"), "--overwrite", "--out", str(folder / "answers.csv")]
    data = ["--data", str(folder / "t.csv")] if command == "report" else []
    code, said = run([command, str(folder), *new, *data, "--quiet"])
    if code not in (0, 1) or (code == 1 and (said.count(os.linesep) != 1 or len(said) > 3000)):
        raise AssertionError(f"exit code {code} and {said!r:.300}")
    if code == 1:
        raise CommandRefusedError(said)
