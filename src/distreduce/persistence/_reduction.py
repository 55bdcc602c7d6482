"""State of SDR and DistR: parameters, fitted attributes, and what must hold between them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce.estimators import SDR
from distreduce.kernels import RBF, DistanceKernel
from distreduce.mapping import KernelMap
from distreduce.persistence._checks import (
    check_floats,
    check_indices,
    check_shape,
    checked_parts,
    read_names,
    read_params,
    write_params,
)
from distreduce.solver.loop import Record

FLOATS = ("prototypes_", "prototype_weights_", "embedding_", "prototype_targets_")
INDICES = ("prototype_medoids_", "labels_")
NAMES = ("target_names_", "feature_names_in_")
SCALARS = {"objective_": float, "n_iter_": int, "converged_": bool, "perplexity_": float, "n_features_in_": int,
           "task_": str}  # fmt: skip
OTHERS = ("coupling_", "classes_", "map_", "history_")
ATTRIBUTES = (*FLOATS, *INDICES, *NAMES, *SCALARS, *OTHERS)
OF_TARGETS = {"prototype_targets_", "target_names_", "task_"}  # with SDR, and only there
OPTIONAL = {"classes_", "feature_names_in_"}


def to_state(model: Any, write: Writer) -> Node:
    """Parameters and fitted attributes; the training inputs are among them because the map needs them."""
    params, fitted = write.within("params"), write.within("fitted")
    return {
        "params": write_params(model, params),
        "fitted": {
            name: _write_attribute(name, getattr(model, name), fitted) for name in ATTRIBUTES if hasattr(model, name)
        },
    }


def _write_attribute(name: str, value: Any, write: Writer) -> Node:
    if name in NAMES:
        return [str(text) for text in value]
    if name in SCALARS:
        return write.value(name, value)
    if name == "coupling_":
        return write.sparse(name, value, compact=True)
    if name == "map_":
        return _write_map(value, write.within(name))
    if name == "history_":
        columns = write.within(name)
        return {str(column): columns.array(str(column), value[column].to_numpy()) for column in value.columns}
    return write.array(name, value, compact=name in FLOATS)


def _write_map(value: KernelMap, write: Writer) -> Node:
    if value.inputs is None:
        inputs = None
    else:
        writer = write.sparse if sparse.issparse(value.inputs) else write.array
        inputs = writer("inputs", value.inputs, compact=True)
    coefficients = write.array("coefficients", value.coefficients, compact=True)
    kernel, unit = write.value("kernel", value.kernel), write.value("unit", value.unit)
    return {"kernel": kernel, "unit": unit, "inputs": inputs, "coefficients": coefficients}


def from_state(cls: Any, state: Node, read: Reader) -> Any:
    """The model, if the state is one that a fit could have left."""
    needed = {*ATTRIBUTES} - OPTIONAL - (set() if issubclass(cls, SDR) else OF_TARGETS)
    params, fitted = checked_parts(cls, state, read, known={*ATTRIBUTES}, needed=needed)
    require(issubclass(cls, SDR) or not {*fitted} & {*OF_TARGETS, "classes_"}, f"a {cls.__name__} has no targets")
    model = read_params(cls, params, read.within("params"))
    reader = read.within("fitted")
    attributes = {name: _read_attribute(name, node, reader) for name, node in fitted.items()}
    _check_samples(attributes)
    _check_map(attributes)
    if issubclass(cls, SDR):
        _check_targets(attributes)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def _read_attribute(name: str, node: Node, read: Reader) -> Any:
    if name in NAMES:
        names = read_names(name, node)
        return np.array(names, dtype=object) if name == "feature_names_in_" else names
    if name in SCALARS:
        return _read_scalar(name, read.value(name, node))
    if name == "map_":
        return _read_map(node, read.within(name))
    if name == "history_":
        require(isinstance(node, dict), "history_ is no table")
        columns = {column: read.within(name).array(column, part) for column, part in node.items()}
        require(all(column.ndim == 1 for column in columns.values()), "history_ is no table")
        return pd.DataFrame({column: columns[column] for column in sorted(columns, key=_place_in_a_record)})
    value = read.sparse(name, node) if name == "coupling_" else read.array(name, node)
    if name in FLOATS:
        check_floats(name, value, missing=name == "prototype_targets_")
    return value


def _place_in_a_record(column: str) -> int:
    """A file's names are sorted; the table has the order of :class:`distreduce.solver.loop.Record`."""
    names = [field.name for field in fields(Record)]
    return names.index(column) if column in names else len(names)


