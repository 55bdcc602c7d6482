"""Progress bars."""

from __future__ import annotations

import pytest
from rich.console import Console

from distreduce._utils.text import progress_bar


@pytest.mark.parametrize(
    ("terminal", "visible", "shown"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_bar_is_shown_on_terminals_if_wanted(terminal, visible, shown, monkeypatch, capsys):
    monkeypatch.setattr(Console, "is_terminal", terminal)
    with progress_bar("{task.description}", visible=visible) as bar:
        bar.add_task("work", total=1)
    assert ("work" in capsys.readouterr().err) == shown


def test_a_hidden_bar_leaves_no_empty_line(capsys):
    with progress_bar():
        pass
    assert capsys.readouterr() == ("", "")
