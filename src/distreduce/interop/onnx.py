"""Maps and predictors as ONNX graphs, for other languages.

The operators of a predictor are the formulas of `_predictor_reader`, in which known systems are solved beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from distreduce._utils.typing import Array, FilePath
from distreduce.gp._class_stack import LEAST_INDICATOR, ClassStack
from distreduce.gp._exact import NEIGHBOUR_JITTER, NEIGHBOURS, ExactGP, NeighbourGP
from distreduce.gp._experts import LEAST_PROBABILITY, Boosting, Linear, Process
from distreduce.gp._noise import POWER
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import LEVELS, RANGES, Warp
from distreduce.gp._trees import Trees
from distreduce.interop._formula import map_formula
from distreduce.interop._graph import ML, Graph, Value, add_map, squared_distances
from distreduce.interop._predictor import QUANTILES, require_stacks
from distreduce.kernels import Matern32
from distreduce.tables.columns import Category, Date, Number, Used
from distreduce.tables.recipe import ColumnRecipe

Views = Mapping[str, Value]
NAMES = ("mean", "std", "q05", "q50", "q95")


def save_onnx(model: Any, path: FilePath) -> None:
    """Save the map of a model as an ONNX graph with input ``X`` (n, d) and output ``embedding`` (n, p), both float64.

    Parameters and errors are those of :func:`save_map`; without onnx it raises MissingDependencyError.
    """
    graph, formula = Graph("save_onnx"), map_formula(model)
    embedded = add_map(graph.read("X", len(formula.offset)), formula)
    graph.save(path, {"embedding": (embedded, formula.coefficients.shape[1:])}, {})


def save_predictor_onnx(predictor: Any, path: FilePath, recipe: ColumnRecipe | None = None) -> None:
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

    Notes
    -----
    Errors are those of :func:`save_predictor`; without onnx it raises MissingDependencyError.

    Without a recipe the input is ``X`` (n, d). Outputs are ``mean``, ``std``, ``q05``, ``q50`` and ``q95``, each (n,)
    or (n, targets), or ``probabilities`` (n, classes); all are float64. The metadata ``classes`` is a JSON list.
    """
    stacks, graph = require_stacks(predictor, recipe), Graph("save_predictor_onnx")
    X = graph.read("X", predictor.n_features_in_) if recipe is None else read_columns(graph, recipe.used)
    outputs = add_predictor(X, predictor, stacks)
    classes = [str(label) for label in getattr(predictor, "classes_", ())]
    graph.save(path, outputs, {"classes": json.dumps(classes)} if classes else {})


def read_columns(graph: Graph, rules: Sequence[Used]) -> Value:
    """X from one input per column, as `rule.encode` makes it."""
    return graph("Concat", *(part for rule in rules for part in _read_column(graph, rule)), axis=1)


def _read_column(graph: Graph, rule: Used) -> list[Value]:
    if isinstance(rule, Category):
        n = len(rule.levels)
        known: Any = {"keys_strings": [*rule.levels, ""], "values_int64s": [*range(n), -1], "default_int64": n}
        code = graph("LabelEncoder", graph.read(rule.name, kind="STRING"), domain=ML, **known).widen(1)
        columns = np.array([*range(n + rule.other), *[-1] * rule.flag], dtype=np.int64)
        return [graph("Equal", code, columns).cast()]
    cells = graph.read(rule.name).widen(1)
    missing = graph("IsNaN", cells)
    value = graph("Where", missing, rule.fill, cells)
    parts = [(value - rule.center) / rule.scale if isinstance(rule, Number) else value]
    parts += [missing.cast()] if rule.flag else []
    for cycle in rule.cycles if isinstance(rule, Date) else ():
        turn = value * (2 * np.pi / cycle)
        parts += [graph("Sin", turn), graph("Sin", turn + np.pi / 2)]  # not every runtime has Cos of doubles
    return parts


def add_predictor(x: Value, predictor: Any, stacks: Sequence[Stack | ClassStack]) -> dict[str, Any]:
    """The outputs by name, with the widths of their rows."""
    views = {"inputs": x / predictor.input_scale_}
    if any("embedding" in stack.used() for stack in stacks):
        formula = map_formula(predictor)
        coefficients = formula.coefficients / predictor.embedding_scale_
        views["embedding"] = add_map(x, replace(formula, coefficients=coefficients))
    if isinstance(stacks[0], ClassStack):
        return {"probabilities": (_mix_classes(stacks[0], views, len(predictor.classes_)), (len(predictor.classes_),))}
    scale, found = predictor.target_scale_, []
    for stack, centre, unit, limits in zip(stacks, scale.mean, scale.std, RANGES[scale.ranges], strict=True):
        mean, std, quantiles = _mix_numbers(stack, views)
        single = [mean, *(quantiles.take(k, k + 1) for k in range(len(QUANTILES)))]
        mean, *single = ((one * unit + centre).at_least(limits[0]).at_most(limits[1]) for one in single)
        found.append((mean, std * unit, *single))
    if len(found) == 1:
        return {name: (x.graph("Squeeze", one, np.array([1])), ()) for name, one in zip(NAMES, found[0], strict=True)}
    tables = (x.graph("Concat", *columns, axis=1) for columns in zip(*found, strict=True))
    return {name: (table, (len(found),)) for name, table in zip(NAMES, tables, strict=True)}


