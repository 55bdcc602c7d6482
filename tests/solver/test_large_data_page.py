"""docs/large-data.md: the blocks that need no cluster run, one after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "large-data.md"


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
def test_blocks_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks:
        if "dask" not in block:
            fewer = block.replace("20_000", "5_500")  # as few as are still in shards
            exec(compile(fewer, str(PAGE), "exec"), names)  # noqa: S102  the page is ours
    assert capsys.readouterr().out == "(100, 2) (500, 20)\n" and names["places"].shape == (5_500, 2)
