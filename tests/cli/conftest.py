"""Fixtures of the tests of the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from cli.quick_predictor import quick_predictor

from distreduce.cli.main import main
from distreduce.report import renderer


@pytest.fixture
def quick() -> Iterator[None]:
    """A predictor of a fraction of the time, where any predictor will do."""
    with quick_predictor():
        yield


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """``call("fit", "t.csv")`` returns exit code, standard output and standard error, from an empty folder.

    Charts of the page are left empty, which halves the time of a fit; test_page.py and test_apply.py draw them.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(renderer, "draw_svg", lambda *_, **__: '<svg viewBox="0 0 9 9" width="9pt" height="9pt"></svg>')

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["distreduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run
