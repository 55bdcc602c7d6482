"""Pages that campaigns wrote say what the campaigns found, and name every dependency."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOUND = ROOT / "results" / "campaigns" / "hostile_files.json"


def dependencies() -> list[str]:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(one for group in project["optional-dependencies"].values() for one in group)]
    names = {re.match(r"[\w.-]+", text).group().lower() for text in texts}  # type: ignore[union-attr]
    return sorted(names - {"distreduce"})


def test_every_dependency_has_its_licence_on_the_page() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    assert [name for name in dependencies() if f"| {name} |" not in page] == []


def test_no_licence_on_the_page_is_unknown() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    assert re.findall(r"not stated|not told|not installed here", page) == []


def test_what_users_install_has_no_strong_copyleft() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    (users,) = re.findall(r"\*\*core and extras\*\*: .*", page)
    assert "strong copyleft" not in users


def test_the_campaign_tried_a_hundred_thousand_files_and_found_no_fault() -> None:
    found = json.loads(FOUND.read_text())
    assert (found["inputs"] >= 100_000, found["faults"]) == (True, 0)


def test_the_page_on_reliability_has_the_numbers_of_the_campaign() -> None:
    page, found = (ROOT / "docs" / "reliability.md").read_text(), json.loads(FOUND.read_text())
    rows = [f"| {name} | {state['inputs']:,} |" for name, state in found["readers"].items()]
    assert [row for row in rows if row not in page] == []
