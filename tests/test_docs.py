"""The pages are true: Python blocks run, links and paths lead somewhere, and the text is plain English."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "distreduce"
needs_source = pytest.mark.skipif(not SOURCE.exists(), reason="the wheel is tested without the sources")
PAGES = sorted(page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if "_build" not in page.parts)
DIALECT = re.compile(
    r"\ba row a \b|numbers that are none|is no number|gone on from|of no account|\bis none\b", re.IGNORECASE
)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    if page == "README.md":  # the test below runs its first block; the others need what it imports
        blocks[0] = "\n".join(line for line in blocks[0].splitlines() if line.startswith(("from ", "import ")))
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages


@pytest.mark.slow
def test_the_first_example_takes_well_under_a_minute_with_compilation(tmp_path):
    """Of processor time, which does not depend on what else the machine does."""
    resource = pytest.importorskip("resource", reason="Windows does not count the time of a child")
    first = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE).group(1)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", first], cwd=tmp_path, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 45


@needs_source
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@needs_source
@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/theory.md"])
def test_files_that_a_page_names_exist(page):
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|js))?|\w+\.py)`", (ROOT / page).read_text()))
    assert named and [name for name in named if not ((SOURCE / name).exists() or (ROOT / name).exists())] == []


@needs_source
def test_every_room_is_in_the_tree_and_in_the_picture_of_the_layers():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    page, picture = (ROOT / "CONTRIBUTING.md").read_text(), (ROOT / "docs" / "img" / "layers.svg").read_text()
    assert [room for room in rooms if f"| `{room}/` |" not in page or f">{room}<" not in picture] == []


def test_tests_that_the_page_on_reliability_names_exist():
    found = re.findall(r"((?:\w+/)*test_\w+\.py): ((?:`test_\w+`(?:, )?)+)", (ROOT / "docs/reliability.md").read_text())
    named = [(file, name) for file, names in found for name in re.findall(r"`(\w+)`", names)]
    assert len(named) > 50
    assert [pair for pair in named if f"def {pair[1]}(" not in (ROOT / "tests" / pair[0]).read_text()] == []


def test_every_work_that_a_page_cites_is_in_the_references():
    listed = re.findall(r"^- \*\*\[(\w+)\]", (ROOT / "docs" / "references.md").read_text(), re.MULTILINE)
    cited = [key for page in PAGES for key in re.findall(r"\[\[(\w+)\]\]\(references.md\)", page.read_text())]
    assert set(cited) <= set(listed) and len(set(listed)) == len(listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_in_plain_english(page):
    assert DIALECT.findall(page.read_text()) == []
