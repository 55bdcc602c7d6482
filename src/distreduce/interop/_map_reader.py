"""A reader of maps for places that have only NumPy: copy this file. It must not use anything of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def load_map(path: Any) -> Callable[[Any], Any]:
    """Load a map that distreduce's save_map wrote: a function from rows (n, d) to their embedding (n, p)."""
    with np.load(path, allow_pickle=False) as store:
        found = {name: store[name] for name in store.files}
    if str(found.get("format")) != "distreduce-map" or found["version"] != 1:
        raise ValueError(f"{path} does not hold a map of version 1; read it with a newer load_map of distreduce.")
    kernel, a, L = (found[name] for name in ("kernel", "alpha", "coefficients"))
    c: Any = found.get("centres")

    def transform(X: Any) -> Any:
        u = (np.asarray(X, dtype=np.float64) - found["offset"]) / found["scale"]
        if kernel == "linear":
            return u @ (c.T @ L)  # d×p numbers instead of a kernel matrix
        # Without centres, rows are distances already.
        d2 = u**2 if c is None else np.maximum((u**2).sum(1)[:, None] + (c**2).sum(1) - 2 * u @ c.T, 0)
        return (np.exp(-d2 / 2) if kernel == "rbf" else (1 + d2 / (2 * a)) ** -a) @ L

    return transform
