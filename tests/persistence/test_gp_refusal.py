"""Forged GP models are refused with the reason, before anything is built from them."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from persistence.cases import fitted_model
from persistence.forging import ARRAY, Document, Edit, contents, fitted, forge, params, put, replaced
from persistence.make_golden import FOLDER

from distreduce import persistence
from distreduce._utils.tensor_file import write_file
from distreduce.exceptions import ModelFileError


def stacks(document: Document, target: int = 0) -> Document:
    """The stack of a target, or of all classes."""
    found = fitted(document)
    return (found["stacks_"] if "stacks_" in found else found["stack_"])["stacks"][target]


def expert(document: Document, name: str) -> Document:
    return next(each for each in stacks(document)["experts"] if each["name"] == name)


def without(name: str) -> Edit:
    """Leave out an expert."""
    return lambda d, t: stacks(d).update(experts=[each for each in stacks(d)["experts"] if each["name"] != name])


def reduction(document: Document) -> Document:
    return fitted(document)["reduction_"]


S, G, R = "fitted.stacks_", "fitted.gp_", "fitted.reduction_.fitted"
REGRESSION: dict[str, tuple[Edit, str]] = {
    "unknown attribute": (lambda d, t: fitted(d).update(predict=1), "does not know: .'predict'"),
    "missing attribute": (lambda d, t: fitted(d).pop("input_scale_"), "lacks .'input_scale_'"),
    "bad parameter": (lambda d, t: params(d).update(residual=7), "'residual' parameter of SDRGPRegressor must be"),
    "features": (lambda d, t: fitted(d).update(n_features_in_=2), "feature_names_in_ has the shape"),
    "no features": (lambda d, t: fitted(d).update(n_features_in_=0), "n_features_in_ is not an integer"),
    "truth for features": (lambda d, t: fitted(d).update(n_features_in_=True), "n_features_in_ is not an integer"),
    "names": (lambda d, t: fitted(d).update(feature_names_in_=["a"]), "feature_names_in_ has the shape"),
    "names that are numbers": (lambda d, t: fitted(d).update(feature_names_in_=[1, 2, 3]), "not a list of names"),
    "zero scale": (put("fitted.input_scale_", 0, 0.0), "input_scale_ has values that are not greater than"),
    "fewer scales": (replaced("fitted.input_scale_", lambda A: A[1:]), "input_scale_ has the shape"),
    "embedding's scale": (put("fitted.embedding_scale_", 1, -1.0), "embedding_scale_ has values that are not greater"),
    "one embedding scale": (
        lambda d, t: (fitted(d).update(embedding_scale_=1.0), t.pop("fitted.embedding_scale_")), "is not an array"),
    "more embedding scales": (replaced("fitted.embedding_scale_", lambda A: np.r_[A, 1.0]), "has the shape"),
    "target's scale": (put("fitted.target_scale_.std", 0, 0.0), "target_scale_.std has values that are not"),
    "target's range": (put("fitted.target_scale_.ranges", 0, 3), "target_scale_.ranges has an unknown one"),
    "targets in a row": (lambda d, t: fitted(d)["target_scale_"].update(is_table=False), "is not a table"),
    "truth of the table": (lambda d, t: fitted(d)["target_scale_"].update(is_table=1), "is_table is not a bool"),
    "fewer means": (replaced("fitted.target_scale_.mean", lambda A: A[1:]), "target_scale_.std has the shape"),
    "fewer targets": (
        lambda d, t: t.update({k: t[k][:1] for k in ("fitted.target_scale_.mean", "fitted.target_scale_.std")}),
        "target|stack"),
    "one stack": (lambda d, t: fitted(d)["stacks_"]["stacks"].pop(), "target|stack"),
    "stacks of other targets": (lambda d, t: stacks(d, 1).update(target="2"), "."),
    "no stacks": (lambda d, t: fitted(d).update(stacks_=[]), "stacks_ is not an object"),
    "empty stacks": (lambda d, t: fitted(d)["stacks_"].update(stacks=[]), "not a list of|stacks"),
    "targets of others": (replaced(f"{S}.inputs.targets", lambda A: A[:, :1]), "has the shape|has no targets"),
    "novelty": (replaced("fitted.novelty_.inputs", lambda A: A[:, 1:]), "novelty_.inputs has the shape"),
    "endless novelty": (put("fitted.novelty_.distances", 0, np.nan), "distances has NaN"),
    "reduction": (lambda d, t: fitted(d).update(reduction_=None), "reduction_.state is not an object"),
    "reduction's features": (
        lambda d, t: (reduction(d)["fitted"].update(n_features_in_=2),
                      replaced(f"{R}.map_.inputs", lambda A: A[:, :2])(d, t)),
        "reduction_.fitted.n_features_in_ is 2, not 3"),
    "reduction of distances": (
        lambda d, t: (reduction(d)["fitted"]["map_"].update(inputs=None), t.pop(f"{R}.map_.inputs"),
                      replaced(f"{R}.map_.coefficients", lambda A: A[:, :3])(d, t)), "take features|of a distance"),
    "reduction's names": (
        lambda d, t: reduction(d)["fitted"].update(feature_names_in_=["a", "b", "c"]), "reduction_ has feature names"),
    "reduction's numbers": (put(f"{R}.map_.coefficients", (0, 0), np.nan), "NaN or infinite"),
    "reduction's parameter": (lambda d, t: reduction(d)["params"].update(alpha=7.0), "'alpha' parameter of SDR"),
}  # fmt: skip
F, B = f"{S}.0.forest.trees", f"{S}.0.boosting.trees"
STACK: dict[str, tuple[Edit, str]] = {
    "unknown view": (lambda d, t: fitted(d)["stacks_"]["views"][0].update(view="__class__"), "a view that is unknown"),
    "missing view": (lambda d, t: fitted(d)["stacks_"].update(views=fitted(d)["stacks_"]["views"][:1]), "no inputs"),
    "no views": (lambda d, t: fitted(d)["stacks_"].update(views=[]), "has no inputs"),
    "fewer inputs": (replaced(f"{S}.inputs.inputs", lambda A: A[:, 1:]), "its experts take|has the shape"),
    "fewer rows": (replaced(f"{S}.inputs.inputs", lambda A: A[1:]), "has the shape"),
    "no weight of a row": (put(f"{S}.inputs.weights", 0, 0.0), "weights has values that are not greater"),
    "unknown expert": (lambda d, t: expert(d, "linear").update(name="__class__"), "a name that is unknown"),
    "expert twice": (lambda d, t: expert(d, "linear").update(name="forest"), "."),
    "no experts": (lambda d, t: stacks(d).update(experts=[]), "not a list of names"),
    "missing expert": (without("isotropic"), "do not sum to 1"),
    "weights": (lambda d, t: expert(d, "linear").update(weight=0.9), "do not sum to 1"),
    "negative weight": (
        lambda d, t: (expert(d, "linear").update(weight=-expert(d, "forest")["weight"]),
                      expert(d, "forest").update(weight=expert(d, "linear")["weight"])), "do not sum to 1"),
    "weight as text": (lambda d, t: expert(d, "linear").update(weight="1"), "weight is not a float"),
    "length scale": (put(f"{S}.0.inputs.process.length_scales", 0, 0.0), "length_scales has values that are not"),
    "tiny length scale": (put(f"{S}.0.inputs.process.length_scales", 0, 5e-324), "cannot be built|NaN or infinite"),
    "signal": (lambda d, t: expert(d, "inputs")["process"].update(signal=-1.0), "signal is not a positive number"),
    "huge signal": (lambda d, t: expert(d, "inputs")["process"].update(signal=1e308), "cannot be built|NaN or inf"),
    "noise": (lambda d, t: expert(d, "embedding")["process"].update(noise=0.0), "noise is not a positive number"),
    "process without one": (lambda d, t: expert(d, "inputs").update(process=None), "'inputs' does not fit"),
    "huge target": (put(f"{S}.inputs.targets", (0, 0), 1e308), "NaN or infinite|cannot be built"),
    "trees for a line": (lambda d, t: expert(d, "linear").update(linear=None), "linear expert does not fit"),
    "fewer coefficients": (replaced(f"{S}.0.linear.linear.coefficients", lambda A: A[1:]), "does not fit|the shape"),
    "no trees": (lambda d, t: expert(d, "forest").update(trees=None), "'forest' does not fit"),
    "child that is its parent": (put(f"{F}.left", 0, 0), "trees.left does not lead away"),
    "children that loop": (put(f"{F}.right", 2, 1), "."),
    "child outside": (put(f"{F}.right", 0, 10**9), "trees.right has indices outside"),
    "negative child": (put(f"{F}.left", 1, -5), "trees.left has indices outside"),
    "feature outside": (put(f"{F}.feature", 0, 3), "'forest' does not fit"),
    "feature below": (put(f"{F}.feature", 0, -2), "trees.feature has indices outside"),
    "huge feature": (put(f"{F}.feature", 0, 2**62), "'forest' does not fit"),
    "root outside": (put(f"{F}.roots", 0, 10**6), "trees.roots has indices outside"),
    "negative root": (put(f"{F}.roots", 0, -1), "trees.roots has indices outside"),
    "column outside": (put(f"{B}.columns", 0, 1), "trees.columns points outside"),
    "negative column": (put(f"{B}.columns", 0, -1), "trees.columns has indices outside"),
    "more columns": (lambda d, t: expert(d, "boosting")["trees"].update(n_columns=10**12), "."),
    "fewer nodes": (replaced(f"{F}.threshold", lambda A: A[1:]), "threshold has the shape|has the shape"),
    "endless threshold": (put(f"{F}.threshold", 0, np.nan), "threshold has NaN"),
    "huge leaves": (put(f"{F}.values", ..., 1e308), "NaN or infinite"),
    "floats for nodes": (
        lambda d, t: (t.update({f"{F}.left": t[f"{F}.left"].astype(float)}),
                      expert(d, "forest")["trees"].update(left=ARRAY)), "not integer"),
    "no baseline": (lambda d, t: expert(d, "boosting").update(baseline=None), "lacks its baseline"),
    "logits for numbers": (lambda d, t: expert(d, "boosting").update(binary=True), "."),
    "variance": (lambda d, t: stacks(d).update(variance_scale=-1.0), "variance_scale is not a positive"),
    "no variance": (lambda d, t: stacks(d).update(variance_scale=None), "."),
    "constant": (lambda d, t: expert(d, "linear").update(constant=-1.0), "variances that are not positive"),
    "no constant": (lambda d, t: expert(d, "linear").update(constant=None), "variances that are not positive"),
    "tails": (put(f"{S}.0.tails", (0, 0), 1.5), "tails are not a distribution"),
    "negative tails": (put(f"{S}.0.tails", (0, 2), -1.0), "tails are not a distribution"),
    "fewer tails": (replaced(f"{S}.0.tails", lambda A: A[:, 1:]), "tails has the shape"),
    "no tails": (lambda d, t: (stacks(d).update(tails=None), t.pop(f"{S}.0.tails")), "not one of numbers"),
    "freedom": (lambda d, t: stacks(d).update(freedom=-1.0), "freedom|tails"),
    "no freedom": (lambda d, t: stacks(d).update(freedom=None), "."),
    "endless error": (put(f"{S}.0.reference", 0, np.inf), "reference has NaN"),
    "stack of classes": (lambda d, t: stacks(d).update(sharpness=1.0), "not one of numbers"),
}  # fmt: skip
WARPED: dict[str, tuple[Edit, str]] = {
    "falling": (replaced(f"{S}.0.warp", lambda A: A[::-1]), "does not increase"),
    "flat": (put(f"{S}.0.warp", (1, 1), -1e9), "does not increase"),
    "one knot": (replaced(f"{S}.0.warp", lambda A: A[:1]), "."),
    "three columns": (replaced(f"{S}.0.warp", lambda A: np.c_[A, A[:, 0]]), "warp has the shape"),
}
K = "fitted.stack_"
CLASSES: dict[str, tuple[Edit, str]] = {
    "no temperature": (lambda d, t: expert(d, "linear").update(temperature=None), "lacks a temperature"),
    "cold": (lambda d, t: expert(d, "linear").update(temperature=0.0), "temperature is not a positive"),
    "no sharpness": (lambda d, t: stacks(d).update(sharpness=None), "not one of classes"),
    "weights": (lambda d, t: expert(d, "linear").update(weight=0.9), "do not sum to 1"),
    "two stacks": (
        lambda d, t: fitted(d)["stack_"]["stacks"].append({**stacks(d), "target": "1"}), "."),
    "fewer columns of a line": (
        lambda d, t: (replaced(f"{K}.0.linear.linear.coefficients", lambda A: A[:, 1:])(d, t),
                      replaced(f"{K}.0.linear.linear.intercepts", lambda A: A[1:])(d, t)), "has the shape|classes"),
    "fewer classes of a GP": (
        lambda d, t: (replaced(f"{K}.inputs.targets", lambda A: A[:, 1:])(d, t),
                      replaced(f"{K}.inputs.mean", lambda A: A[1:])(d, t)), "does not predict 3 classes|has the shape"),
    "children that loop": (put(f"{K}.0.forest.trees.left", 0, 0), "does not lead away"),
    "logits of two": (lambda d, t: expert(d, "boosting").update(binary=True), "does not predict 3 classes"),
    "one class": (lambda d, t: (t.pop("fitted.classes_"), fitted(d).update(classes_=["a"])), "."),
    "more classes": (
        lambda d, t: (t.pop("fitted.classes_"), fitted(d).update(classes_=["a", "b", "c", "d"])), "."),
    "no predictor": (
        lambda d, t: (fitted(d).pop("stack_"), [t.pop(k) for k in [*t] if k.startswith(K)]), "or neither"),
    "embedding's scale": (lambda d, t: fitted(d).update(embedding_scale_=0.0), "embedding_scale_ is not a positive"),
    "array of scales": (
        lambda d, t: (t.update({"fitted.embedding_scale_": np.ones(2)}), fitted(d).update(embedding_scale_=ARRAY)),
        "embedding_scale_ is not a float"),
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
}  # fmt: skip
INDUCING = "0.1.0-format-2/sdr-gp-regressor-sparse.safetensors"  # of an earlier version
FORGERIES = {
    (model, forgery): parts
    for model, table in {
        "SDRGPRegressor, several targets": REGRESSION,
        "SDRGPRegressor": STACK,
        "SDRGPRegressor, warped": WARPED,
        "SDRGPClassifier": CLASSES,
        "GPClassifier": CLASSIFICATION,
        INDUCING: SPARSE,
    }.items()
    for forgery, parts in table.items()
}


def save(name: str, path: Path) -> None:
    """Save the model of a case, or copy a golden file."""
    if name == INDUCING:
        shutil.copy(FOLDER / name, path)
    else:
        fitted_model(name).save(path)


@pytest.mark.parametrize("name", FORGERIES, ids=[": ".join(name) for name in FORGERIES])
def test_forged_file(name: tuple[str, str], tmp_path: Path) -> None:
    edit, reason = FORGERIES[name]
    save(name[0], tmp_path / "m")
    forge(tmp_path / "m", edit)
    with pytest.raises(ModelFileError, match=f"m' cannot be loaded: .*({reason})"):
        persistence.load(tmp_path / "m")


@pytest.mark.parametrize("name", sorted({model for model, _ in FORGERIES}))
def test_forging_nothing_gives_a_file_that_loads(name: str, tmp_path: Path) -> None:
    """Or the forgeries above would prove nothing."""
    save(name, tmp_path / "m")
    forge(tmp_path / "m", lambda document, tensors: None)
    assert persistence.load(tmp_path / "m").n_features_in_ in (2, 3)


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
    tensors[f"{S}.weights"] = np.ones(20_000)


def many_targets(document: Document, tensors: dict[str, Any]) -> None:
    n, many = 5_000, 100
    tensors |= {f"{S}.inputs.inputs": np.zeros((n, 3)), f"{S}.targets": np.zeros((n, many), dtype="f4")}
    for key in ("variance_scale", "inputs.weight", "inputs.signal", "inputs.noise"):
        tensors[f"{S}.{key}"] = np.ones(many)
    tensors[f"{S}.inputs.length_scales"] = np.ones((many, 3))
    tensors |= {f"fitted.target_scale_.{part}": np.ones(many) for part in ("mean", "std")}
    tensors[f"{S}.weights"] = np.ones(n)
    tensors["fitted.target_scale_.ranges"] = np.zeros(many, dtype=int)
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
