"""Finding a row or a column, choosing rows with the lasso, and saving rows and map."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from browser_page import WIDTHS
from distreduce import SDR
from distreduce.report import write_report

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"


def search(page, field, text):
    from selenium.webdriver.common.keys import Keys

    box = page.driver.find_element("id", field)
    box.clear()
    box.send_keys(text, Keys.ENTER)
    page.wait()


def drag_around(page, corners):
    """Draw with the pointer around corners given as shares of the map."""
    from selenium.webdriver.common.action_chains import ActionChains

    left, top, width, height = page.run(
        "const b = byId('map').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]"
    )
    chain = ActionChains(page.driver, duration=0)
    pointer = chain.w3c_actions.pointer_action
    for place, (x, y) in enumerate(corners):
        pointer.move_to_location(round(left + x * width), round(top + y * height))
        if place == 0:
            pointer.pointer_down()
    pointer.pointer_up()
    chain.perform()
    page.wait()


def saved(page, button):
    """What a button saves, as name and text."""
    return page.driver.execute_async_script(
        """const done = arguments[1], make = URL.createObjectURL;
        let blob = null;
        URL.createObjectURL = (given) => { blob = given; return "blob:none"; };
        HTMLAnchorElement.prototype.click = function () {
          URL.createObjectURL = make;
          new Response(blob).arrayBuffer().then((raw) => done([this.download, [...new Uint8Array(raw)]]));
        };
        byId(arguments[0]).click();""",
        button,
    )


def saved_rows(page):
    name, raw = saved(page, "save-rows")
    assert name == "rows.csv"
    return list(csv.DictReader(io.StringIO(bytes(raw).decode("utf-8"))))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_is_found_by_its_number(page, pages, width):
    page.visit(pages / "numbers.html", width)
    search(page, "find-row", "17")
    assert page.run("return [rows[state.pointed], labels[state.pointed] === state.selected]") == [17, True]
    search(page, "find-row", "1700")
    assert page.text("#found") == "Row 1700 is not on the map."


@pytest.mark.parametrize("width", WIDTHS)
def test_the_lasso_chooses_the_rows_inside_it(page, pages, width):
    page.visit(pages / "numbers.html", width)
    page.driver.find_element("id", "lasso").click()
    page.run("byId('map').scrollIntoView({block: 'center'})")
    drag_around(page, [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98)])
    # Of rows within two pixels of the edge the lasso may take either.
    side = "f.ax * places.x[i] + f.bx - view.width / 2"
    sides = page.run(f"const f = frame(); return [...rows].map((row, i) => [row, {side}])")
    found = {int(line["row"]) for line in saved_rows(page)}
    assert {row for row, x in sides if x < -2} <= found <= {row for row, x in sides if x < 2}
    assert 0 < len(found) < 150


def test_without_a_choice_all_rows_are_saved_as_the_table_has_them(page, pages, X, lengths, labels):
    lines = saved_rows(page.visit(pages / "numbers.html"))
    assert [int(line["row"]) for line in lines] == list(range(150))
    np.testing.assert_allclose([float(line["petal"]) for line in lines], X[:, 2], rtol=1e-3)
    np.testing.assert_allclose([float(line["length"]) for line in lines], lengths, rtol=1e-3)
    assert [line["species"] for line in lines] == labels.tolist() and lines[31]["day"] == "2024-02-01"


def test_the_rows_of_the_open_prototype_are_saved(page, pages):
    page.visit(pages / "numbers.html").run("open(0)")
    assert {line["prototype"] for line in saved_rows(page)} == {str(page.number(0))}


def test_what_a_spreadsheet_would_run_is_saved_as_text(page, tmp_path, classes, X, labels):
    table = pd.DataFrame({"a": ["=1+1", 'x "y", z', "@b"] * 50})
    page.visit(write_report(tmp_path / "r.html", classes, X, labels, table=table))
    assert {line["a"] for line in saved_rows(page)} == {"'=1+1", 'x "y", z', "'@b"}


@pytest.mark.parametrize("name", ["numbers", "digits", "hostile", "plain"])
def test_the_map_is_saved_as_svg_with_all_its_marks(page, pages, name):
    page.visit(pages / f"{name}.html")
    file, raw = saved(page, "save-svg")
    drawing = ET.fromstring(bytes(raw).decode("utf-8"))  # noqa: S314  # our own
    samples, prototypes = page.run("return [nSamples, nPrototypes]")
    filled = [each for each in drawing.iter(f"{SVG}path") if each.get("fill") != "none"]
    assert file == "map.svg" and len(filled) >= samples + prototypes
    texts = [each.text for each in drawing.iter(f"{SVG}text")]
    assert any("→" in text for text in texts)


def test_the_map_is_saved_as_png_of_twice_its_size(page, pages):
    page.visit(pages / "digits.html")
    name, raw = saved(page, "save-png")
    width = int.from_bytes(bytes(raw[16:20]), "big")
    assert name == "map.png" and raw[1:4] == [80, 78, 71]
    assert width == page.run("return Math.floor(2 * (view.width + KEY_WIDTH))")


def test_a_column_among_many_is_found_by_its_name(page, tmp_path, classes, X, labels):
    table = pd.DataFrame(np.tile(X, 10), columns=[f"gene {k}" for k in range(40)])
    page.visit(write_report(tmp_path / "r.html", classes, X, labels, table=table))
    search(page, "find-column", "NE 33")
    assert page.run("return current().name") == "gene 33"
    assert page.run("return document.querySelectorAll('#colour-by option').length") == 2


def test_few_columns_need_no_search(page, pages):
    page.visit(pages / "numbers.html")
    assert page.run("return byId('find-column').closest('label').hidden")


def test_a_long_legend_says_how_many_classes_are_further_down(page, tmp_path, rng):
    y = np.repeat([f"class {k}" for k in range(120)], 2)
    X = rng.normal(size=(240, 3))
    model = SDR(n_prototypes=130, random_state=0, max_iter=1, tol=1.0).fit(X, y)
    page.visit(write_report(tmp_path / "r.html", model, X, y))
    hidden = page.run(
        """const list = document.querySelector("#legend ul"), box = list.getBoundingClientRect();
        return [...list.children].filter((e) => e.getBoundingClientRect().bottom > box.bottom + 1).length"""
    )
    assert hidden > 50 and f"120 classes, {hidden} of them further down" in page.text("#legend")


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_charts_neither_touch_nor_leave_the_drawing(page, tmp_path, numbers, X, lengths, width):
    from distreduce.report import HeldOut

    y = 40_000 * np.asarray(lengths)
    held_out = HeldOut(y, y - 1e5, np.full(150, 3e4))
    page.visit(write_report(tmp_path / "r.html", numbers, X, lengths, held_out=held_out), width)
    clashes = page.run(
        """const found = [];
        document.querySelectorAll("details").forEach((e) => { e.open = true; });
        for (const chart of document.querySelectorAll("svg.chart")) {
          const room = chart.getBoundingClientRect();
          const boxes = [...chart.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
          boxes.forEach(([text, a], i) => {
            if (a.left < room.left - 1 || a.right > room.right + 1) found.push(`${text} leaves`);
            for (const [other, b] of boxes.slice(i + 1)) {
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (across > 4 && down > 4) found.push(`${text} on ${other}`); // boxes have air around the digits
            }
          });
        }
        return found"""
    )
    assert clashes == []
