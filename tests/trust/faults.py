"""Faults put into a fit: a function that goes wrong at some of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from distreduce import SDR, DistR
from distreduce.embedding.plain import Terms
from distreduce.solver.problem import Coupled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
NUMBERS = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=120)
CLASSES = np.digitize(NUMBERS, [0.0, 1.5])
SMALL: dict[str, Any] = {"n_prototypes": 8, "perplexity": 10.0, "max_iter": 6, "random_state": 0, "n_jobs": 1}
MODELS: dict[str, Any] = {
    "SDR, dense": lambda **options: SDR.paper(**{**SMALL, **options}),
    "SDR, sparse": lambda **options: SDR.paper(affinity="sparse", **{**SMALL, **options}),
    "SDR, one prototype per sample": lambda **options: SDR.paper(**{**SMALL, "n_prototypes": None, **options}),
    "DistR, dense": lambda **options: DistR(**{**SMALL, **options}),
    "DistR, sparse": lambda **options: DistR(affinity="sparse", **{**SMALL, **options}),
}
ATTRIBUTES = ("prototypes_", "prototype_weights_", "embedding_", "prototype_targets_", "objective_")


def fails(error: Exception) -> Callable[[Any], Any]:
    """A fault that raises."""

    def fault(_: Any) -> Any:
        raise error

    return fault


def refuses(_: Any) -> bool:
    """A factorisation that finds its matrix not positive definite."""
    return False


def nan(value: Any) -> Any:
    """The same value with NaN for its first number."""
    if isinstance(value, tuple):
        return (nan(value[0]), *value[1:])
    if isinstance(value, Terms):
        return Terms(np.nan, value.dependence, value.projection)
    if isinstance(value, Coupled):
        return Coupled(nan(value.plan), value.transported)
    if isinstance(value, float):
        return np.nan
    value = value.copy()
    (value.data if sparse.issparse(value) else value.reshape(-1))[0] = np.nan
    return value


class Faulty:
    """A function that goes wrong at call `first` (from 1), and till call `last`; it counts its calls."""

    def __init__(self, real: Any, fault: Callable[[Any], Any], first: int, last: float | None = None) -> None:
        self.real, self.fault, self.calls = real, fault, 0
        self.first, self.last = first, first if last is None else last

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        value = self.real(*args, **options)
        return self.fault(value) if self.first <= self.calls <= self.last else value

    def __get__(self, owner: Any, _: Any = None) -> Any:
        """As a method."""
        return lambda *args, **options: self(owner, *args, **options)


def numbers(model: Any) -> np.ndarray:
    """All numbers of the fitted attributes of a reduction, in a row."""
    parts = [np.ravel(getattr(model, name)) for name in ATTRIBUTES if hasattr(model, name)]
    history = model.history_.drop(columns="cka").to_numpy(dtype=float).ravel()
    return np.concatenate([*parts, model.coupling_.data, model.map_.coefficients.ravel(), history])
