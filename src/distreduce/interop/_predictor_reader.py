"""A reader of predictors for places that have only NumPy: copy this file. It must not use anything of this package."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

NO_FEATURE = 65535  # of a leaf
BATCH = 500  # rows at once


def load_predictor(path: Any) -> Callable[[Any], dict[str, Any]]:
    """Load a predictor that distreduce's save_predictor wrote: a function from rows to what it says of them."""
    with open(path, encoding="utf-8") as file:
        outer = json.load(file)
    if not isinstance(outer, dict) or outer.get("format") != "distreduce-predictor" or outer.get("version") != 1:
        raise ValueError(f"{path} does not hold a predictor of version 1; read it with a newer load_predictor.")
    if hashlib.sha256(str(outer["content"]).encode()).hexdigest() != outer["sha256"]:
        raise ValueError(f"{path} is damaged: its content does not have the checksum that it states.")
    found = _unpack(json.loads(outer["content"]))
    found["pool"] = found["pool"].reshape(-1, len(found["predictor"]["scale"]))

    def predict(rows: Any) -> dict[str, Any]:
        X = _encode(found["columns"], rows) if isinstance(rows, dict) else np.asarray(rows, dtype=np.float64)
        if X.shape[1:] != found["pool"].shape[1:]:  # NumPy would take a single column for all of them
            raise ValueError(f"X must have the shape (n, {found['pool'].shape[1]}), got {X.shape}.")
        parts = [_predict(found["predictor"], X[k : k + BATCH], found["pool"]) for k in range(0, max(len(X), 1), BATCH)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    predict.classes = found["predictor"].get("classes")  # type: ignore[attr-defined]
    return predict


def _unpack(node: Any) -> Any:
    if isinstance(node, dict) and node.get("deflated"):
        return np.frombuffer(zlib.decompress(base64.b64decode(node["data"])), dtype="<" + node["type"])
    if isinstance(node, dict):
        return {name: _unpack(part) for name, part in node.items()}
    return [_unpack(part) for part in node] if isinstance(node, list) else node


def _encode(columns: Any, rows: Any) -> Any:
    """Columns of a table as columns of X; None and NaN are missing."""
    parts = []
    for rule in columns:
        cells = [None if cell is None or cell != cell else cell for cell in rows[rule["name"]]]
        missing = np.array([cell is None for cell in cells], dtype=np.float64)
        if rule["kind"] == "category":
            names = [None if cell is None else str(cell) for cell in cells]
            parts += [np.array([name == level for name in names], dtype=np.float64) for level in rule["levels"]]
            if rule["other"]:
                parts.append(1.0 - missing - np.sum(parts[-len(rule["levels"]) :], axis=0))
            parts += [missing] if rule["flag"] else []
            continue
        value = np.array([rule["fill"] if cell is None else cell for cell in cells], dtype=np.float64)
        parts.append((value - rule.get("center", 0.0)) / rule.get("scale", 1.0))
        parts += [missing] if rule["flag"] else []
        for cycle in rule.get("cycles", ()):
            parts += [np.sin(2 * np.pi * value / cycle), np.cos(2 * np.pi * value / cycle)]
    return np.column_stack(parts)


def _predict(node: Any, X: Any, pool: Any) -> dict[str, Any]:
    scale = np.asarray(node["scale"])
    views = {"inputs": X / scale, "pool": pool / scale}
    if node["map"] is not None:
        views["embedding"] = _embed(node["map"], X, pool) / np.asarray(node["embeddingScale"])
    if "classes" in node:
        return {"probabilities": _mix_classes(node["stacks"][0], views)}
    parts = (node["stacks"], node["mean"], node["std"], node["limits"])
    found = [_mix_numbers(*part, views) for part in zip(*parts, strict=True)]
    if len(found) == 1:
        return found[0]
    return {name: np.stack([each[name] for each in found], axis=1) for name in found[0]}


def _distances(a: Any, b: Any) -> Any:
    centre = b.mean(axis=0)  # a common offset would cost digits
    a, b = a - centre, b - centre
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0)


def _embed(part: Any, X: Any, pool: Any) -> Any:
    offset, scale = np.asarray(part["offset"]), np.asarray(part["scale"])
    u, c = (X - offset) / scale, (pool[part["rows"]] - offset) / scale
    L = part["coefficients"].reshape(-1, part["size"])
    if part["kernel"] == "linear":
        return u @ (c.T @ L)
    d2 = _distances(u, c)
    if part["predictor"] is not None:  # predicted shares of classes are further features
        shares = _soften(_embed(part["predictor"], X, pool), 0.0)
        d2 = d2 + _distances(shares / part["reach"], part["predicted"].reshape(len(c), -1))
    a = part["alpha"]
    return (np.exp(-d2 / 2) if part["kernel"] == "rbf" else (1 + d2 / (2 * a)) ** -a) @ L


def _correlate(gp: Any, d2: Any) -> Any:
    root = np.sqrt(3 * d2)
    return gp["signal"] * (np.exp(-d2 / 2) if gp["kernel"] == "rbf" else (1 + root) * np.exp(-root))


