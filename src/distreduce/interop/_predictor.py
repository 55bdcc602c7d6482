"""A predictor as plain arrays in JSON, which the page of a fit and the reader for NumPy evaluate.

Formulas store rows of X by their index in one pool: they use the same ones.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError, UnsavableModelError
from distreduce.gp._class_stack import LEAST_INDICATOR, ClassStack
from distreduce.gp._crossfit import NEAREST_OTHERS
from distreduce.gp._exact import NEIGHBOUR_JITTER, NEIGHBOURS, ExactGP
from distreduce.gp._experts import LEAST_PROBABILITY, Boosting, Forest, Linear, Process
from distreduce.gp._noise import POWER
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import LEVELS, RANGES
from distreduce.gp._trees import Trees
from distreduce.interop._formula import MapFormula, map_formula
from distreduce.kernels import RBF, Matern32
from distreduce.tables.columns import Category, Date, Number, Used
from distreduce.tables.findings import NOVEL
from distreduce.tables.recipe import ColumnRecipe

Node = dict[str, Any]  # of JSON

DIGITS = 9  # that tell rows of the pool apart
CONDITIONED = 400  # nearest samples that the page conditions the variance of an exact GP on: all may take seconds
QUANTILES = (0.05, 0.5, 0.95)


def pack(values: ArrayLike, kind: str, *, deflate: bool = False) -> Node:
    """Return a flat little-endian array in base64, of the type "u1", "u2", "u4", "f4" or "f8".

    A deflated one is smaller, but the script has to wait for it. Level 9 takes ten times as long as 6, for nothing.
    """
    raw = np.ascontiguousarray(np.asarray(values), dtype=f"<{kind}").tobytes()
    text = base64.b64encode(zlib.compress(raw, 6) if deflate else raw).decode("ascii")
    return {"type": kind, "data": text} | ({"deflated": True} if deflate else {})


def deflate(values: ArrayLike, kind: str) -> Node:
    return pack(values, kind, deflate=True)


class RowPool:
    """Rows of X, each stored once; formulas refer to them by index."""

    def __init__(self, unit: Array) -> None:
        self._unit = np.where(unit > 0, unit, 1.0)
        self._places: dict[bytes, int] = {}
        self._rows: list[Array] = []

    def add(self, rows: Array) -> Node:
        """Store rows (n, d), and return their indices."""
        # Rows come back from different scales, so that their last digits differ.
        keys = np.round(rows / self._unit, DIGITS) + 0.0
        places = []
        for key, row in zip(keys, rows, strict=True):
            place = self._places.setdefault(key.tobytes(), len(self._rows))
            if place == len(self._rows):
                self._rows.append(row)
            places.append(place)
        return deflate(places, "u4")

    def encode(self) -> Node:
        return deflate(np.array(self._rows), "f8")


def encode_rule(rule: Used) -> Node:
    """Return how cells become columns of X: as `rule.encode` does."""
    node: Node = {"kind": rule.kind, "name": rule.name, "flag": rule.flag}
    if isinstance(rule, Category):
        return node | {"levels": list(rule.levels), "other": rule.other}
    node["fill"] = rule.fill
    if isinstance(rule, Number):
        node |= {"center": rule.center, "scale": rule.scale, "unit": rule.unit}
    return node | ({"cycles": list(rule.cycles)} if isinstance(rule, Date) else {})


def encode_map(formula: MapFormula, pool: RowPool) -> Node:
    return {
        "kernel": formula.kernel,
        "alpha": formula.alpha,
        "offset": formula.offset.tolist(),
        "scale": formula.scale.tolist(),
        "rows": pool.add(np.asarray(formula.centres) * formula.scale + formula.offset),
        "coefficients": deflate(formula.coefficients, "f8"),
        "size": formula.coefficients.shape[1],
        "predictor": None if formula.predictor is None else encode_map(formula.predictor, pool),
        "predicted": None if formula.predicted is None else deflate(formula.predicted, "f8"),
        "reach": formula.reach,
    }


def find_stacks(predictor: Any) -> Sequence[Stack | ClassStack]:
    """Return the stacks of experts; none if there is no stack, or if it has parts of another kind."""
    stacks: Sequence[Stack | ClassStack] = getattr(predictor, "stacks_", None) or (
        (predictor.stack_,) if hasattr(predictor, "stack_") else ()
    )
    known = hasattr(predictor, "novelty_") and not hasattr(predictor, "feature_spread_")
    experts = [expert for stack in stacks for name, expert in stack.processes.items() if name in stack.used()]
    return stacks if known and experts and all(map(_is_known, experts)) else ()


def require_stacks(predictor: Any, recipe: ColumnRecipe | None) -> Sequence[Stack | ClassStack]:
    """Return the stacks of a fitted predictor; raise an error if it cannot be exported, or not with this recipe."""
    check_is_fitted(predictor)
    if not (stacks := find_stacks(predictor)):
        raise UnsavableModelError(
            f"{type(predictor).__name__} cannot be exported; give a fitted SDRGPRegressor or SDRGPClassifier without "
            "experts of your own, and not the paper's recipe. save_map and save_onnx export maps."
        )
    if recipe is not None and len(recipe.columns) != predictor.n_features_in_:
        raise InvalidInputError(
            f"recipe makes {len(recipe.columns)} features, but the predictor was fitted to {predictor.n_features_in_}; "
            "give the recipe of its own fit, or none."
        )
    return stacks


def encode_predictor(predictor: Any, pool: RowPool) -> Node | None:
    """Return a stack of experts as arrays; None if it cannot be exported."""
    if not (stacks := find_stacks(predictor)):
        return None
    scale, seen = predictor.input_scale_, predictor.novelty_
    of_map = any("embedding" in stack.used() for stack in stacks)
    nodes = [_encode_stack(stack, scale, pool) for stack in stacks]
    found: Node = {
        "scale": scale.tolist(),
        "map": encode_map(map_formula(predictor), pool) if of_map else None,
        "embeddingScale": np.broadcast_to(predictor.embedding_scale_, predictor._n_features_out).tolist(),
        "stacks": nodes,
        "novelty": {
            "rows": pool.add(seen.inputs * scale),
            "distances": deflate(seen.distances, "f8"),
            "near": max(1, min(NEAREST_OTHERS, len(seen.inputs) - 1)),
            "limit": NOVEL,
        },
    }
    if isinstance(stacks[0], ClassStack):
        found["classes"] = [str(label) for label in predictor.classes_]
    else:
        of = predictor.target_scale_
        limits = [[None if np.isinf(end) else end for end in RANGES[kind]] for kind in of.ranges]
        found |= {"mean": of.mean.tolist(), "std": of.std.tolist(), "limits": limits}
    return found


def _is_known(expert: Any) -> bool:
    if not isinstance(expert, Process):
        return isinstance(expert, Linear | Forest | Boosting)
    kernel = expert.gp.kernel
    plain = isinstance(kernel, RBF) and kernel.length_scale == 1.0
    return plain or isinstance(kernel, Matern32)


def _encode_stack(stack: Stack | ClassStack, scale: Array, pool: RowPool) -> Node:
    used = stack.used()
    node: Node = {
        "experts": [_encode_expert(name, stack.processes[name], scale, pool) for name in used],
        "weights": list(used.values()),
    }
    if isinstance(stack, ClassStack):
        node["temperatures"] = [stack.temperatures[name] for name in used]
        node["logarithmsFrom"] = [LEAST_INDICATOR if name in stack.logarithmic else None for name in used]
        return node | {"sharpness": stack.sharpness, "least": LEAST_PROBABILITY}
    noise = stack.noise
    if noise is not None:
        expert = _encode_expert("noise", noise.expert, scale, pool)
        noise = {"expert": expert, "least": noise.least, "unit": noise.unit, "power": 2 / POWER}
    return node | {
        "calibration": [stack.calibration.get(name, (0.0, 1.0)) for name in used],
        "varianceScale": stack.variance_scale,
        "levels": stack.tails.quantiles(LEVELS).tolist(),
        "quantiles": stack.tails.quantiles(np.array(QUANTILES)).tolist(),
        "warp": None if stack.warp is None else stack.warp.knots.T.tolist(),
        "noise": noise,
    }


def _encode_expert(name: str, expert: Any, scale: Array, pool: RowPool) -> Node:
    if isinstance(expert, Process):
        return _encode_process(name, expert, scale, pool)
    if isinstance(expert, Linear):
        coefficients = deflate(expert.coefficients, "f8")
        return {"kind": "linear", "coefficients": coefficients, "intercepts": expert.intercepts.tolist()}
    trees = _encode_trees(expert.trees)
    if isinstance(expert, Forest):
        return {"kind": "forest", "trees": trees}
    return {"kind": "boosting", "trees": trees, "baseline": expert.baseline.tolist(), "binary": expert.binary}


def _encode_process(name: str, expert: Process, scale: Array, pool: RowPool) -> Node:
    gp, found = expert.gp, expert.gp.hyperparameters
    exact, on_embedding = isinstance(gp, ExactGP), name == "embedding"
    values = gp._weights if isinstance(gp, ExactGP) else gp.target
    return {
        "kind": "process",
        "kernel": "matern" if isinstance(gp.kernel, Matern32) else "rbf",
        "view": "embedding" if on_embedding else "inputs",
        "inputs": deflate(gp.inputs, "f8") if on_embedding else pool.add(gp.inputs * scale),
        "lengths": found.length_scales.tolist(),
        "signal": found.signal,
        "noise": found.noise,
        "counts": None if gp.weights is None or (gp.weights == 1.0).all() else deflate(gp.weights, "f8"),
        "weights" if exact else "targets": deflate(values, "f8"),
        "columns": int(np.size(values) / len(gp.inputs)),
        "mean": expert.mean.tolist(),
        "size": len(gp.inputs),
        "near": CONDITIONED if exact else NEIGHBOURS,
        "jitter": 0.0 if exact else NEIGHBOUR_JITTER,
    }


def _encode_trees(trees: Trees) -> Node:
    """Return trees with children relative to their node; inner nodes have no value, so that they take no room."""
    leaf, node = trees.feature < 0, np.arange(len(trees.feature))
    values = np.where(leaf[:, None], trees.values, 0.0)
    threshold = trees.threshold
    if trees.single:  # forests compare single precision with double: rounded down, it gives the same answers
        single = threshold.astype(np.float32)
        threshold = np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
    return {
        "feature": deflate(np.where(leaf, 65535, trees.feature), "u2"),
        "threshold": deflate(threshold, "f4" if trees.single else "f8"),
        "left": deflate(np.where(leaf, 0, trees.left - node), "u4"),
        "right": deflate(np.where(leaf, 0, trees.right - node), "u4"),
        "values": deflate(values, "f4" if trees.single else "f8"),
        "width": values.shape[1],
        "roots": deflate(trees.roots, "u4"),
        "columns": deflate(trees.columns, "u2"),
        "size": trees.n_columns,
        "single": trees.single,
    }
