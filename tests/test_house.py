"""The tree shows the architecture: layers, sizes, and words that nobody has to read twice."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from distreduce import SDR, DistR

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "distreduce"
LOOSE = {"__init__.py", "dependence.py", "exceptions.py", "kernels.py", "losses.py"}
DIALECT = re.compile(r"a row a |numbers that are none|is no number|gone on from|of no account", re.IGNORECASE)


def _sources() -> list[Path]:
    return [path for folder in ("src", "tests", "benchmarks", "campaigns") for path in (ROOT / folder).rglob("*.py")]


def test_rooms_import_only_from_below():
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_only_five_modules_stand_outside_a_room():
    assert {path.name for path in LIBRARY.glob("*.py")} == LOOSE


def test_no_file_is_too_long_to_read():
    assert [str(path) for path in (ROOT / "src").rglob("*.py") if len(path.read_text().splitlines()) > 400] == []


def test_the_library_stays_small():
    # The plan was 21,000; decision 20 says why it is more, and what would have to go. It must not grow from here.
    assert sum(len(path.read_text().splitlines()) for path in LIBRARY.rglob("*.py")) <= 30_820


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_constructors_stay_short(estimator):
    parameters = [p for p in inspect.signature(estimator).parameters.values() if p.kind != p.VAR_KEYWORD]
    assert len(parameters) <= 30


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_every_parameter_has_an_entry_of_its_own(estimator):
    names = [p.name for p in inspect.signature(estimator).parameters.values() if p.kind != p.VAR_KEYWORD]
    documented = re.findall(r"^    (\w+) : ", inspect.getdoc(estimator).replace("\n", "\n    "), re.MULTILINE)
    assert [name for name in names if name not in documented] == []


def test_no_sentence_of_the_old_dialect_is_left():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*_sources(), *pages]
        if path.name not in ("test_house.py", "test_docs.py")  # which hold these words as patterns
        for line in path.read_text().splitlines()
        if DIALECT.search(line)
    ]
    assert found == []
