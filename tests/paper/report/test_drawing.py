"""Vector drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest

from distreduce_paper.report.drawing import draw_figure, method_style


def draw(figure):
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], label="a < b & c", clip_on=True)
    ax.legend()


def one(name="curve"):
    return draw_figure(name, "A curve.", (3.0, 2.0), draw).svg


def test_a_drawing_comes_out_the_same_twice():
    assert one() == one()


def test_a_drawing_is_well_formed_and_says_what_was_written():
    texts = [element.text for element in ElementTree.fromstring(one()).iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b & c" in texts


def test_every_reference_points_into_the_same_drawing():
    root = ElementTree.fromstring(one())
    names = {element.get("id") for element in root.iter()}
    used = {value.split("#")[1].rstrip(")") for e in root.iter() for value in e.attrib.values() if "#curve" in value}
    assert used and used <= names


def test_two_drawings_share_no_name():
    first, second = ({e.get("id") for e in ElementTree.fromstring(one(name)).iter()} - {None} for name in "ab")
    assert not first & second


def test_matplotlib_is_left_as_it_was():
    def settings():  # the backend is looked up when it is first read
        return {name: value for name, value in mpl.rcParams.items() if name != "backend"}

    before = settings()
    one()
    assert settings() == before


@pytest.mark.parametrize("method", ["SDR", "SDR-GP", "DKL", "ARD GP"])
def test_a_method_itself_is_solid(method):
    assert method_style(method)["linestyle"] == "-"


def test_variants_are_dashed():
    assert method_style("DKL-pretrained")["linestyle"] == "--"


def test_rows_of_ours_are_told_apart():
    names = ("SDR-GP", "SDR-GP, embedding alone", "SDR-GP, paper's recipe", "SDR-GP, paper's algorithm")
    assert len({method_style(name)["color"] for name in names}) == len(names)


def test_an_added_method_has_a_style():
    assert method_style("my own")["marker"] == "x"
