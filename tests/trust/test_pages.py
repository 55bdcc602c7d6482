"""Pages that campaigns wrote say what the campaigns found, and name every dependency."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOUND = ROOT / "results" / "campaigns" / "hostile_files.json"
KILLS = ROOT / "results" / "campaigns" / "kills.json"


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
    assert re.findall(r"not stated|unknown|not installed here", page) == []


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


def test_fifty_kills_and_more_cost_no_bit_and_at_most_one_iteration() -> None:
    kinds = json.loads(KILLS.read_text()).values()
    most = max(int(count) for kind in kinds for count in kind["iterations lost"])
    assert (sum(kind["kills"] for kind in kinds) >= 50, sum(kind["differ"] for kind in kinds), most <= 1) == (
        True,
        0,
        True,
    )


def test_the_page_on_reliability_has_the_numbers_of_the_kills() -> None:
    page, found = (ROOT / "docs" / "reliability.md").read_text(), json.loads(KILLS.read_text())
    rows = [f"| {kind} | {state['fits']} | {state['kills']} |" for kind, state in found.items()]
    assert [row for row in rows if row not in page] == []
