"""A predictor as an ONNX graph says what the model says: onnxruntime is the oracle."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
from distreduce.exceptions import InvalidInputError, UnsavableModelError
from distreduce.gp import _class_stack, _exact, _experts, _stack
from distreduce.gp._experts import Linear
from distreduce.gp._noise import Noise
from distreduce.interop import save_onnx, save_predictor, save_predictor_onnx
from distreduce.tables import TablePreparer

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("light")
NAMES = ("mean", "std", "q05", "q50", "q95")


@pytest.fixture(scope="module")
def flats():
    """A table of all kinds of columns, X, the recipe, and prices."""
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
    table.loc[[2, 9], "town"] = None
    preparer = TablePreparer().fit(table)
    X = np.asarray(preparer.transform(table))
    price = np.exp(1 + X[:, 0] / 3 + (table["town"] == "Oslo") + 0.2 * rng.normal(size=n)).to_numpy()
    return table, X, preparer.recipe_, price


@pytest.fixture(autouse=True)
def every_expert(monkeypatch):
    """Every expert has a weight, so that each is exported."""
    for room in (_stack, _class_stack):
        monkeypatch.setattr(room, "weigh", lambda logs, *_, **__: dict.fromkeys(logs, 1 / len(logs)))


def predict(model, X):
    if hasattr(model, "predict_proba"):
        return {"probabilities": model.predict_proba(X)}
    mean, std = model.predict(X, return_std=True)
    return dict(zip(NAMES, (mean, std, *np.moveaxis(model.predict_quantiles(X), -1, 0)), strict=True))


def run(path, inputs):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, inputs), strict=True)), session


def scaled_products(path):
    """MatMuls whose factor is, or whose product becomes, a product with a number, which runtimes may join and round."""
    graph = onnx.load(path).graph
    numbers = {each.name for each in graph.initializer if np.prod(each.dims) == 1}
    scales = [node for node in graph.node if node.op_type in ("Mul", "Div") and numbers & {*node.input}]
    products = [node for node in graph.node if node.op_type == "MatMul"]
    made, used = {name for node in scales for name in node.output}, {name for node in scales for name in node.input}
    return [node.output[0] for node in products if made & {*node.input} or used & {*node.output}]


@pytest.mark.parametrize("kind", ["skewed", "two numbers", "neighbours", "class", "two classes", "class, neighbours"])
def test_the_graph_says_what_the_predictor_says(flats, tmp_path, monkeypatch, kind):
    _, X, _, price = flats
    if "neighbours" in kind:  # as with thousands of rows
        monkeypatch.setattr(_experts, "EXACT_ROWS", 40)
        monkeypatch.setattr(_exact, "SLACK", 0.0)  # the graph finds the true neighbours
    targets = {
        "skewed": np.exp(1.5 * X[:, 0] + 0.3 * np.sin(9 * price)),
        "two numbers": np.c_[price, X[:, 0]],
        "two classes": np.where(price > np.median(price), "dear", "cheap"),
        "class": pd.cut(price, 3, labels=["c", "a", "b"]).astype(str),
        "class, neighbours": pd.cut(price, 3, labels=["c", "a", "b"]).astype(str),
    }
    model = (SDRGPClassifier if "class" in kind else SDRGPRegressor)(gp_steps=3, random_state=0)
    model.fit(X, targets.get(kind, price))
    assert kind != "skewed" or model.stacks_[0].warp is not None
    if kind == "two numbers":  # noise that depends on x
        noise = Noise(Linear(np.full((X.shape[1], 1), 0.1), np.ones(1)), 0.9, 1.1)
        model.stacks_ = tuple(replace(stack, noise=noise) for stack in model.stacks_)
    save_predictor_onnx(model, tmp_path / "p.onnx")
    assert scaled_products(tmp_path / "p.onnx") == []
    new = X[::3] + 0.1
    said, session = run(tmp_path / "p.onnx", {"X": new})
    assert list(said) == list(predict(model, new))
    for name, expected in predict(model, new).items():
        assert said[name].shape == expected.shape
        np.testing.assert_allclose(said[name], expected, rtol=1e-8, atol=1e-9)
    if "class" in kind:
        assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == list(model.classes_)


def test_a_single_column_is_scaled_in_double_precision(flats, tmp_path):
    """Its scale is a number."""
    _, X, _, price = flats
    model = SDRGPRegressor(gp_steps=2, random_state=0).fit(X[:, :1], price)
    save_predictor_onnx(model, tmp_path / "p.onnx")
    assert scaled_products(tmp_path / "p.onnx") == []
    np.testing.assert_allclose(run(tmp_path / "p.onnx", {"X": X[:, :1]})[0]["mean"], model.predict(X[:, :1]), rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "rq", "linear"])
@pytest.mark.parametrize("d", [1, 2])
def test_a_map_is_scaled_in_double_precision(flats, tmp_path, kernel, d):
    _, X, _, price = flats
    save_onnx(SDR(input_kernel=kernel, random_state=0).fit(X[:, :d], price), tmp_path / "m.onnx")
    assert scaled_products(tmp_path / "m.onnx") == []


@pytest.mark.parametrize("rows", ["exact", "neighbours"])
def test_small_deviations_survive_the_optimisations_of_the_runtime(rng, tmp_path, monkeypatch, rows):
    """They are small differences of large numbers, which a factor in single precision would swamp."""
    if rows == "neighbours":
        monkeypatch.setattr(_experts, "EXACT_ROWS", 40)
        monkeypatch.setattr(_exact, "SLACK", 0.0)
    monkeypatch.setattr(_stack, "weigh", lambda logs, *_, **__: {name: float(name == "inputs") for name in logs})
    X = rng.normal(size=(240, 2))
    y = X @ [1, 2] + X[:, 0] * X[:, 1] + 1e-3 * rng.normal(size=240)
    model = SDRGPRegressor(experts=[], random_state=0).fit(X[:200], y[:200])
    save_predictor_onnx(model, tmp_path / "p.onnx")
    said, _ = run(tmp_path / "p.onnx", {"X": X[200:]})
    expected = predict(model, X[200:])
    assert np.median(expected["std"]) < 2e-3
    np.testing.assert_allclose(said["std"], expected["std"], rtol=1e-4)
    for name in ("mean", "q05", "q95"):
        np.testing.assert_allclose(said[name], expected[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("gaps", [True, False])
def test_the_graph_reads_the_columns_of_a_table(flats, tmp_path, gaps):
    table, X, recipe, price = flats
    if not gaps:
        table, price = table.iloc[10:], price[10:]
        preparer = TablePreparer().fit(table)
        X, recipe = np.asarray(preparer.transform(table)), preparer.recipe_
    model = SDRGPRegressor(experts=["linear"], gp_steps=2, random_state=0).fit(X, price)
    save_predictor_onnx(model, tmp_path / "p.onnx", recipe)
    cells = {
        "area": table["area"].to_numpy(float),
        "town": table["town"].fillna("").to_numpy(dtype=object),
        "lift": table["lift"].to_numpy(float),
        "sold": ((table["sold"] - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(),
    }
    said, _ = run(tmp_path / "p.onnx", cells)
    np.testing.assert_allclose(said["mean"], model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("save", [save_predictor, save_predictor_onnx])
def test_the_recipe_of_another_fit_is_refused(flats, tmp_path, save):
    _, X, recipe, price = flats
    model = SDRGPRegressor(experts=["linear"], gp_steps=2, random_state=0).fit(X[:, :2], price)
    with pytest.raises(InvalidInputError, match=f"recipe makes {X.shape[1]} features, but .* fitted to 2; give"):
        save(model, tmp_path / "p", recipe)
    assert not (tmp_path / "p").exists()


def test_experts_of_your_own_cannot_be_exported(flats, tmp_path):
    _, X, _, price = flats
    model = SDRGPRegressor(experts=[DecisionTreeRegressor(max_depth=4)], gp_steps=2, random_state=0).fit(X, price)
    with pytest.raises(UnsavableModelError, match="experts of your own"):
        save_predictor_onnx(model, tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()
