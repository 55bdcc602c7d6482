"""Random problems for the properties that every fit must have, and the decorator that makes a test of a property.

A problem is known by a few words and numbers (how many samples, of what shape, with what targets, for which model), so
that hypothesis can shrink it and print it; the numbers in it come from a seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distreduce import SDR, DistR
from distreduce.exceptions import (
    DataWarning,
    FewSamplesWarning,
    NoSignalWarning,
    OptimisticPictureWarning,
    SolverConvergenceWarning,
)

Array = np.ndarray
SHAPES = ("normal", "clusters", "heavy tails", "collinear", "grid")
SCALES = (1.0, 1e-3, 1e3, 1e-12, 1e12, 1e-150, 1e150)
NUMBERS = ("smooth", "noise", "heavy tails", "repeated", "huge", "tiny")
CLASSES = ("balanced", "imbalanced", "single members", "own class each")


@dataclass(frozen=True)
class Problem:
    """Samples, targets and a model for them; `model` holds its parameters, without targets it is DistR."""

    n: int
    d: int
    shape: str
    target: str | None
    seed: int
    repeated: float = 0.0  # share of the rows that are copies of others
    constant: int = 0  # columns that are constant
    scale: float = 1.0
    uneven: bool = False  # columns on scales of their own
    contradicting: bool = False  # copies have targets of their own
    model: dict[str, Any] = field(default_factory=dict)

    @property
    def X(self) -> Array:
        """Samples (n, d), of which at least two differ."""
        rng = np.random.default_rng(self.seed)
        X = _shaped(self.shape, self.n, self.d, rng)
        X[:, : min(self.constant, self.d - 1)] = 5.0
        if self.uneven:
            X *= 10.0 ** rng.integers(-6, 7, self.d)
        return self.scale * X[self._source]

    @property
    def y(self) -> Array | None:
        """Targets (n,), of which at least two differ; labels are words."""
        if self.target is None:
            return None
        rng = np.random.default_rng([self.seed, 1])
        y = _labels(self.target, self.n, rng) if self.target in CLASSES else _numbers(self.target, self.n, rng)
        return y if self.contradicting else y[self._source]

    @property
    def _source(self) -> Array:
        """For each row the row it copies; the first two stay themselves."""
        rng = np.random.default_rng([self.seed, 2])
        copies = rng.random(self.n) < self.repeated
        copies[:2] = False
        return np.where(copies, rng.integers(0, self.n, self.n), np.arange(self.n))

    def estimator(self, **other: Any) -> Any:
        """The model, not fitted."""
        kind = DistR if self.target is None else SDR
        task = {} if self.target is None else {"task": "classification" if self.target in CLASSES else "regression"}
        return kind(**{"max_iter": 3, "random_state": 0, "n_jobs": 1, **task, **self.model, **other})

    def with_model(self, **other: Any) -> Problem:
        """The same samples for other parameters."""
        return replace(self, model={**self.model, **other})


DESERVED = (DataWarning, FewSamplesWarning, NoSignalWarning, OptimisticPictureWarning, SolverConvergenceWarning)


def quietly(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call with warnings as errors, but for those that short fits and repeated samples are told of with good reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in DESERVED:
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")  # scikit-learn's
        return call(*args, **options)


def fitted(problem: Problem, X: Array | None = None, y: Any = None, weights: Any = None, **other: Any) -> Any:
    """The problem's model, fitted to its samples or to others."""
    X, y = (problem.X, problem.y) if X is None else (X, y)
    return quietly(problem.estimator(**other).fit, X, y, sample_weight=weights)


def _shaped(shape: str, n: int, d: int, rng: np.random.Generator) -> Array:
    if shape == "heavy tails":
        return rng.standard_t(1.0, (n, d))
    if shape == "collinear":
        return rng.normal(size=(n, 1)) * rng.normal(size=d)
    if shape == "grid":
        X = rng.integers(0, 3, (n, d)).astype(float)
        X[1] = X[0] + 1.0
        return X
    centres = 8.0 * rng.normal(size=(3, d)) if shape == "clusters" else np.zeros((3, d))
    return centres[rng.integers(0, 3, n)] + rng.normal(size=(n, d))


def _numbers(target: str, n: int, rng: np.random.Generator) -> Array:
    if target == "smooth":
        return np.sin(np.arange(n)) + 0.01 * rng.normal(size=n)
    if target == "heavy tails":
        return rng.standard_t(1.0, n)
    if target == "repeated":
        return np.r_[0.5, 1.5, rng.integers(0, 3, n)[2:] + 0.5]
    return rng.normal(size=n) * {"noise": 1.0, "huge": 1e150, "tiny": 1e-150}[target]


def _labels(target: str, n: int, rng: np.random.Generator) -> Array:
    codes = np.arange(n)
    if target == "balanced":
        codes = rng.permutation(n) % 3
    if target == "imbalanced":
        codes = (rng.random(n) < 0.05).astype(int)
    if target == "single members":
        codes = np.where(codes < n // 4, codes, -1)
    codes[:2] = [0, 1]
    return np.char.add("class ", codes.astype(str))


@st.composite
def problems(draw: Any, targets: Any = (None, *NUMBERS, *CLASSES), most: int = 200, **fixed: Any) -> Problem:
    """Problems of every kind; `fixed` holds what is not to be drawn."""
    kinds: dict[str, Any] = {
        "n": st.integers(2, most),
        "d": st.integers(1, 30),
        "shape": st.sampled_from(SHAPES),
        "target": st.sampled_from(targets),
        "seed": st.integers(0, 2**32 - 1),
        "repeated": st.sampled_from((0.0, 0.3, 0.9)),
        "constant": st.integers(0, 2),
        "scale": st.sampled_from(SCALES),
        "uneven": st.booleans(),
        "contradicting": st.booleans(),
    }
    drawn = {name: fixed[name] if name in fixed else draw(kind) for name, kind in kinds.items()}
    return Problem(**drawn, model=fixed["model"] if "model" in fixed else draw(models(drawn["n"])))


@st.composite
def models(draw: Any, n: int) -> dict[str, Any]:
    """Parameters for n samples: every kind of plan, solver and inner loss, and the affinity of large samples."""
    m = draw(st.none() | st.integers(2, max(2, n // 2)))
    return {
        "n_components": draw(st.integers(1, 3)),
        "n_prototypes": m,
        "affinity": draw(st.sampled_from(("dense", "sparse"))) if m else "auto",
        "solver": draw(st.sampled_from(("joint", "alternating"))),
        "loss": draw(st.sampled_from(("kl", "square"))),
    }


@dataclass(frozen=True)
class Property:
    """What must hold, for which problems, and how many of them a run of the tests tries."""

    check: Callable[[Problem], None]
    strategy: Any
    examples: int


PROPERTIES: dict[str, Property] = {}


def holds_for(strategy: Any, examples: int) -> Callable[[Callable[[Problem], None]], Any]:
    """A test of a property; campaigns/properties.py finds it in `PROPERTIES` and tries it on many more problems."""

    def decorate(check: Callable[[Problem], None]) -> Any:
        PROPERTIES[check.__name__.removeprefix("test_")] = Property(check, strategy, examples)
        slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
        return settings(max_examples=examples, suppress_health_check=slow)(given(strategy)(check))

    return decorate
