"""Forged GP models are refused with the reason, before anything is built from them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from persistence.cases import fitted_model
from persistence.forging import ARRAY, Document, Edit, contents, fitted, forge, params, put, replaced

from distreduce import persistence
from distreduce._utils.tensor_file import write_file
from distreduce.exceptions import ModelFileError


def view(document: Document, number: int) -> Document:
    return fitted(document)["stacks_"]["processes"][number]


def reduction(document: Document) -> Document:
    return fitted(document)["reduction_"]


S, G, R = "fitted.stacks_", "fitted.gp_", "fitted.reduction_.fitted"
REGRESSION: dict[str, tuple[Edit, str]] = {
    "unknown attribute": (lambda d, t: fitted(d).update(predict=1), "does not know: .'predict'"),
    "missing attribute": (lambda d, t: fitted(d).pop("input_scale_"), "lacks .'input_scale_'"),
    "bad parameter": (lambda d, t: params(d).update(residual=7), "'residual' parameter of SDRGPRegressor must be"),
    "residual": (lambda d, t: params(d).update(residual=False), "the model gives them"),
    "features": (lambda d, t: fitted(d).update(n_features_in_=2), "feature_names_in_ has the shape"),
    "no features": (lambda d, t: fitted(d).update(n_features_in_=0), "n_features_in_ is not an integer"),
    "truth for features": (lambda d, t: fitted(d).update(n_features_in_=True), "n_features_in_ is not an integer"),
    "names": (lambda d, t: fitted(d).update(feature_names_in_=["a"]), "feature_names_in_ has the shape"),
    "names that are numbers": (lambda d, t: fitted(d).update(feature_names_in_=[1, 2, 3]), "not a list of names"),
    "zero scale": (put("fitted.feature_spread_", 0, 0.0), "feature_spread_ has values that are not greater than"),
    "fewer scales": (replaced("fitted.input_scale_", lambda A: A[1:]), "input_scale_ has the shape"),
    "embedding's scale": (put("fitted.embedding_scale_", 1, -1.0), "embedding_scale_ has values that are not greater"),
    "one embedding scale": (
        lambda d, t: (fitted(d).update(embedding_scale_=1.0), t.pop("fitted.embedding_scale_")), "is not an array"),
    "more embedding scales": (replaced("fitted.embedding_scale_", lambda A: np.r_[A, 1.0]), "has the shape"),
    "target's scale": (put("fitted.target_scale_.std", 0, 0.0), "target_scale_.std has values that are not"),
    "targets in a row": (lambda d, t: fitted(d)["target_scale_"].update(is_table=False), "is not a table"),
    "truth of the table": (lambda d, t: fitted(d)["target_scale_"].update(is_table=1), "is_table is not a bool"),
    "fewer means": (replaced("fitted.target_scale_.mean", lambda A: A[1:]), "target_scale_.std has the shape"),
    "fewer targets": (
        lambda d, t: t.update({k: t[k][:1] for k in ("fitted.target_scale_.mean", "fitted.target_scale_.std")}),
        "variance_scale has the shape .2,., not .t=1"),
    "no stacks": (lambda d, t: fitted(d).update(stacks_=[]), "stacks_ is not an object"),
    "not a list of views": (lambda d, t: fitted(d)["stacks_"].update(processes=[]), "not a list of views"),
    "process": (lambda d, t: fitted(d)["stacks_"].update(processes=[3]), "a view that is unknown"),
    "view": (lambda d, t: view(d, 0).update(view="__class__"), "a view that is unknown"),
    "view of lists": (lambda d, t: view(d, 0).update(view=["inputs"]), "a view that is unknown"),
    "view twice": (lambda d, t: view(d, 0).update(view="inputs"), "."),
    "part": (lambda d, t: view(d, 0).update(more=1), "does not know: .'more'"),
    "sparse or not": (lambda d, t: fitted(d)["stacks_"].update(targets=None), "lacks .'inner', 'projected'"),
    "variance": (put(f"{S}.variance_scale", 0, -1.0), "variance_scale has values that are not greater than"),
    "flat variance": (replaced(f"{S}.variance_scale", lambda A: A[:, None]), "variance_scale has the shape"),
    "no target": (replaced(f"{S}.variance_scale", lambda A: A[:0]), "variance_scale has the shape"),
    "one stack": (replaced(f"{S}.variance_scale", lambda A: A[:1]), "has the shape"),
    "tails": (put(f"{S}.tails", (0, 0), 1.5), "not a distribution of variance 1"),
    "negative tails": (put(f"{S}.tails", (0, 1), -1.0), "tails has values less than 0"),
    "fewer tails": (replaced(f"{S}.tails", lambda A: A[:, 1:]), "tails has the shape"),
    "rough alone": (
        lambda d, t: (view(d, 1).update(view="rough_inputs", inputs=None), view(d, 2).update(view="inputs")),
        "'rough_inputs' has no inputs"),
    "flat inputs": (replaced(f"{S}.inputs.inputs", np.ravel), "inputs.inputs has the shape"),
    "no inputs": (replaced(f"{S}.inputs.inputs", lambda A: A[:0]), "inputs.inputs has the shape"),
    "fewer inputs": (replaced(f"{S}.inputs.inputs", lambda A: A[:, 1:]), "inputs has the shape|length_scales has"),
    "fewer rows": (replaced(f"{S}.inputs.inputs", lambda A: A[1:]), "stacks_.inputs.inputs has the shape"),
    "target of others": (replaced(f"{S}.targets", lambda A: A[1:]), "inputs has the shape .24, 2., not .n=23"),
    "length scale": (put(f"{S}.inputs.length_scales", (0, 0), 0.0), "length_scales has values that are not"),
    "tiny length scale": (put(f"{S}.inputs.length_scales", (0, 0), 5e-324), "cannot be built|NaN or infinite"),
    "signal": (put(f"{S}.inputs.signal", 0, -1.0), "signal has values that are not greater than"),
    "noise": (put(f"{S}.embedding.noise", 0, -1e-9), "noise has values that are not greater than"),
    "weights": (put(f"{S}.inputs.weight", 0, 2.0), "do not sum to 1"),
    "negative weight": (
        lambda d, t: (put(f"{S}.inputs.weight", 0, -1.0)(d, t), put(f"{S}.embedding.weight", 0, 2.0)(d, t)),
        "weight has values less than 0"),
    "huge signal": (put(f"{S}.inputs.signal", 0, 1e308), "cannot be built|NaN or infinite"),
    "huge target": (put(f"{S}.targets", (0, 0), 1e308), "NaN or infinite|cannot be built"),
    "reduction": (lambda d, t: fitted(d).update(reduction_=None), "reduction_.state is not an object"),
    "reduction's features": (
        lambda d, t: (reduction(d)["fitted"].update(n_features_in_=2),
                      replaced(f"{R}.map_.inputs", lambda A: A[:, :2])(d, t)),
        "reduction_.fitted.n_features_in_ is 2, not 3"),
    "reduction of distances": (
        lambda d, t: (reduction(d)["fitted"]["map_"].update(inputs=None), t.pop(f"{R}.map_.inputs"),
                      replaced(f"{R}.map_.coefficients", lambda A: A[:, :3])(d, t)), "does not take features"),
    "reduction's names": (
        lambda d, t: reduction(d)["fitted"].update(feature_names_in_=["a", "b", "c"]), "reduction_ has feature names"),
    "reduction's numbers": (put(f"{R}.map_.coefficients", (0, 0), np.nan), "NaN or infinite"),
    "reduction's parameter": (lambda d, t: reduction(d)["params"].update(alpha=7.0), "'alpha' parameter of SDR"),
}  # fmt: skip
SPARSE: dict[str, tuple[Edit, str]] = {
    "not positive definite": (replaced(f"{S}.embedding.inner", lambda A: -A), "its GP cannot be built"),
    "endless": (put(f"{S}.embedding.inner", (0, 0, 0), np.inf), "inner has NaN or infinite values"),
    "fewer": (replaced(f"{S}.embedding.inner", lambda A: A[:, 1:]), "inner has the shape"),
    "projected": (replaced(f"{S}.embedding.projected", lambda A: A[:, 1:]), "projected has the shape"),
    "inducing points": (replaced(f"{S}.embedding.inputs", lambda A: A[1:]), "has the shape"),
}
CLASSIFICATION: dict[str, tuple[Edit, str]] = {
    "part": (lambda d, t: fitted(d)["gp_"].update(more=1), "gp_ has parts that this version"),
    "label": (put(f"{G}.labels", 0, 3), "gp_.labels has indices outside"),
    "negative label": (put(f"{G}.labels", 0, -1), "gp_.labels has indices outside"),
    "fewer labels": (replaced(f"{G}.labels", lambda A: A[1:]), "gp_.labels has the shape"),
    "labels of another kind": (
        lambda d, t: (t.update({f"{G}.labels": t[f"{G}.labels"].astype(float)}),
                      fitted(d)["gp_"].update(labels=ARRAY)), "not integer"),
    "alpha": (lambda d, t: fitted(d)["gp_"].update(alpha_epsilon=0.0), "alpha_epsilon is not a positive number"),
    "truth for alpha": (lambda d, t: fitted(d)["gp_"].update(alpha_epsilon=True), "alpha_epsilon is not a float"),
    "endless alpha": (lambda d, t: fitted(d)["gp_"].update(alpha_epsilon=10**400), "alpha_epsilon is too large"),
    "tiny alpha": (lambda d, t: fitted(d)["gp_"].update(alpha_epsilon=5e-324), "cannot be built|NaN or infinite"),
    "noise": (lambda d, t: fitted(d)["gp_"].update(noise="1"), "noise is not a float"),
    "signal": (lambda d, t: fitted(d)["gp_"].update(signal=-1.0), "signal is not a positive number"),
    "length scales": (replaced(f"{G}.length_scales", lambda A: A[1:]), "gp_.length_scales has the shape"),
    "length scale": (put(f"{G}.length_scales", 0, -1.0), "length_scales has values that are not"),
    "inputs": (put(f"{G}.inputs", (0, 0), np.nan), "gp_.inputs has NaN or infinite values"),
    "flat inputs": (replaced(f"{G}.inputs", np.ravel), "gp_.inputs has the shape"),
    "width": (
        lambda d, t: (replaced(f"{G}.inputs", lambda A: A[:, :1])(d, t),
                      replaced(f"{G}.length_scales", lambda A: A[:1])(d, t)), "gp_.inputs has the shape"),
    "draws": (replaced("fitted.draws_", lambda A: A[:, 1:]), "draws_ has the shape"),
    "no draws": (replaced("fitted.draws_", lambda A: A[:0]), "draws_ has the shape"),
    "draw": (put("fitted.draws_", (0, 0), np.inf), "draws_ has NaN or infinite values"),
    "huge draws": (
        lambda d, t: (fitted(d)["gp_"].update(signal=1e6), put("fitted.draws_", ..., 1e308)(d, t)),
        "gp_ predicts NaN"),
    "one class": (
        lambda d, t: (t.pop("fitted.classes_"), fitted(d).update(classes_=["a"])), "draws_ has the shape"),
    "numbered classes": (
        lambda d, t: (t.pop("fitted.classes_"), fitted(d).update(classes_=["a", 1, 2])), "not a list of names"),
    "more classes": (
        lambda d, t: (t.pop("fitted.classes_"), fitted(d).update(classes_=["a", "b", "c", "d"])),
        "draws_ has the shape"),
    "endless class": (
        lambda d, t: (t.update({"fitted.classes_": np.array([0, 1, np.inf])}), fitted(d).update(classes_=ARRAY)),
        "classes_ has NaN or infinite values"),
    "embedding's scale": (lambda d, t: fitted(d).update(embedding_scale_=0.0), "embedding_scale_ is not a positive"),
    "array of scales": (
        lambda d, t: (t.update({"fitted.embedding_scale_": np.ones(2)}), fitted(d).update(embedding_scale_=ARRAY)),
        "embedding_scale_ is not a float"),
}  # fmt: skip
FORGERIES = {
    (model, forgery): parts
    for model, table in {
        "SDRGPRegressor, several targets": REGRESSION,
        "SDRGPRegressor, inducing points": SPARSE,
        "SDRGPClassifier": CLASSIFICATION,
    }.items()
    for forgery, parts in table.items()
}


@pytest.mark.parametrize("name", FORGERIES, ids=": ".join)
def test_forged_file(name: tuple[str, str], tmp_path: Path) -> None:
    edit, reason = FORGERIES[name]
    fitted_model(name[0]).save(tmp_path / "m")
    forge(tmp_path / "m", edit)
    with pytest.raises(ModelFileError, match=f"m' cannot be loaded: .*({reason})"):
        persistence.load(tmp_path / "m")


@pytest.mark.parametrize("name", sorted({model for model, _ in FORGERIES}))
def test_forging_nothing_gives_a_file_that_loads(name: str, tmp_path: Path) -> None:
    """Or the forgeries above would prove nothing."""
    fitted_model(name).save(tmp_path / "m")
    forge(tmp_path / "m", lambda document, tensors: None)
    assert persistence.load(tmp_path / "m").n_features_in_ == 3


@pytest.mark.parametrize(
    ("name", "other", "reason"),
    [
        ("SDRGPRegressor", "SDRGPClassifier", "a classification, not a regression"),
        ("SDRGPClassifier", "SDRGPRegressor", "a regression, not a classification"),
    ],
)
def test_reduction_of_the_other_task(name: str, other: str, reason: str, tmp_path: Path) -> None:
    fitted_model(name).save(tmp_path / "m")
    fitted_model(other).save(tmp_path / "other")
    (document, tensors), (lender, lent) = contents(tmp_path / "m"), contents(tmp_path / "other")
    fitted(document)["reduction_"] = fitted(lender)["reduction_"]
    kept = {key: value for key, value in tensors.items() if not key.startswith("fitted.reduction_.")}
    write_file(tmp_path / "m", document, kept | {k: v for k, v in lent.items() if k.startswith("fitted.reduction_.")})
    with pytest.raises(ModelFileError, match=f"reduction_ is {reason}"):
        persistence.load(tmp_path / "m")


def enlarged_regressor(document: Document, tensors: dict[str, Any]) -> None:
    tensors |= {f"{S}.inputs.inputs": np.zeros((20_000, 3)), f"{S}.targets": np.zeros((20_000, 1))}


def many_targets(document: Document, tensors: dict[str, Any]) -> None:
    n, many = 5_000, 100
    tensors |= {f"{S}.inputs.inputs": np.zeros((n, 3)), f"{S}.targets": np.zeros((n, many), dtype="f4")}
    for key in ("variance_scale", "inputs.weight", "inputs.signal", "inputs.noise"):
        tensors[f"{S}.{key}"] = np.ones(many)
    tensors[f"{S}.inputs.length_scales"] = np.ones((many, 3))
    tensors |= {f"fitted.target_scale_.{part}": np.ones(many) for part in ("mean", "std")}
    fitted(document)["target_scale_"]["is_table"] = True


def enlarged_classifier(document: Document, tensors: dict[str, Any]) -> None:
    tensors |= {f"{G}.inputs": np.zeros((20_000, 3)), f"{G}.labels": np.zeros(20_000, dtype=int)}


def many_classes(document: Document, tensors: dict[str, Any]) -> None:
    tensors |= {f"{G}.inputs": np.zeros((9_000, 3)), f"{G}.labels": np.zeros(9_000, dtype=int)}
    tensors |= {"fitted.draws_": np.zeros((1, 200_000)), "fitted.classes_": np.arange(200_000)}
    fitted(document)["classes_"] = ARRAY | {"dtype": "int64"}


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("GPRegressor", enlarged_regressor),
        ("GPRegressor", many_targets),
        ("GPClassifier", enlarged_classifier),
        ("GPClassifier", many_classes),
    ],
)
def test_small_file_cannot_fill_the_memory(name: str, edit: Edit, tmp_path: Path) -> None:
    """A factorisation has n² numbers, though the file has only n rows."""
    fitted_model(name).save(tmp_path / "m")
    forge(tmp_path / "m", edit)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="exact GPs"):
        persistence.load(tmp_path / "m")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
