"""The documentation site builds without a warning, runs its gallery, lists all public names and needs no network."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from inspect import isfunction, ismodule
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx")
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
PUBLIC = (
    *("distreduce", "distreduce.gp", "distreduce.baselines", "distreduce.metrics", "distreduce.datasets"),
    *("distreduce.plotting", "distreduce.report", "distreduce.interop", "distreduce.interop.anndata"),
    *("distreduce_paper", "distreduce.exceptions"),
)


def build_site(root):
    """The site and the output of Sphinx. Built from a copy, because the build writes pages beside the sources.

    The gallery's scripts learn from 200 samples here: `make docs` draws the figures, here they have to run.
    """
    for entry in ROOT.iterdir():  # pages include and link to files of the whole checkout
        if entry.is_file():
            shutil.copy(entry, root)
        elif entry != DOCS:
            (root / entry.name).symlink_to(entry)
    shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns("_build", "_gallery", "generated"))
    for script in (root / "docs" / "gallery").glob("*.py"):
        split = r"(train_test_split\(X(?: / 16)?, y, )(?:train_size=\d+, )?"
        script.write_text(re.sub(split, r"\1train_size=200, ", script.read_text()))
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", "html"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    build = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return root / "html", build


@pytest.mark.slow
def test_the_site_builds_without_a_warning_runs_its_gallery_and_needs_no_network(tmp_path):
    """One test, because two processes of pytest would build the site twice."""
    html, build = build_site(tmp_path)
    assert build.returncode == 0, build.stderr
    cases = ElementTree.parse(html / "gallery.xml").findall("testcase")
    ran = {Path(case.attrib["file"]).name for case in cases if len(case) == 0}
    assert ran == {script.name for script in SCRIPTS}
    pages = list(html.rglob("*.html"))
    loaded = [
        (page.name, address)
        for page in pages
        for address in re.findall(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="((?:https?:)?//[^"]*)', page.read_text()
        )
    ]
    assert pages and loaded == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_are_short(script):
    assert len(script.read_text().splitlines()) <= 60


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference(name):
    module = importlib.import_module(name)
    pages = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    listed = set(re.findall(r"^ {3}(?:\w+\.)*(\w+)$", pages, re.MULTILINE))
    assert public_names(module) - listed == set()


def public_names(module):
    """Names in ``__all__``, or else the functions and exceptions that the module defines."""
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__]
    plain = [name for name in own if isfunction(getattr(module, name)) or module.__name__.endswith("exceptions")]
    public = [name for name in getattr(module, "__all__", plain) if not name.startswith("_")]
    not_ours = {"NAMES", "PCA"}  # a tuple, and scikit-learn's
    return {name for name in public if not ismodule(getattr(module, name))} - not_ours
