"""Sets that need no download: the generators of scikit-learn and the sets installed with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce.datasets.dataset import Dataset
from distreduce.estimators._targets import Task


@dataclass(frozen=True)
class GeneratedSet:
    """A set that a function of scikit-learn draws; `size` is the default number of samples, that of the paper."""

    name: str
    function: str
    size: int
    feature_names: tuple[str, ...]
    target: str
    description: str
    citation: str
    task: Task = "regression"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.size, len(self.feature_names)

    def load(self, n_samples: int | None, random_state: int | None) -> Dataset:
        """Draw the set; without a seed every draw differs, and NumPy's global generator is not used."""
        # scikit-learn would take None as NumPy's global generator; a new RandomState leaves that alone.
        seed: Any = np.random.RandomState() if random_state is None else random_state
        X, y = _function(self.function)(self.size if n_samples is None else n_samples, random_state=seed)
        return Dataset(
            self.name, X, y, self.task, self.feature_names, (self.target,), None, None,
            self.description, "BSD-3-Clause (scikit-learn)", self.citation,
        )  # fmt: skip


@dataclass(frozen=True)
class BundledSet:
    """A set that is installed with scikit-learn."""

    name: str
    function: str
    shape: tuple[int, int]
    task: Task
    target: str
    description: str
    licence: str
    citation: str
    image_shape: tuple[int, int] | None = None

    def load(self) -> Dataset:
        """Read it."""
        bunch = _function(self.function)()
        X, y = np.asarray(bunch.data, np.float64), np.asarray(bunch.target)
        names = tuple(str(label) for label in bunch.target_names) if self.task == "classification" else None
        return Dataset(
            self.name, X, y.astype(np.float64 if names is None else np.int64), self.task,
            tuple(bunch.feature_names), (self.target,), names, self.image_shape,
            self.description, self.licence, self.citation,
        )  # fmt: skip


def _function(name: str) -> Callable[..., Any]:
    from sklearn import datasets

    return getattr(datasets, name)