def _mix_numbers(stack: Any, views: Views) -> tuple[Value, Value, Value]:
    """Mean and standard deviation (n, 1) and quantiles (n, 3) of the standardised target."""
    noise: Any = 1.0
    if stack.noise is not None:
        sizes, _ = _consult("noise", stack.noise.expert, views)
        noise = sizes.at_least(stack.noise.least) ** (2 / POWER) / stack.noise.unit
    said = {name: (*_consult(name, stack.processes[name], views), weight) for name, weight in stack.used().items()}
    mean = reduce(add, (own * weight for own, _, weight in said.values()))
    parts = []
    for name, (own, variance, weight) in said.items():
        constant, factor = stack.calibration.get(name, (0.0, 1.0))
        parts.append(((own - mean) ** 2.0 + constant * noise + factor * variance) * weight)
    std = (reduce(add, parts) * stack.variance_scale).sqrt()
    quantiles = std * stack.tails.quantiles(np.array(QUANTILES)) + mean
    if stack.warp is None:
        return mean, std, quantiles
    levels = _unwarp(std * stack.tails.quantiles(LEVELS) + mean, stack.warp)
    mean = levels.sum(1) / len(LEVELS)
    std = (((levels - mean) ** 2.0).sum(1) / len(LEVELS)).sqrt().at_least(1e-9)
    return mean, std, _unwarp(quantiles, stack.warp)


def _unwarp(values: Value, warp: Warp) -> Value:
    """The inverse of a warp: y₀ + Σ sⱼ lⱼ with the length lⱼ that a value covers of each piece and its slope sⱼ."""
    y, u = warp.knots.T
    from_, to = np.diff(u) * 0.0, np.diff(u)
    from_[0], to[-1] = -np.inf, np.inf  # the first and the last piece go on for ever
    lengths = (values.widen(2) - u[:-1]).at_least(from_).at_most(to)
    found = (lengths * (np.diff(y) / np.diff(u))).sum(2) + y[0]
    return values.graph("Squeeze", found, np.array([2]))


def _mix_classes(stack: ClassStack, views: Views, n_classes: int) -> Value:
    parts = []
    for name, weight in stack.used().items():
        scores, _ = _consult(name, stack.processes[name], views, is_class=True)
        scores = scores.at_least(LEAST_INDICATOR).log() if name in stack.logarithmic else scores
        parts.append(_soften(scores * stack.temperatures[name], n_classes) * weight)
    return _soften(reduce(add, parts).log() * stack.sharpness, n_classes)


def _soften(logits: Value, n_classes: int) -> Value:
    """Softmax, with a least probability for every class."""
    floor = min(LEAST_PROBABILITY, 0.1 / n_classes)
    parts = (logits - logits.graph("ReduceMax", logits, axes=[1])).exp()
    return parts / parts.sum(1) * (1 - n_classes * floor) + floor


def _consult(name: str, expert: Any, views: Views, *, is_class: bool = False) -> tuple[Value, Any]:
    """Scores of classes (n, C), or mean (n, 1) and variance."""
    x = views["embedding" if name == "embedding" else "inputs"]
    if isinstance(expert, Process):
        return _run_process(expert, x, is_class=is_class)
    if isinstance(expert, Linear):
        return x @ expert.coefficients + expert.intercepts, 1.0
    leaves, count = _find_leaves(expert.trees, x), len(expert.trees.roots)
    total = _sum_leaves(expert.trees, leaves, expert.trees.values)
    if isinstance(expert, Boosting):
        scores = total + expert.baseline
        return scores @ np.array([[0.0, 1.0]]) if expert.binary else scores, 1.0
    mean = total / count
    if is_class:
        return (mean + 0.5 / count).log(), None
    squares = _sum_leaves(expert.trees, leaves, expert.trees.values**2) / count
    return mean, (squares - mean * mean).at_least(0.0)


