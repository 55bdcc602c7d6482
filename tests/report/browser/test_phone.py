"""What a phone shows without scrolling sideways."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["numbers", "digits"])
def test_the_scores_fit_on_a_phone(page, pages, name):
    page.visit(pages / f"{name}.html", "phone")
    room, width = page.run(
        "const box = document.querySelector('table.scores').parentElement; return [box.clientWidth, box.scrollWidth]"
    )
    assert width <= room
