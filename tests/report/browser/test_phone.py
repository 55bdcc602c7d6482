"""What a phone shows without scrolling sideways."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.report import HeldOutClasses, write_report

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["numbers", "digits"])
def test_the_scores_fit_on_a_phone(page, pages, name):
    page.visit(pages / f"{name}.html", "phone")
    room, width = page.run(
        "const box = document.querySelector('table.scores').parentElement; return [box.clientWidth, box.scrollWidth]"
    )
    assert width <= room
    gaps = page.run(  # an R² of 0.991 and an RMSE of 62.85 were read as 0.99162.85
        """const cells = [...document.querySelectorAll("table.scores td")], range = document.createRange();
        for (const cell of cells) cell.textContent = "−0.0002";
        const ends = cells.map((cell) => { range.selectNodeContents(cell); return range.getBoundingClientRect(); });
        return ends.slice(1).map((box, k) => box.left - ends[k].right).filter((gap) => gap > 0);"""
    )
    assert min(gaps) > 5


@pytest.mark.parametrize("width", ["desk", "phone"])
def test_the_confusion_of_six_classes_is_not_cut(page, tmp_path, classes, X, labels, width):
    names = ["Ash", "Birch", "Oak", "Scots pine", "Silver maple", "Willow"]
    held_out = HeldOutClasses(names, np.eye(6), names)
    page.visit(write_report(tmp_path / "six.html", classes, X, labels, held_out=held_out), width)
    room, needed = page.run(
        "const box = document.querySelector('table.confusion').parentElement; return [box.clientWidth, box.scrollWidth]"
    )
    assert needed <= room


@pytest.mark.parametrize("width", ["desk", "phone"])
def test_what_is_expected_of_a_worst_sample_is_not_cut(page, tmp_path, numbers, X, lengths, width):
    """Of "377,547 (305,000 to 452,000)" the end was cut."""
    written = write_report(tmp_path / "r.html", numbers, X, lengths)
    page.visit(written, width)
    cells = page.run(
        "const cells = [...document.querySelectorAll('table.worst td:nth-child(3)')];"
        "for (const cell of cells) cell.textContent = '377,547 (305,000 to 452,000 or more)';"
        "return cells.map((cell) => cell.scrollWidth - cell.clientWidth)"
    )
    assert cells and max(cells) <= 0