def _find_leaves(trees: Trees, x: Value) -> Value:
    """The leaf of each row in each tree (n, trees): all trees at once, as many steps as the deepest one has."""
    graph, own, leaf = x.graph, np.arange(len(trees.feature)), trees.feature < 0
    feature = np.where(leaf, 0, trees.feature).astype(np.int32)
    left, right = (np.where(leaf, own, side).astype(np.int32) for side in (trees.left, trees.right))
    x = x.cast("FLOAT").cast() if trees.single else x
    arrays = [graph("Identity", array) for array in (feature, trees.threshold, left, right)]  # stored once
    rows = graph("Concat", graph("Slice", graph("Shape", x), np.array([0]), np.array([1])), np.array([1]), axis=0)
    node = graph("Expand", trees.roots[None].astype(np.int32), rows)
    level = trees.roots
    while len(level := level[~leaf[level]]):
        feature_of, threshold, to_left, to_right = (graph("Gather", array, node) for array in arrays)
        lower = graph("LessOrEqual", graph("GatherElements", x, feature_of, axis=1), threshold)
        node = graph("Where", lower, to_left, to_right)
        level = np.r_[trees.left[level], trees.right[level]]
    return node


def _sum_leaves(trees: Trees, leaves: Value, values: Array) -> Value:
    """The sum of the leaves' values over the trees, by column of the prediction."""
    width = values.shape[1]
    if width == trees.n_columns:  # every tree adds to all columns
        return leaves.graph("Squeeze", leaves.graph("Gather", values, leaves).sum(1), np.array([1]))
    return leaves.graph("Gather", values[:, 0], leaves) @ np.eye(trees.n_columns)[trees.columns]


def _run_process(expert: Process, x: Value, *, is_class: bool) -> tuple[Value, Any]:
    gp, found = expert.gp, expert.hyperparameters
    centre = gp.inputs.mean(axis=0)  # a common offset would cost digits
    u, c = (x - centre) / found.length_scales, (gp.inputs - centre) / found.length_scales
    far = squared_distances(u, c)
    if isinstance(gp, NeighbourGP):
        mean, explained = _condition_on_neighbours(gp, u, c, far)
    else:
        cross = _correlate(gp, far)
        mean = cross @ (found.signal * gp._weights.reshape(len(c), -1))
        if is_class:
            return mean + expert.mean, None
        # k'Σ⁻¹k is the square of F⁻¹k, with the factor F of Σ.
        half = cross @ solve_triangular(gp._factor, np.sqrt(found.signal) * np.eye(len(c)), lower=True).T
        explained = (half * half).sum(1)
    return mean + expert.mean, (explained * -found.signal + (found.signal + found.noise)).at_least(found.noise)


def _correlate(gp: ExactGP | NeighbourGP, far: Value) -> Value:
    """The covariance in units of the signal."""
    if not isinstance(gp.kernel, Matern32):
        return (far * -0.5).exp()
    root = (far * 3.0).sqrt()
    return (root + 1.0) * (root * -1.0).exp()


def _condition_on_neighbours(gp: NeighbourGP, u: Value, c: Array, far: Value) -> tuple[Value, Value]:
    """Mean (n, c) and explained variance (n, 1) given the nearest samples, all variances in units of the signal.

    ONNX has no operator for systems of equations: the rows of [[Σ, k, Y], [k', 0, 0]] are eliminated one by one, which
    leaves [−k'Σ⁻¹k, −k'Σ⁻¹Y].
    """
    graph, size = u.graph, min(NEIGHBOURS, len(c))
    near = graph("TopK", far, np.array([size]), nth=1, largest=0)
    around = graph("Gather", c, near) - u.widen(1)
    # Not MatMul and Transpose, which onnxruntime 1.17 joins into an operator that it has for single precision only.
    norms, products = (around * around).sum(2), graph("Einsum", around, around, equation="nid,njd->nij")
    noise = graph("Gather", gp._noise / gp.hyperparameters.signal + NEIGHBOUR_JITTER, near).widen(2)
    K = _correlate(gp, (norms + norms.swap() - (products + products)).at_least(0.0)) + noise * np.eye(size)
    cross = _correlate(gp, norms)
    right = graph("Concat", cross, graph("Gather", gp.target.reshape(len(c), -1), near), axis=2)
    last = graph("Concat", cross.swap(), right.take(0, 1) * 0.0, axis=2)
    system, end = graph("Concat", graph("Concat", K, right, axis=2), last, axis=1), 2**31
    for _ in range(size):
        row, below = system.take(0, 1), system.take(1, end)
        factors = below.take(0, 1, 2) / row.take(0, 1, 2)
        system = below.take(1, end, 2) - factors * row.take(1, end, 2)
    solved = graph("Squeeze", system, np.array([1])) * -1.0
    return solved.take(1, end), solved.take(0, 1)
