"""A predictor read again without distreduce says what the model says."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from distreduce import SDRGPClassifier, SDRGPRegressor
from distreduce.exceptions import UnsavableModelError
from distreduce.gp import _exact, _experts
from distreduce.interop import _predictor_reader, load_predictor, save_predictor
from distreduce.tables import TablePreparer

pytestmark = pytest.mark.usefixtures("light")
NAMES = ("mean", "std", "q05", "q50", "q95")


@pytest.fixture(scope="module")
def flats():
    """A table of all kinds of columns, X, and the recipe."""
    rng, n = np.random.default_rng(0), 100
    table = pd.DataFrame(
        {
            "area": rng.gamma(4.0, 20.0, n).round(1),
            "town": rng.choice(["Rome", "Oslo", "Bern"], n),
            "lift": rng.random(n) > 0.5,
            "sold": pd.date_range("2019-01-01", periods=n, freq="9D"),
        }
    )
    table.loc[[3, 8], "area"] = None
    preparer = TablePreparer().fit(table)
    X = np.asarray(preparer.transform(table))
    price = np.exp(1 + X[:, 0] / 3 + (table["town"] == "Oslo") + 0.2 * rng.normal(size=n)).to_numpy()
    return table, X, preparer.recipe_, price


def predict(model, X):
    if hasattr(model, "predict_proba"):
        return {"probabilities": model.predict_proba(X)}
    mean, std = model.predict(X, return_std=True)
    return dict(zip(NAMES, (mean, std, *np.moveaxis(model.predict_quantiles(X), -1, 0)), strict=True))


@pytest.mark.parametrize("kind", ["two numbers", "neighbours", "class"])
def test_the_file_says_what_the_predictor_says(flats, tmp_path, monkeypatch, kind):
    table, X, recipe, price = flats
    y = {"two numbers": np.c_[price, X[:, 0]], "class": pd.cut(price, 3, labels=["c", "a", "b"]).astype(str)}
    if kind == "neighbours":  # as with thousands of rows
        monkeypatch.setattr(_experts, "EXACT_ROWS", 40)
        monkeypatch.setattr(_exact, "SLACK", 0.0)  # the reader finds the true neighbours
    options = {"experts": ["linear"]} if kind == "two numbers" else {}  # the others have trees
    model = (SDRGPClassifier if kind == "class" else SDRGPRegressor)(gp_steps=3, random_state=0, **options)
    model.fit(X, y.get(kind, price))
    save_predictor(model, tmp_path / "p.json", recipe)
    loaded, new = load_predictor(tmp_path / "p.json"), X[::3] + 0.1
    said = loaded(new)
    for name, expected in predict(model, new).items():
        np.testing.assert_allclose(said[name], expected, rtol=1e-5, atol=1e-6)
    if kind == "class":
        assert loaded.classes == list(model.classes_)
    # Cells of the table, as another program has them.
    days = (table["sold"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    cells = {name: column.tolist() for name, column in table.assign(sold=days).items()}
    first = next(iter(said))
    np.testing.assert_allclose(loaded(cells)[first], predict(model, X)[first], rtol=1e-5, atol=1e-6)


def test_the_reader_needs_numpy_alone(flats, tmp_path):
    _, X, _, price = flats
    model = SDRGPRegressor(experts=["linear"], gp_steps=2, random_state=0).fit(X, price)
    save_predictor(model, tmp_path / "p.json")
    np.save(tmp_path / "rows.npy", X)
    tail = f"""
import sys
assert not {{"scipy", "sklearn", "distreduce"}} & {{name.partition(".")[0] for name in sys.modules}}
np.save(r"{tmp_path}/means.npy", load_predictor(r"{tmp_path}/p.json")(np.load(r"{tmp_path}/rows.npy"))["mean"])
"""
    subprocess.run([sys.executable, "-c", inspect.getsource(_predictor_reader) + tail], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "means.npy"), model.predict(X), rtol=1e-6)
    for wrong in (X[:, :1], X[0]):  # NumPy would take a single column for all of them
        with pytest.raises(ValueError, match=rf"shape \(n, {X.shape[1]}\)"):
            load_predictor(tmp_path / "p.json")(wrong)
    assert load_predictor(tmp_path / "p.json")(X[:0])["mean"].shape == (0,)


def test_what_cannot_be_exported_or_read_is_named(flats, tmp_path):
    _, X, _, _ = flats
    steps = np.where(X[:, 0] > 0.3, 5.0, 1.0) * np.where(X[:, 1] > 0.5, -1, 1)  # for trees only
    model = SDRGPRegressor(experts=[DecisionTreeRegressor(max_depth=4)], gp_steps=2, random_state=0).fit(X, steps)
    with pytest.raises(UnsavableModelError, match="experts of your own"):
        save_predictor(model, tmp_path / "p.json")
    with pytest.raises(UnsavableModelError, match="not the paper's recipe"):
        save_predictor(SDRGPRegressor.paper(n_prototypes=5, random_state=0).fit(X, steps), tmp_path / "p.json")
    (tmp_path / "p.json").write_text('{"format": "distreduce-predictor", "version": 2}')
    with pytest.raises(ValueError, match="newer load_predictor"):
        load_predictor(tmp_path / "p.json")
