"""A reader types a row: its place, its nearest prototypes and its prediction, computed in the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from browser_page import HOSTILE
from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
from distreduce._utils.numerics import nearest_in_use
from distreduce.gp._exact import NeighbourGP
from distreduce.gp._noise import Noise
from distreduce.interop import _predictor
from distreduce.report import new_row, write_report
from distreduce.tables import TablePreparer

pytestmark = pytest.mark.browser
N = 70
NEW = [  # the last two are beyond the fit: another level, and far away
    {"area": 50.0, "town": "Bern", "built": "2001-05-07", "garden": "true"},
    {"area": 81.5, "town": "Oslo", "built": "2010-11-30", "garden": "false"},
    {"area": None, "town": None, "built": "1999-01-01", "garden": "true"},
    {"area": 60.0, "town": "Rome", "built": "2003-03-03", "garden": "false"},
    {"area": 900.0, "town": "Bern", "built": "2031-12-31", "garden": "true"},
]


@pytest.fixture(scope="module")
def flats():
    """A table with numbers, gaps, a hostile category, dates and booleans; a skewed price, and three kinds."""
    rng = np.random.default_rng(0)
    days = pd.to_datetime("1995-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), unit="D")
    frame = pd.DataFrame(
        {
            "area": rng.uniform(20, 120, N).round(1),
            "town": rng.choice(["Bern", "Oslo", HOSTILE], N),
            "built": days.strftime("%Y-%m-%d"),
            "garden": rng.choice(["true", "false"], N),
        }
    )
    price = pd.Series(np.exp(frame["area"] / 30 + (frame["town"] == "Oslo") + rng.normal(0, 0.3, N)), name="price")
    kind = pd.Series(np.where(price > 30, "dear", np.where(frame["garden"] == "true", "green", "cheap")), name="kind")
    frame.loc[::9, "area"] = np.nan
    frame.loc[4, "town"] = None
    return frame, price, kind


@pytest.fixture(scope="module")
def fitted(flats):
    frame, price, kind = flats
    preparer = TablePreparer().fit(frame)
    X = preparer.transform(frame)
    numbers, classes = (each(gp_steps=5, random_state=0) for each in (SDRGPRegressor, SDRGPClassifier))
    stack = numbers.fit(X, price).stacks_[0]
    assert stack.warp is not None  # so that the page must undo it
    # Every expert takes part, and one Gaussian process is of the kind for many rows.
    exact = stack.processes["isotropic"].gp
    parts = exact.inputs, exact.target, exact.hyperparameters, exact.kernel, exact.weights
    processes = stack.processes | {"isotropic": replace(stack.processes["isotropic"], gp=NeighbourGP(*parts))}
    # The noise depends on x; where the trees say less than 0.05 it has a floor.
    equal, noise = dict.fromkeys(processes, 1 / len(processes)), Noise(processes["forest"], 0.05, 0.7)
    numbers.stacks_ = (replace(stack, processes=processes, weights=equal, noise=noise),)
    of_classes = classes.fit(X, kind).stack_
    # One expert whose indicators become logarithms, beside others whose do not.
    classes.stack_ = replace(
        of_classes,
        weights=dict.fromkeys(of_classes.processes, 1 / len(of_classes.processes)),
        logarithmic={"isotropic"} & {*of_classes.processes} or {"embedding"},
    )
    return preparer, X, {"price": numbers, "kind": classes}


@pytest.fixture(scope="module")
def written(flats, fitted, tmp_path_factory):
    """A page of the price and one of the kind, and the model of each picture."""
    frame, price, kind = flats
    preparer, X, predictors = fitted
    folder, found = tmp_path_factory.mktemp("new_row"), {}
    for target in (price, kind):
        model = SDR(n_prototypes=8, random_state=0).fit(X, target)
        path = write_report(
            folder / f"{target.name}.html", model, X, target, table=frame, recipe=preparer.recipe_,
            predictor=predictors[target.name],
        )  # fmt: skip
        found[target.name] = path, model
    return found


def change(page, place, value):
    page.run(f"const c = form.inputs[{place}].control; c.value = '{value}'; c.dispatchEvent(new Event('input'))")


def type_row(page, row):
    """Fill in the form as a reader does, and return what the page computed."""
    page.run("byId('new-row-box').open = true")
    page.wait()
    for place, field in enumerate(page.run("return data.newRow.fields")):
        value = row[field["name"]]
        if field["kind"] == "category":
            value = "" if value is None else ([*field["levels"], value].index(value))
        elif field["kind"] == "boolean":
            value = int(value == "true")
        value = "" if value is None else value
        change(page, place, value)
    page.wait()
    page.wait()
    return page.run(
        "const r = form.result; return {x: [...r.x], place: [...r.place], prototypes: r.prototypes.map((p) => p[0]),"
        "novelty: r.novelty, probabilities: r.probabilities, numbers: r.numbers}"
    )


@pytest.mark.parametrize(("name", "width"), [("price", "desk"), ("kind", "phone")])
def test_the_page_says_what_transform_and_predict_say(page, written, fitted, name, width):
    path, model = written[name]
    preparer, _, predictors = fitted
    page.visit(path, width)
    with pytest.warns(UserWarning, match="did not know"), pytest.warns(UserWarning, match="later than all rows"):
        X = preparer.transform(pd.DataFrame(NEW))
    predictor, Z = predictors[name], model.transform(X)
    nearest = nearest_in_use(Z, model.prototypes_, model.prototype_weights_)
    for i, row in enumerate(NEW):
        found = type_row(page, row)
        np.testing.assert_allclose(found["x"], X[i], atol=1e-12)
        np.testing.assert_allclose(found["place"], Z[i], atol=1e-8 * np.abs(model.embedding_).max())
        assert page.number(found["prototypes"][0]) == nearest[i]
        both = predictor.novelty(X[i : i + 1]), preparer.recipe_.level_novelty(X[i : i + 1], predictor.novelty_.inputs)
        np.testing.assert_allclose(found["novelty"], np.minimum(*both)[0], atol=1e-9)
        if name == "kind":
            np.testing.assert_allclose(found["probabilities"], predictor.predict_proba(X[i : i + 1])[0], atol=1e-6)
            continue
        mean, std = predictor.predict(X[i : i + 1], return_std=True)
        quantiles = predictor.predict_quantiles(X[i : i + 1], [0.05, 0.5, 0.95])[0]
        said = found["numbers"][0]
        np.testing.assert_allclose([said["mean"], said["std"]], [mean[0], std[0]], rtol=1e-5)
        np.testing.assert_allclose(said["quantiles"], quantiles, rtol=1e-5)
    assert page.driver.get_log("browser") == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("name", "width"), [("price", "desk"), ("kind", "phone")])
def test_the_columns_that_matter_to_a_row_are_named(page, written, fitted, flats, name, width):
    """Each column alone at its typical value: what the predictor says then, largest change first."""
    preparer, _, predictors = fitted
    page.visit(written[name][0], width)
    type_row(page, NEW[0])
    for _ in range(10):
        page.wait()
    changes = page.run("return form.changes.map((each) => [each.field.name, each.size])")
    area = flats[0]["area"].quantile(interpolation="lower")
    typical = {"area": area, "town": flats[0]["town"].mode()[0], "garden": flats[0]["garden"].mode()[0]}
    rows = preparer.transform(pd.DataFrame([NEW[0], *(NEW[0] | {column: typical[column]} for column in typical)]))
    if name == "price":
        said = predictors[name].predict(rows)
        sizes = np.abs(said[1:] - said[0]) / page.run("return data.colourings[0].high - data.colourings[0].low")
    else:
        said = predictors[name].predict_proba(rows)
        sizes = np.abs(said[1:] - said[0]).sum(axis=1) / 2
    expected = dict(zip(typical, sizes, strict=True))
    found = {column: size for column, size in changes if column in expected}
    assert len(found) >= 2 and found == pytest.approx({column: expected[column] for column in found}, rel=1e-4)
    assert [size for _, size in changes] == sorted((size for _, size in changes), reverse=True)
    assert changes[0][0] in page.text("#new-result .apart li") and "→" in page.text("#new-result .apart li")
    assert page.driver.get_log("browser") == [] and page.run(
        "return document.documentElement.scrollWidth <= innerWidth"
    )


def test_a_variance_from_the_most_similar_rows_is_a_little_wider(page, flats, fitted, written, monkeypatch, tmp_path):
    frame, price, _ = flats
    preparer, X, predictors = fitted
    monkeypatch.setattr(new_row, "CONDITIONED", 25)
    monkeypatch.setattr(_predictor, "CONDITIONED", 25)
    path = write_report(
        tmp_path / "few.html", written["price"][1], X, price, table=frame, recipe=preparer.recipe_,
        predictor=predictors["price"],
    )  # fmt: skip
    page.visit(path)
    mean, std = predictors["price"].predict(preparer.transform(pd.DataFrame(NEW[:2])), return_std=True)
    for i in range(2):
        said = type_row(page, NEW[i])["numbers"][0]
        assert said["std"] == pytest.approx(std[i], rel=0.1)
    assert "the 25 most similar rows" in page.text("#new-row-box > .note")


def test_the_form_says_what_the_fit_has_not_seen(page, written):
    page.visit(written["price"][0], "phone")
    type_row(page, NEW[4])
    assert page.text("#new-fields label:nth-child(1) small").startswith("beyond the fit: ")
    assert "extrapolations" in page.text("#new-result")
    type_row(page, NEW[3])
    assert page.text("#new-fields label:nth-child(2) small") == "a level that the fit did not know"
    change(page, 2, "")
    page.wait()
    assert page.text("#new-fields label:nth-child(3) small") == "empty: filled in as at the fit"
    type_row(page, NEW[2])  # no town, as one row of the fit
    assert page.text("#new-fields label:nth-child(2) small") == "empty: a level of its own"


def test_numbers_that_hardly_differ_are_not_rounded_to_others(page, tmp_path, rng):
    """Seconds since 1970 of one day began at 1700000000, which is beyond the fit."""
    table = pd.DataFrame({"seconds": 1.7e9 + 4e4 + rng.permutation(60), "town": ["Bern", "Oslo"] * 30})
    preparer = TablePreparer().fit(table)
    X, y = preparer.transform(table), np.sin(table["seconds"].to_numpy() / 9)
    model = SDR(n_prototypes=6, eta=60.0, max_iter=2, tol=1.0, random_state=0).fit(X, y)
    page.visit(write_report(tmp_path / "r.html", model, X, y, table=table, recipe=preparer.recipe_))
    page.run("tryChanges(0)")
    seconds, town = page.run("return form.inputs.map((each) => each.control.value)")
    medoid = table.iloc[model.prototype_medoids_[page.number(0)]]
    assert float(seconds) == medoid["seconds"] and ["Bern", "Oslo"][int(town)] == medoid["town"]
    change(page, 1, "")
    page.wait()
    assert page.text("#new-fields label:nth-child(2) small") == "empty: none of the levels"


def test_a_row_begins_with_a_medoid_and_is_drawn_on_the_map(page, written, flats):
    path, model = written["kind"]
    page.visit(path)
    page.run("open(2); byId('try-changes').click()")
    page.wait()
    page.wait()
    medoid = model.prototype_medoids_[page.number(2)]
    area = page.run("return form.inputs[0].control.value")
    assert area == "" if np.isnan(flats[0]["area"][medoid]) else float(area) == flats[0]["area"][medoid]
    x, y = page.run("const f = frame(); return [f.ax * state.newRow.x + f.bx, f.ay * state.newRow.y + f.by]")
    z = model.transform(TablePreparer().fit(flats[0]).transform(flats[0]))[medoid]
    low, high = np.reshape(page.run("return data.box"), (2, 2)).T
    steps = (z - low) / (high - low) * 65534
    np.testing.assert_allclose(page.run("return [state.newRow.x, state.newRow.y]"), steps, rtol=1e-6, atol=1e-3)
    centre = page.run(
        f"return [...layers.prototypes.getContext('2d').getImageData({x} * view.ratio, {y} * view.ratio, 1, 1).data]"
    )
    assert centre == [255, 255, 255, 255]  # the middle of the diamond has the colour of the card


def test_rows_of_plain_numbers_can_be_typed_without_a_recipe(page, pages, unsupervised, X):
    page.visit(pages / "plain.html")
    page.run("byId('new-row-box').open = true")
    page.wait()
    page.wait()
    typed = page.run("return [[...form.result.x], [...form.result.place]]")
    np.testing.assert_allclose(typed[1], unsupervised.transform([typed[0]])[0], atol=1e-9)
    assert "There is no predictor in this page" in page.text("#new-row-box > .note")


def test_images_have_no_form(page, pages):
    page.visit(pages / "digits.html")
    assert page.run("return [data.newRow, byId('new-row-box')]") == [None, None]


def test_a_predictor_that_is_too_large_is_left_out(fitted, written, flats, monkeypatch, tmp_path, read_page):
    preparer, X, predictors = fitted
    monkeypatch.setattr(new_row, "MAX_SIZE", 20_000)
    path = write_report(
        tmp_path / "large.html", written["kind"][1], X, flats[2], table=flats[0], recipe=preparer.recipe_,
        predictor=predictors["kind"],
    )  # fmt: skip
    assert read_page(path)["newRow"]["predictor"] is None
    assert "too large for a page" in path.read_text("utf-8")
