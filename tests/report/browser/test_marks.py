"""Marks lie whole on the map, however large they are, and can be clicked on as far as they reach."""

from __future__ import annotations

import numpy as np
import pytest

from browser_page import WIDTHS
from distreduce import SDR
from distreduce.report import write_report

# The classes below have nothing to do with X.
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::distreduce.exceptions.NoSignalWarning")]


@pytest.fixture(scope="module")
def few(tmp_path_factory, X):
    """Pages of three prototypes that lie at the edges of the map, with discs and with shapes that reach further."""
    folder = tmp_path_factory.mktemp("few")
    for name, n_classes in (("discs", 3), ("shapes", 24)):
        y = np.arange(150) % n_classes
        model = SDR(n_prototypes=3, task="classification", random_state=0, max_iter=2, tol=1.0).fit(X, y)
        model.prototypes_, model.prototype_weights_ = np.eye(3, 2), np.array([0.9, 0.05, 0.05])
        model.embedding_ = model.embedding_left_out_ = model.prototypes_[model.labels_]
        write_report(folder / f"{name}.html", model, X, y)
    return folder


@pytest.mark.parametrize("name", ["discs", "shapes"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_mark_is_cut_off_at_the_edge(page, few, name, width):
    page.visit(few / f"{name}.html", width)
    least = page.run(
        """return Math.min(...view.radii.map((radius, k) => {
          const [x, y] = placeOf(k), reach = radius * reaches[colours.shapes[k]];
          return Math.min(x, y, view.width - x, view.height - y) - reach;
        }))"""
    )
    assert least >= 7  # room for the ring of a focused mark


def test_every_tip_of_a_mark_is_part_of_it_and_the_gap_between_two_is_not(page, few):
    page.visit(few / "shapes.html")
    found = page.run(
        """const star = data.shapes.length - 1, [x, y] = placeOf(0), r = view.radii[0];
        colours.shapes[0] = star;
        const at = (far) => ([a, b]) => under(x + far * r * a, y - far * r * b, 6).prototype;
        return data.shapes[star].map(at(0.97)).concat(data.shapes[star].filter((_, i) => i % 2).map(at(1.2)))"""
    )
    assert found == [0] * 10 + [-1] * 5
