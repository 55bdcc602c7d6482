"""State of the GP regressors and classifiers: parameters, fitted attributes, and what must hold between them."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce.estimators import SDR
from distreduce.gp._target_scale import TargetScale
from distreduce.persistence import _reduction
from distreduce.persistence._checks import (
    check_floats,
    check_indices,
    check_positive,
    check_shape,
    checked_parts,
    read_names,
    read_params,
    read_positive,
    write_params,
)
from distreduce.persistence._latent import read_classification, write_classification
from distreduce.persistence._stacks import read_stacks, write_stacks

REGRESSION = ("n_features_in_", "target_scale_", "stacks_")
CLASSIFICATION = ("n_features_in_", "classes_", "draws_", "gp_")
ATTRIBUTES = {
    "GPRegressor": REGRESSION,
    "SDRGPRegressor": (*REGRESSION, "feature_spread_", "input_scale_", "embedding_scale_", "reduction_"),
    "GPClassifier": (*CLASSIFICATION, "feature_spread_"),
    "SDRGPClassifier": (*CLASSIFICATION, "embedding_scale_", "reduction_"),
}
OPTIONAL = "feature_names_in_"
SMALLEST_SCALE = 1e-200  # what features are divided by; less makes infinite ones of rows that are in order


def to_state(model: Any, write: Writer) -> Node:
    """Parameters and fitted attributes; the training inputs are among them because exact GPs need them."""
    names = [name for name in (*ATTRIBUTES[type(model).__name__], OPTIONAL) if hasattr(model, name)]
    fitted = write.within("fitted")
    return {
        "params": write_params(model, write.within("params")),
        "fitted": {name: _write_attribute(name, getattr(model, name), fitted) for name in names},
    }


def _write_attribute(name: str, value: Any, write: Writer) -> Node:
    parts = write.within(name)
    if name == "reduction_":
        # Its generator is the estimator's own, which has done its work.
        return _reduction.to_state(copy(value).set_params(random_state=None), parts)
    if name == "stacks_":
        return write_stacks(value, parts)
    if name == "gp_":
        return write_classification(value, parts)
    if name == "target_scale_":
        mean, std = parts.array("mean", value.mean), parts.array("std", value.std)
        return {"mean": mean, "std": std, "is_table": value.is_table}
    if name == "draws_":
        return write.array(name, value, compact=True)
    if name == OPTIONAL or _is_objects(name, value):
        return [str(text) for text in value]
    return write.value(name, value)


def _is_objects(name: str, value: Any) -> bool:
    """Labels as pandas used to hold them: an array of Python's own texts."""
    return name == "classes_" and value.dtype == object and all(isinstance(label, str) for label in value)


def from_state(cls: Any, state: Node, read: Reader) -> Any:
    """The model, if the state is one that a fit could have left; GPs are built after everything else is in order."""
    needed = {*ATTRIBUTES[cls.__name__]}
    params, fitted = checked_parts(cls, state, read, known={*needed, OPTIONAL}, needed=needed)
    model = read_params(cls, params, read.within("params"))
    reader = read.within("fitted")
    found = {name: _read_attribute(name, node, reader) for name, node in fitted.items()}
    _check_features(found)
    if "stacks_" in found:
        _check_regression(model, found)
        found["stacks_"] = found["stacks_"].build()
    else:
        _check_classification(found)
        found["gp_"] = found["gp_"].build(len(found["classes_"]), found["draws_"])
    for name, value in found.items():
        setattr(model, name, value)
    return model


def _read_attribute(name: str, node: Node, read: Reader) -> Any:
    parts = read.within(name)
    if name == "reduction_":
        return _reduction.from_state(SDR, node, parts)
    if name == "stacks_":
        return read_stacks(node, parts)
    if name == "gp_":
        return read_classification(node, parts)
    if name == "target_scale_":
        return _read_target_scale(node, parts)
    if name == OPTIONAL or (name == "classes_" and isinstance(node, list)):
        return np.array(read_names(name, node), dtype=object)
    if name == "n_features_in_":
        require(type(node) is int and node > 0, f"{name} is no number of features")
        return node
    if name == "embedding_scale_" and not isinstance(node, dict):
        return read_positive(name, node)
    return read.array(name, node)


def _read_target_scale(node: Node, read: Reader) -> TargetScale:
    mean, std = (read.array(part, read.part(node, part)) for part in ("mean", "std"))
    check_floats("target_scale_.mean", mean)
    check_positive("target_scale_.std", std)
    is_table = read.part(node, "is_table")
    require(mean.ndim == 1 and type(is_table) is bool, "target_scale_ is not in order")
    require(is_table or len(mean) == 1, "target_scale_ has several targets that are no table")
    check_shape("target_scale_.std", std, len(mean))
    return TargetScale(mean, std, is_table)


def _check_features(found: dict[str, Any]) -> None:
    """Features, their scales, and the reduction that takes them."""
    d = found["n_features_in_"]
    require(len(found.get(OPTIONAL, range(d))) == d, "feature_names_in_ has not a name a feature")
    for name in {"feature_spread_", "input_scale_"} & {*found}:
        check_shape(name, found[name], d)
        check_positive(name, found[name])
        require(bool((found[name] > SMALLEST_SCALE).all()), f"{name} has numbers too small to divide by")
    if "reduction_" in found:
        reduction = found["reduction_"]
        require(isinstance(reduction.map_.inputs, np.ndarray), "reduction_ takes something else than features")
        require(reduction.n_features_in_ == d, f"reduction_ takes {reduction.n_features_in_} features, not {d}")
        require(not hasattr(reduction, OPTIONAL), "reduction_ has feature names, though it is fitted to arrays")


def _check_regression(model: Any, found: dict[str, Any]) -> None:
    widths, scale = found["stacks_"].widths, found["target_scale_"]
    check_shape("target_scale_.mean", scale.mean, len(found["stacks_"].variance_scale))
    expected = {"inputs": found["n_features_in_"]}
    if "reduction_" in found:
        p = found["reduction_"].prototypes_.shape[1]
        require(found["reduction_"].task_ == "regression", "reduction_ is one of classes")
        require(isinstance(found["embedding_scale_"], np.ndarray), "embedding_scale_ is no array")
        check_shape("embedding_scale_", found["embedding_scale_"], p)
        check_positive("embedding_scale_", found["embedding_scale_"])
        if "rough_inputs" in widths:  # not in files of format 1, nor with inducing points
            expected["rough_inputs"] = found["n_features_in_"]
        expected = {**(expected if model.residual else {}), "embedding": p}
    require(widths == expected, f"its GPs see {widths}, but the model gives them {expected}")


def _check_classification(found: dict[str, Any]) -> None:
    gp, classes, draws = found["gp_"], found["classes_"], found["draws_"]
    require(classes.ndim == 1 and len(classes) > 1, "classes_ are less than two")
    require(classes.dtype.kind != "f" or bool(np.isfinite(classes).all()), "classes_ are not finite")
    check_indices("gp_.labels", gp.labels, len(gp.inputs), len(classes))
    check_floats("draws_", draws)
    require(draws.ndim == 2 and len(draws) > 0, "draws_ is no table")
    check_shape("draws_", draws, len(draws), len(classes))
    width = found["n_features_in_"]
    if "reduction_" in found:
        require(found["reduction_"].task_ == "classification", "reduction_ is one of numbers")
        require(isinstance(found["embedding_scale_"], float), "embedding_scale_ is no number")
        width = found["reduction_"].prototypes_.shape[1]
    check_shape("gp_.inputs", gp.inputs, len(gp.inputs), width)
