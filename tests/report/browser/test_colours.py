"""Colours and shapes of samples, prototypes and legend."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce.plotting.palette import colour_by_target
from distreduce.report import write_report

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "theme"), [("desk", "light"), ("phone", "dark")])
def test_the_colour_switch_recolours_samples_and_legend(page, pages, width, theme):
    from selenium.webdriver.support.select import Select

    page.visit(pages / "numbers.html", width, theme)
    before = page.run("return [...colours.samples]")
    Select(page.driver.find_element("id", "colour-by")).select_by_visible_text("species")
    page.wait()
    assert page.text("#legend").startswith("species\nsetosa\nversicolor\nvirginica")
    assert page.run("return [...colours.samples]") != before


def test_samples_have_the_colours_of_the_plots(page, pages, classes, X, labels):
    page.visit(pages / "hostile.html")
    order, drawn = page.run("return [[...rows], [...colours.samples]]")
    expected = colour_by_target(classes, labels, 0).samples[order, :3] * 255
    np.testing.assert_allclose(np.reshape(drawn, (-1, 3)), expected, atol=1)
    marks, numbers = page.run("return [colours.prototypes, data.prototypes.number]")
    np.testing.assert_allclose(marks, colour_by_target(classes, labels, 0).prototypes[numbers, :3] * 255, atol=1.5)


@pytest.mark.parametrize("kind", [float, str])
def test_a_mark_whose_samples_all_lack_a_value_is_grey(page, tmp_path, classes, X, labels, kind):
    T = classes.coupling_.toarray()
    k = int(T.sum(axis=0).argmax())
    table = pd.DataFrame({"fage": pd.Series(np.arange(150) % 3).map(kind).mask(T[:, k] > 0)})
    page.visit(write_report(tmp_path / "r.html", classes, X, labels, table=table))
    marks, grey, numbers, said = page.run(
        "state.colouring = 1; recolour();"
        "return [colours.prototypes, GREY, data.prototypes.number,"
        "data.prototypes.number.map((_, k) => prototypeText(current(), k))]"
    )
    own = numbers.index(k)
    assert marks[own] == grey and said[own] == "not known" and grey in marks and not all(mark == grey for mark in marks)


def test_a_mixed_mark_has_a_gap_instead_of_another_colour(page, pages):
    page.visit(pages / "hostile.html")
    seen = page.run(
        "const canvas = document.createElement('canvas'), context = canvas.getContext('2d'), found = [];"
        "for (const share of [1, 0.5]) {"
        "mark(context, [40, 40], 30, 0, 'rgb(0,114,178)', 'rgb(9,9,9)', {share});"
        "for (const x of [40, 60, 67]) found.push([...context.getImageData(x, 40, 1, 1).data].slice(0, 3)); }"
        "return [...found, fromHex(cssColour('card'))]"
    )
    blue, card = [0, 114, 178], seen.pop()
    assert seen == [blue, blue, blue, blue, card, blue]


def test_a_quarter_of_skewed_numbers_has_a_quarter_of_the_colours(page, pages):
    page.visit(pages / "numbers.html")
    skewed = page.run(
        "return [0, 1, 10, 55, 100, 200].map((v) => onScale({shown: [0, 1, 10, 100, 1000]}, v).map(Math.round))"
    )
    even = page.run("return [0, 1, 2, 2.5, 3, 3 + 1 / 9].map((v) => onScale({shown: [0, 4]}, v).map(Math.round))")
    assert skewed == even
    ends = page.run("return scaleBar({kind: 'number', low: 0, high: 1000, shown: [0, 1, 10, 100, 1000]})[1].innerText")
    assert ends == "0101,000"
    assert page.run("return [numberText(1993.2), numberText(1993.2, 'year')]") == ["1,993", "1993"]


def test_dates_are_dates_in_the_legend(page, pages):
    page.visit(pages / "numbers.html")
    page.run("const s = byId('colour-by'); s.value = [...s.options].find((o) => o.text === 'day').value;"
             "s.dispatchEvent(new Event('change'))")  # fmt: skip
    assert page.text("#legend").startswith("day\n2024-01-01\n2024-05-29")


def test_a_class_of_the_legend_can_be_picked_out(page, pages):
    page.visit(pages / "hostile.html")
    page.driver.find_element("css selector", "#legend button").click()
    assert page.run("return [state.highlighted, document.querySelector('#legend button').ariaPressed]") == [0, "true"]


@pytest.fixture(scope="module")
def many(tmp_path_factory, X, unsupervised):
    """A page of 24 classes."""
    y = pd.Series([f"c{k:02}" for k in np.arange(150) % 24], name="class")
    return write_report(tmp_path_factory.mktemp("many") / "many.html", unsupervised, X, y)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_of_24_marks_of_the_legend_look_alike(page, many, theme):
    page.visit(many, theme=theme)
    marks = page.run("return [...document.querySelectorAll('#legend button .swatch-mark')].map((c) => c.toDataURL())")
    assert len(set(marks)) == len(marks) == 24


def test_shapes_on_the_map_cover_the_area_of_a_disc(page, many):
    page.visit(many)
    areas = page.run("return data.shapes.map((_, s) => stamp(20, s).reduce((sum, [, , share]) => sum + share, 0))")
    np.testing.assert_allclose(areas, np.pi * 20**2, rtol=0.02)


def test_a_prototype_is_drawn_in_the_shape_of_its_class(page, many):
    page.visit(many)
    filled = page.run(
        """const c = layers.prototypes.getContext("2d"), colour = "rgb(0,0,0)", r = 20;
        return [1, 2].map((shape) => {
          c.clearRect(0, 0, view.width, view.height);
          mark(c, [100, 100], r, shape, colour, colour);
          return [[-15, -15], [0, -25], [0, 0]].map(([x, y]) => c.getImageData(100 + x, 100 + y, 1, 1).data[3] > 0);
        })"""
    )
    assert filled == [[True, False, True], [False, True, True]]  # a square has corners, a triangle a top
