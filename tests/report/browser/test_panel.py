"""What the panel of a selected prototype shows, and how it closes."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from distreduce.report import write_report

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


def test_the_panel_says_what_left_out_samples_show_and_what_the_fit_believes(page, pages, numbers, lengths):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    shown = numbers.prototype_evidence_.loc[page.number(0)]
    name = numbers.target_names_[0].removeprefix("mean ")
    texts = [f"{shown[f'{what} {name}']:.{digits}g}" for what, digits in (("mean", 4), ("5 %", 3), ("95 %", 3))]
    members = lengths[numbers.labels_ == page.number(0)]
    text = page.text("#panel")
    evidence, belief = "{} ({} to {})".format(*texts), f"{members.mean():.4g} ± {members.std(ddof=0):.4g}"
    assert 0 < text.index(evidence) < text.index(f"the fit believes: {belief}")


def test_the_panel_says_what_tells_a_prototype_apart(page, pages):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    name, text = page.run("return data.apart[0][0]")
    assert f"{name} {text}" in page.text("#panel .apart") and " against " in text


def test_names_that_begin_alike_stay_different(page, tmp_path, classes, X, labels):
    genes = [f"ENSG000000000000000{k}" for k in range(4)]
    page.visit(write_report(tmp_path / "r.html", classes, X, labels, table=pd.DataFrame(X, columns=genes)))
    shown = page.run("open(0); return [...document.querySelectorAll('#panel tbody th')].map((e) => e.innerText)")
    assert len(set(shown[1:])) == 4 and all("…" in text for text in shown[1:])
    clipped = "[...document.querySelectorAll('#panel tbody th')].some((e) => e.scrollWidth > e.clientWidth)"
    assert not page.run(f"return {clipped}")


def test_a_dubious_prototype_is_flagged(page, tmp_path, classes, X, labels):
    doubtful = copy.deepcopy(classes)
    doubtful.prototype_evidence_["dubious"] = np.arange(12) == classes.prototype_weights_.argmax()
    page.visit(write_report(tmp_path / "r.html", doubtful, X, labels))
    assert "dubious: 1 of" in page.text("#legend")
    flags = page.run("return [0, 1].map((k) => { open(k); return Boolean(document.querySelector('#panel .flag')); })")
    assert flags == [True, False]


def test_selected_is_the_only_prototype_at_full_strength(page, pages):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    page.wait()
    strength = page.run(
        """const c = layers.prototypes.getContext("2d"), f = frame();
        return data.prototypes.number.map((_, k) => c.getImageData(...placeOf(k, f), 1, 1).data[3])"""
    )
    assert strength[0] > 230 > 160 > min(strength[1:])  # where two lie on each other, their strengths add up


def test_escape_closes(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html").point_at(page.top(), click=True)
    page.press(Keys.ESCAPE)
    assert page.text("#panel").startswith("Nothing is selected")


def test_the_button_closes(page, pages):
    page.visit(pages / "digits.html", "phone").point_at(page.top(), click=True)
    page.driver.find_element("id", "close").click()
    assert page.run("return state.selected") == -1


def test_the_columns_along_the_axes_are_named(page, tmp_path, classes, X, labels):
    """The page called its axes sdr0 and sdr1, and nobody could tell what the second one shows."""
    table = pd.DataFrame({"petal": X[:, 2], "noise": np.arange(150) % 7.0, "sort": labels})
    table.loc[::10, "petal"] = np.nan
    page.visit(write_report(tmp_path / "r.html", classes, X, labels, table=table))
    columns = {"petal": table["petal"]} | {f"sort = {name}": (labels == name) * 1.0 for name in np.unique(labels)}
    page.run("fittedPlaces.x.forEach((at, i, all) => { all[i] = STEPS - at; })")  # so that they differ
    for places in (classes.embedding_left_out_, classes.embedding_ * [-1, 1]):
        sentences = []
        for along in places.T:
            r = {name: pd.Series(along).corr(pd.Series(np.asarray(column))) for name, column in columns.items()}
            best = max((name for name in r if name.startswith("sort")), key=lambda name: abs(r[name]))
            named = sorted((name for name in ("petal", best) if abs(r[name]) >= 0.3), key=lambda name: -abs(r[name]))
            texts = [f"{name} {r[name]:.2f}".replace("-", "−") for name in named]
            sentences.append(", ".join(texts) or "no single column")
        said = f"to the right {sentences[0]}; upwards {sentences[1]}."
        assert page.text("#axes") == f"Columns that go with the axes (correlation): {said}"
        page.driver.find_element("id", "fitted-places").click()
    assert not page.visit(write_report(tmp_path / "s.html", classes, X, labels, image_shape=(2, 2))).text("#axes")
