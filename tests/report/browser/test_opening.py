"""The page opens in a real browser, at the width of a desk and of a phone, light and dark."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from browser_page import HOSTILE, WIDTHS
from distreduce.report import write_report

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["digits", "numbers", "hostile", "plain"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_opens_without_a_complaint_and_without_the_network(page, pages, name, width, theme):
    page.visit(pages / f"{name}.html", width, theme)
    page.point_at(page.top(), click=True)
    complaints = page.driver.get_log("browser")
    events = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert complaints == [] and asked == [(pages / f"{name}.html").as_uri()]


@pytest.mark.parametrize("name", ["digits", "numbers", "hostile", "plain"])
def test_nothing_is_wider_than_a_phone(page, pages, name):
    page.visit(pages / f"{name}.html", "phone")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", WIDTHS)
def test_text_is_large_enough_to_read(page, pages, width):
    page.visit(pages / "numbers.html", width)
    smallest = page.run(
        """open(0);
        const isText = (e) => !e.childElementCount && e.textContent.trim() && !e.closest("svg");
        const shown = (e) => isText(e) && e.getClientRects().length;
        const sizes = [...document.body.querySelectorAll("*")].filter(shown).map((e) => getComputedStyle(e).fontSize);
        return Math.min(...sizes.map(parseFloat))"""
    )
    assert smallest >= 12


def test_hostile_text_is_shown_as_it_is(page, pages):
    page.visit(pages / "hostile.html")
    page.run("open(0)")
    title, rows = (
        page.text("h1"),
        page.run("return [...document.querySelectorAll('#panel tbody th')].map((t) => t.title)"),
    )
    assert title == HOSTILE and HOSTILE in rows and page.run("return document.querySelector('b[onmouseover]') === null")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_map_follows_the_theme(page, pages, theme):
    page.visit(pages / "digits.html", theme=theme)
    corner = page.run("return [...layers.samples.getContext('2d').getImageData(1, 1, 1, 1).data]")
    assert (sum(corner[:3]) > 384) == (theme == "light")


def test_print_is_light(page, pages):
    page.visit(pages / "digits.html", theme="dark")
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.wait()
    corner = page.run("return [...layers.samples.getContext('2d').getImageData(1, 1, 1, 1).data]")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert corner == [255, 255, 255, 255]


def test_fifty_thousand_samples_are_drawn_from_a_small_file(page, tmp_path, classes, X, labels):
    big, times, rng = copy.deepcopy(classes), 334, np.random.default_rng(0)
    for name in ("embedding_", "embedding_left_out_"):
        setattr(big, name, np.tile(getattr(classes, name), (times, 1)) + rng.normal(size=(150 * times, 2)) / 9)
    big.labels_ = np.tile(classes.labels_, times)
    big.coupling_ = classes.coupling_[np.tile(np.arange(150), times)]
    path = write_report(tmp_path / "big.html", big, np.tile(X, (times, 1)), np.tile(labels, times))
    page.visit(path)
    page.run("drawSamples(); drawPrototypes(); return true")
    assert path.stat().st_size < 3e6