def _run_process(gp: Any, views: Any) -> Any:
    """Means, and variances with noise; exact, or given the nearest samples alone."""
    x, rows = views[gp["view"]], views["pool"][gp["inputs"]] if gp["view"] == "inputs" else None
    rows = gp["inputs"].reshape(-1, x.shape[1]) if rows is None else rows
    x, rows = x / np.asarray(gp["lengths"]), rows / np.asarray(gp["lengths"])
    cross, n = _correlate(gp, _distances(x, rows)), len(rows)
    noise = gp["noise"] / (np.ones(n) if gp["counts"] is None else gp["counts"]) + gp["jitter"] * gp["signal"]
    if "weights" in gp:
        mean = cross @ gp["weights"].reshape(n, -1)
        w = np.linalg.solve(_correlate(gp, _distances(rows, rows)) + np.diag(noise), cross.T).T
    else:
        near = np.argsort(-cross, axis=1, kind="stable")[:, : gp["near"]]
        cross = np.take_along_axis(cross, near, axis=1)
        K = _correlate(gp, ((rows[near][:, :, None] - rows[near][:, None]) ** 2).sum(axis=-1))
        w = np.linalg.solve(K + noise[near][:, :, None] * np.eye(near.shape[1]), cross[:, :, None])[:, :, 0]
        mean = np.einsum("nk,nkc->nc", w, gp["targets"].reshape(n, -1)[near])
    return mean + gp["mean"], np.maximum(gp["signal"] + gp["noise"] - (cross * w).sum(axis=1), gp["noise"])


def _sum_trees(trees: Any, x: Any) -> Any:
    """Sums over the trees of the values of each row's leaves, and of their squares."""
    x = x.astype(np.float32) if trees["single"] else x
    node, row = np.tile(trees["roots"].astype(np.intp), (len(x), 1)), np.arange(len(x))[:, None]
    for _ in range(len(trees["feature"])):  # in a damaged file, a path may have no end
        inner = trees["feature"][node] != NO_FEATURE
        if not inner.any():
            break
        below = x[row, np.where(inner, trees["feature"][node], 0)] <= trees["threshold"][node]
        node += np.where(inner, np.where(below, trees["left"][node], trees["right"][node]), 0).astype(np.intp)
    values = trees["values"].astype(np.float64).reshape(-1, trees["width"])[node]
    total = np.zeros((2, len(x), trees["size"]))
    for column in np.unique(trees["columns"]):
        own = values[:, trees["columns"] == column]
        total[:, :, column : column + trees["width"]] += [own.sum(axis=1), (own**2).sum(axis=1)]
    return total


def _consult(expert: Any, views: Any, classes: bool) -> Any:
    """Scores of classes (n, C), or mean and variance (n,)."""
    x = views["inputs"]
    if expert["kind"] == "process":
        mean, variance = _run_process(expert, views)
        return mean if classes else (mean[:, 0], variance)
    if expert["kind"] == "forest":
        total, squares = _sum_trees(expert["trees"], x) / len(expert["trees"]["roots"])
        if classes:
            return np.log(total + 0.5 / len(expert["trees"]["roots"]))
        return total[:, 0], np.maximum(squares[:, 0] - total[:, 0] ** 2, 0)
    if expert["kind"] == "linear":
        scores = x @ expert["coefficients"].reshape(x.shape[1], -1) + expert["intercepts"]
    else:
        scores = _sum_trees(expert["trees"], x)[0] + expert["baseline"]
        scores = np.hstack([np.zeros((len(x), 1)), scores]) if expert["binary"] else scores
    return scores if classes else (scores[:, 0], np.ones(len(x)))


def _soften(logits: Any, least: float) -> Any:
    """Softmax, with a least probability for every class."""
    floor = min(least, 0.1 / logits.shape[1])
    parts = np.exp(logits - logits.max(axis=1, keepdims=True))
    return floor + (1 - logits.shape[1] * floor) * parts / parts.sum(axis=1, keepdims=True)


def _mix_classes(stack: Any, views: Any) -> Any:
    total: Any = 0.0
    parts = (stack["experts"], stack["weights"], stack["temperatures"], stack["logarithmsFrom"])
    for expert, weight, temperature, least in zip(*parts, strict=True):
        scores = _consult(expert, views, True)
        scores = scores if least is None else np.log(np.maximum(scores, least))
        total = total + weight * _soften(temperature * scores, stack["least"])
    return _soften(stack["sharpness"] * np.log(total), stack["least"])


def _mix_numbers(stack: Any, centre: float, unit: float, limits: Any, views: Any) -> dict[str, Any]:
    noise: Any = 1.0
    if stack["noise"] is not None:
        spread = np.maximum(_consult(stack["noise"]["expert"], views, False)[0], stack["noise"]["least"])
        noise = spread ** stack["noise"]["power"] / stack["noise"]["unit"]
    said = [_consult(expert, views, False) for expert in stack["experts"]]
    mean = sum(w * own for w, (own, _) in zip(stack["weights"], said, strict=True))
    variance = sum(
        w * (a * noise + b * spread + (own - mean) ** 2)
        for w, (own, spread), (a, b) in zip(stack["weights"], said, stack["calibration"], strict=True)
    )
    std = np.sqrt(stack["varianceScale"] * variance)

    def at(levels: Any) -> Any:
        values = mean[:, None] + std[:, None] * np.asarray(levels)
        return values if stack["warp"] is None else _unwarp(stack["warp"], values)

    quantiles = at(stack["quantiles"])
    if stack["warp"] is not None:
        every = at(stack["levels"])
        mean, std = every.mean(axis=1), np.maximum(every.std(axis=1), 1e-9)
    low, high = (end if finite is None else finite for end, finite in zip((-np.inf, np.inf), limits, strict=True))
    placed = np.clip(centre + unit * np.column_stack([mean, quantiles]), low, high)
    return {"mean": placed[:, 0], "std": unit * std} | dict(zip(("q05", "q50", "q95"), placed.T[1:], strict=True))


def _unwarp(knots: Any, values: Any) -> Any:
    """Piecewise linear through the knots, beyond them with the slope of the end."""
    y, u = map(np.asarray, knots)
    at = np.clip(np.searchsorted(u, values), 1, len(u) - 1)
    return y[at - 1] + (values - u[at - 1]) * (y[at] - y[at - 1]) / (u[at] - u[at - 1])