def _read_scalar(name: str, value: Any) -> Any:
    kind = SCALARS[name]
    require(type(value) is kind or (kind is float and type(value) is int), f"{name} is no {kind.__name__}")
    return value


def _read_map(node: Node, read: Reader) -> KernelMap:
    inputs = read.part(node, "inputs")
    if inputs is not None:
        dense = isinstance(inputs, dict) and inputs.get("kind") == "array"
        inputs = read.array("inputs", inputs) if dense else read.sparse("inputs", inputs)
        check_floats("map_.inputs", inputs)
    coefficients = read.array("coefficients", read.part(node, "coefficients"))
    check_floats("map_.coefficients", coefficients)
    kernel, unit = (read.value(part, read.part(node, part)) for part in ("kernel", "unit"))
    require(isinstance(unit, int | float) and unit > 0, "map_.unit is no positive number")
    require(callable(kernel), "map_.kernel is no kernel")
    return KernelMap(kernel, inputs, coefficients, unit)


def _check_samples(found: dict[str, Any]) -> None:
    """Prototypes, samples and the plan between them."""
    prototypes, embedding = found["prototypes_"], found["embedding_"]
    require(prototypes.ndim == 2 and min(prototypes.shape) > 0, "prototypes_ is no table")
    require(embedding.ndim == 2 and len(embedding) > 0, "embedding_ is no table")
    (m, p), n = prototypes.shape, len(embedding)
    check_shape("embedding_", embedding, n, p)
    check_shape("prototype_weights_", found["prototype_weights_"], m)
    check_shape("coupling_", found["coupling_"], n, m)
    for name, size, below in (("prototype_medoids_", m, n), ("labels_", n, m)):
        check_indices(name, found[name], size, below)
    check_floats("coupling_", found["coupling_"])
    require(found["coupling_"].min() >= 0 and found["prototype_weights_"].min() >= 0, "a weight is negative")
    require(len(found["history_"]) == found["n_iter_"], "history_ has not a row an iteration")


def _check_map(found: dict[str, Any]) -> None:
    """The map against the features it takes and the dimensions it gives."""
    kernel, inputs, coefficients = found["map_"].kernel, found["map_"].inputs, found["map_"].coefficients
    d = found["n_features_in_"]
    require(coefficients.ndim == 2 and len(coefficients) > 0 and d > 0, "map_.coefficients is no table")
    check_shape("map_.coefficients", coefficients, len(coefficients), found["prototypes_"].shape[1])
    by_feature = isinstance(kernel, RBF) and isinstance(kernel.length_scale, tuple)
    if inputs is None:  # rows given are distances to the samples
        check_shape("map_.coefficients", coefficients, d, coefficients.shape[1])
        require(isinstance(kernel, DistanceKernel) and not by_feature, "map_.kernel is no function of a distance")
    else:
        check_shape("map_.inputs", inputs, len(coefficients), d)
        require(not by_feature or len(kernel.length_scale) == d, "map_.kernel has not a length scale a feature")
    require(len(found.get("feature_names_in_", range(d))) == d, "feature_names_in_ has not a name a feature")


def _check_targets(found: dict[str, Any]) -> None:
    targets, classes = found["prototype_targets_"], found.get("classes_")
    require(targets.ndim == 2, "prototype_targets_ is no table")
    check_shape("prototype_targets_", targets, len(found["prototypes_"]), targets.shape[1])
    require(len(found["target_names_"]) == targets.shape[1], "target_names_ has not a name a target")
    require(found["task_"] in ("regression", "classification"), "task_ is not known")
    require((classes is not None) == (found["task_"] == "classification"), "classes_ and task_ do not fit")
    if classes is not None:
        check_shape("classes_", classes, targets.shape[1])
        require(classes.dtype.kind != "f" or bool(np.isfinite(classes).all()), "classes_ are not finite")
