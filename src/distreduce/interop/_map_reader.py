"""A reader of maps for places that have only NumPy: copy this file. It must not use anything of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def load_map(path: Any) -> Callable[[Any], Any]:
    """Load a map that distreduce's save_map wrote: a function from rows (n, d) to their embedding (n, p)."""
    with np.load(path, allow_pickle=False) as store:
        found = {name: store[name] for name in store.files}
    if str(found.get("format")) != "distreduce-map" or found["version"] not in (1, 3):
        raise ValueError(f"{path} does not hold a map of version 1 or 3; read it with a newer load_map of distreduce.")
    prefix = "predictor_"
    inner = {name[len(prefix) :]: value for name, value in found.items() if name.startswith(prefix)}

    def evaluate(part: Any, X: Any, v: Any = None) -> Any:
        kernel, a, L, c = (part.get(name) for name in ("kernel", "alpha", "coefficients", "centres"))
        u = (X - part["offset"]) / part["scale"]
        if kernel == "linear":
            return u @ (c.T @ L)  # d×p numbers instead of a kernel matrix
        if v is not None:  # predicted shares of classes are further features
            v = np.exp(v - v.max(axis=1, keepdims=True))
            v /= part["reach"] * v.sum(axis=1, keepdims=True)
            u, c = np.hstack([u, v]), np.hstack([c, part["predicted"]])
        # Without centres, rows are distances already.
        d2 = u**2 if c is None else np.maximum((u**2).sum(1)[:, None] + (c**2).sum(1) - 2 * u @ c.T, 0)
        return (np.exp(-d2 / 2) if kernel == "rbf" else (1 + d2 / (2 * a)) ** -a) @ L

    def transform(X: Any) -> Any:
        X, d = np.asarray(X, dtype=np.float64), len(found["offset"])
        if X.shape[1:] != (d,):  # NumPy would take a single column for all of them
            raise ValueError(f"X must have the shape (n, {d}), got {X.shape}.")
        return evaluate(found, X, evaluate(inner, X) if inner else None)

    return transform
