"""What the panel of a selected prototype shows, and how it closes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytestmark = pytest.mark.browser


def test_the_panel_shows_images_of_medoid_and_neighbours(page, pages):
    page.visit(pages / "digits.html").point_at(0, click=True)
    shown = page.run("return document.querySelectorAll('#panel .images canvas').length")
    assert shown == page.run("return data.details.nearest[state.selected].length")


def test_images_have_the_pixels_of_the_sample(page, pages):
    page.visit(pages / "digits.html")
    row, grey = page.run(
        """open(0); const c = document.querySelector("#panel .images canvas");
        return [data.details.rows[data.details.nearest[0][0]],
                [...c.getContext("2d").getImageData(0, 0, 8, 8).data].filter((_, i) => i % 4 === 0)]"""
    )
    np.testing.assert_allclose(grey, load_digits().data[row] / 16 * 255, atol=0.51)


def test_the_panel_shows_the_row_of_the_medoid(page, pages, numbers, X):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    medoid = numbers.prototype_medoids_[page.number(0)]
    cells = page.run(
        """const lines = [...document.querySelectorAll("#panel tbody tr")];
        return lines.map((line) => [line.cells[0].innerText, line.cells[1].innerText])"""
    )
    assert ["petal", f"{X[medoid, 2]:g}"] in cells


def test_the_panel_says_mean_and_spread(page, pages, numbers, lengths):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    members = lengths[numbers.labels_ == page.number(0)]
    assert f"{members.mean():.4g} ± {members.std(ddof=0):.4g}" in page.text("#panel .essentials")


def test_selected_is_the_only_prototype_at_full_strength(page, pages):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    page.wait()
    strength = page.run(
        """const c = layers.prototypes.getContext("2d"), f = frame();
        return [0, nPrototypes - 1].map((k) => c.getImageData(...placeOf(k, f), 1, 1).data[3])"""
    )
    assert strength[0] > 230 > 160 > strength[1]


def test_escape_closes(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html").point_at(page.top(), click=True)
    page.press(Keys.ESCAPE)
    assert page.text("#panel").startswith("Nothing is selected")


def test_the_button_closes(page, pages):
    page.visit(pages / "digits.html", "phone").point_at(page.top(), click=True)
    page.driver.find_element("id", "close").click()
    assert page.run("return state.selected") == -1
