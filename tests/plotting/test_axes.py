"""Plots as SVG: the same bytes again, ids of their own, and titles on the markers."""

from __future__ import annotations

import re

import matplotlib
import pytest

from distreduce.plotting.axes import clean_name, draw_svg


def draw(figure):
    figure.subplots().plot([0, 1, 2], [1, 0, 2], "o", gid="dots")


def test_equal_figures_have_equal_bytes():
    assert draw_svg(draw, (3, 2), name="a") == draw_svg(draw, (3, 2), name="a")


def test_ids_carry_the_name_and_references_follow():
    svg = draw_svg(draw, (3, 2), name="a b")
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    assert all(name.startswith("a-b-") for name in ids)
    assert set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg)) <= ids


def test_each_marker_has_its_title_as_text():
    svg = draw_svg(draw, (3, 2), name="a", titles={"dots": ["first", "<b>", "last"]})
    assert re.findall("<title>(.*?)</title>", svg) == ["first", "&lt;b&gt;", "last"]


def test_text_stays_text_and_settings_stay():
    before = dict(matplotlib.rcParams)
    assert ">2<" in draw_svg(draw, (3, 2), name="a", style={"font.size": 20}) and dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(("name", "clean"), [("a b/c", "a-b-c"), ("A_1-2", "A_1-2"), ("</svg>", "-svg-")])
def test_names_are_cleaned(name, clean):
    assert clean_name(name) == clean
