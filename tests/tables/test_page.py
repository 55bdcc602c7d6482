"""docs/command-line.md: its Python runs, and the options it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from distreduce.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")


def test_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(compile("\n".join(blocks), "command-line.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    assert capsys.readouterr().out == re.search(r"# (\[.*\])", "".join(blocks))[1] + "\n"


def test_every_option_of_the_page_exists():
    commands = [
        get_command(app).get_command(None, name) for name in ("fit", "transform", "predict", "score", "report", "bench")
    ]
    known = {option for command in commands for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) - known == {"--help", "--install-completion"}
