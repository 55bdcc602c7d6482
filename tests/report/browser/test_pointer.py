"""What the pointer finds on the map: hints, the panel, zoom."""

from __future__ import annotations

import numpy as np
import pytest

from browser_page import WIDTHS

pytestmark = pytest.mark.browser


def test_hover_on_a_prototype_shows_the_essentials(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    assert all(
        word in page.text("#tip") for word in (f"Prototype {page.number(page.top())}", "the fit believes: ", "weight: ")
    )


def test_hover_shows_the_image_of_the_medoid(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    assert page.run("return document.querySelector('#tip canvas').width") == 8


def test_hover_on_a_sample_shows_its_row_and_target(page, pages):
    page.visit(pages / "numbers.html")
    place = page.run(
        """const f = frame(), b = byId("map").getBoundingClientRect();
        for (let i = 0; i < nSamples; i++) {
          const x = f.ax * places.x[i] + f.bx, y = f.ay * places.y[i] + f.by;
          const found = under(Math.round(x + b.left) - b.left, Math.round(y + b.top) - b.top, 6);
          if (found.sample >= 0) return [x + b.left, y + b.top, rows[found.sample]];
        }"""
    )
    page.point(*place[:2])
    assert page.text("#tip").startswith(f"Sample in row {place[2]}\nlength: ")


def test_the_hint_goes_with_the_pointer(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    page.point(3, 3)
    assert page.text("#tip") == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_click_opens_the_panel(page, pages, width):
    page.visit(pages / "digits.html", width)
    page.point_at(page.top(), click=True)
    assert page.text("#panel").startswith(f"Prototype {page.number(page.top())}\n")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_selected_mark_stays_in_sight(page, pages, width):
    page.visit(pages / "numbers.html", width)
    page.run("openFrom(null, 0)")
    page.wait()
    x, y = page.place(0)
    assert page.run(f"return byId('map').contains(document.elementFromPoint({x}, {y}))")


def test_heat_map_click_opens_its_column(page, pages):
    page.visit(pages / "digits.html")
    box = page.run(
        """const c = document.querySelector("canvas.heat"); c.scrollIntoView({ block: "center" });
        const b = c.getBoundingClientRect(), l = heatLayout(c);
        return [b.left + l.left + 2.5 * l.step, b.top + 5, l.each.order[2]]"""
    )
    page.point(*box[:2], click=True)
    assert page.run("return state.selected") == box[2]


def test_the_switch_moves_samples_to_their_fitted_places_and_back(page, pages, classes):
    page.visit(pages / "hostile.html")
    read = "return [[...places.x], [...rows], [...labels].map((k) => data.prototypes.number[k])]"
    left_out = page.run(read)
    page.driver.find_element("id", "fitted-places").click()
    page.wait()
    x, rows, labels = page.run(read)
    drawn, expected = np.array(x), classes.embedding_[rows, 0]
    assert np.corrcoef(drawn, expected)[0, 1] > 0.99999 and labels == classes.labels_[rows].tolist()
    assert not page.run("return byId('fitted-note').hidden")
    page.driver.find_element("id", "fitted-places").click()
    page.wait()
    assert page.run(read) == left_out != [x, rows, labels] and page.run("return byId('fitted-note').hidden")


def test_a_criticism_is_shown_on_the_map(page, pages):
    page.visit(pages / "digits.html")
    first = page.run("const b = document.querySelector('button.points'); b.click(); return b.innerText")
    assert page.run("return [String(rows[state.pointed]), state.selected === labels[state.pointed]]") == [first, True]
    assert page.run("return document.querySelectorAll('td.thumb canvas').length") == 10


def test_zoom_keeps_what_is_under_the_pointer(page, pages):
    page.visit(pages / "digits.html")
    before, after = page.run("const a = placeOf(3); zoomBy(4, ...a); return [a, placeOf(3)]")
    np.testing.assert_allclose(after, before, atol=0.6)
