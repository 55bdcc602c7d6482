"""The page under results/paper is what its records give, byte for byte."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from distreduce_paper.report.write import write_report
from distreduce_paper.store import Store

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "paper"
PINNED = dict(
    line.split(";")[0].strip().split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if "==" in line and not line.startswith("#")
)


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    for name in ("matplotlib", "numpy", "pandas"):  # drawings, and the last digits of what they show
        if version(name) != PINNED[name]:
            pytest.skip(f"the page is that of {name} {PINNED[name]}, and this is {version(name)}")
    out = tmp_path_factory.mktemp("page")
    return out, write_report(Store(COMMITTED), out)


def test_every_file_is_rebuilt_byte_for_byte(rebuilt):
    out, files = rebuilt
    other = [path.name for path in files if path.read_bytes() != (COMMITTED / path.relative_to(out)).read_bytes()]
    assert other == []


def test_no_drawing_is_left_over(rebuilt):
    out, files = rebuilt
    assert {path.name for path in COMMITTED.glob("figures/*.svg")} == {
        path.name for path in files if path.suffix == ".svg"
    }
