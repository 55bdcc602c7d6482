"""Maps and predictors as ONNX graphs, for other languages."""

from __future__ import annotations

import json
from typing import Any

from distreduce.interop._formula import Path, map_formula
from distreduce.interop._graph import Graph, add_map
from distreduce.interop._onnx_predictor import add_predictor, read_columns
from distreduce.interop._predictor import require_stacks
from distreduce.tables.recipe import ColumnRecipe


def save_onnx(model: Any, path: Path) -> None:
    """Save the map of a model as an ONNX graph with input ``X`` (n, d) and output ``embedding`` (n, p), both float64.

    Parameters
    ----------
    model : SDR, DistR, SDRGPRegressor, SDRGPClassifier or Pipeline
        A fitted model, or a pipeline of StandardScalers that ends in one.
    path : str or path-like
        The file, written atomically.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    UnsavableModelError
        The input kernel is a Python function, or the pipeline has a step other than StandardScaler.
    ModelSaveError
        The file could not be written. An existing file is unchanged.
    """
    graph, formula = Graph("save_onnx"), map_formula(model)
    embedded = add_map(graph.read("X", len(formula.offset)), formula)
    graph.save(path, {"embedding": (embedded, formula.coefficients.shape[1:])}, {})


def save_predictor_onnx(predictor: Any, path: Path, recipe: ColumnRecipe | None = None) -> None:
    """Save a predictor as an ONNX graph: what :func:`save_predictor` writes, for other languages.

    Parameters
    ----------
    predictor : SDRGPRegressor or SDRGPClassifier
        A fitted model without experts of your own.
    path : str or path-like
        The file, written atomically. It holds training samples, and 8 n² bytes per Gaussian process of numbers that
        conditions on all n samples.
    recipe : ColumnRecipe, optional
        How the columns of a table become features. The graph then has an input per column, with its name: text for
        categories ("" is missing), and float64 for all others (NaN is missing): numbers, 0 or 1, days since 1970.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    InvalidInputError
        The recipe makes another number of features than the predictor was fitted to.
    UnsavableModelError
        The predictor has parts of your own.
    ModelSaveError
        The file could not be written. An existing file is unchanged.

    Notes
    -----
    Without a recipe the input is ``X`` (n, d). Outputs are ``mean``, ``std``, ``q05``, ``q50`` and ``q95``, each (n,)
    or (n, targets), or ``probabilities`` (n, classes); all are float64. The metadata ``classes`` is a JSON list.
    """
    stacks, graph = require_stacks(predictor, recipe), Graph("save_predictor_onnx")
    X = graph.read("X", predictor.n_features_in_) if recipe is None else read_columns(graph, recipe.used)
    outputs = add_predictor(X, predictor, stacks)
    classes = [str(label) for label in getattr(predictor, "classes_", ())]
    graph.save(path, outputs, {"classes": json.dumps(classes)} if classes else {})
