"""The page docs/datasets.md: its code runs and prints what it says, and its table has every name."""

from __future__ import annotations

import re
from pathlib import Path

from distreduce.datasets import names

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text()


def test_its_code_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
    exec(compile(code, "docs/datasets.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)


def test_its_table_has_every_name():
    assert [name for name in names() if f"`{name}`" not in PAGE] == []
