"""What :func:`distreduce.datasets.load` returns, and the sets that need no download."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.estimators._targets import Task
from distreduce.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set as it was published: nothing is scaled, centred or left out.

    Attributes
    ----------
    name : str
    X : (n, d) array of float64
        Raw values. Images are flattened row by row and keep their grey levels 0 … 255.
    y : (n,) or (n, c) array
        Regression: float64, one column per target if there are several. Classification: int64.
        Unknown targets of one's own files are NaN, which makes labels float64.
    task : {"regression", "classification"}
    feature_names : tuple of str
    target_names : tuple of str
    class_names : tuple of str or None
        ``class_names[label]`` is the name of a label; None if labels are numbers, which are kept as given.
    image_shape : (rows, columns) or None
        ``X.reshape(-1, *image_shape)`` restores the images.
    description : str
        For one's own files, notes on how the file was read.
    licence : str
    citation : str

    Examples
    --------
    >>> from distreduce import datasets
    >>> datasets.load("iris")
    Dataset('iris': 150 × 4, classification, 3 classes)
    """

    name: str
    X: Array
    y: NDArray[Any]
    task: Task
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    class_names: tuple[str, ...] | None = None
    image_shape: tuple[int, int] | None = None
    description: str = ""
    licence: str = ""
    citation: str = ""

    def __repr__(self) -> str:
        parts = [f"{self.X.shape[0]} × {self.X.shape[1]}"]
        if self.image_shape is not None:
            parts[0] += f" (images of {self.image_shape[0]} × {self.image_shape[1]})"
        parts.append(self.task)
        if self.task == "classification":
            parts.append(f"{len(np.unique(self.y[~np.isnan(self.y)]))} classes")
        else:
            parts.append("target " + ", ".join(self.target_names))
        # Own files may have gaps, which the estimators reject: say so at first sight.
        missing = int(np.isnan(self.X).sum())
        if missing:
            parts.append(f"{missing} missing in X")
        return f"Dataset({self.name!r}: {', '.join(parts)})"

    def frame(self) -> pd.DataFrame:
        """Return features and targets as one DataFrame; named classes are categories."""
        import pandas as pd

        features = pd.DataFrame(self.X, columns=list(self.feature_names))
        if self.class_names is None:
            targets = pd.DataFrame(self.y.reshape(len(self.y), -1), columns=list(self.target_names))
        else:
            codes = np.where(np.isnan(self.y), -1, self.y).astype(np.int64)  # −1 is an unknown class in pandas
            labels = pd.Categorical.from_codes(codes, categories=list(self.class_names))
            targets = pd.DataFrame({self.target_names[0]: labels})
        return pd.concat([features, targets], axis=1)

    def rows(self, chosen: NDArray[np.int64]) -> Dataset:
        """Return the data set with these rows, in this order."""
        return replace(self, X=self.X[chosen], y=self.y[chosen])

    def draw(self, n_samples: int, random_state: int | None) -> Dataset:
        """Return `n_samples` rows, drawn without replacement by ``numpy.random.default_rng(random_state)``."""
        if n_samples > len(self.X):
            raise InvalidInputError(f"n_samples={n_samples}: {self.name!r} has {len(self.X)} samples; ask for fewer.")
        generator = np.random.default_rng(random_state)
        return self.rows(generator.choice(len(self.X), size=n_samples, replace=False))

    def with_targets(self, names: list[str]) -> Dataset:
        """Return the data set with some of its targets; y is one-dimensional if there is one."""
        unknown = [name for name in names if name not in self.target_names]
        if unknown or not names:
            raise InvalidInputError(
                f"{self.name!r} has no target {', '.join(unknown) or names}; it has {', '.join(self.target_names)}."
            )
        if len(self.target_names) == 1:  # y is one-dimensional already
            return self
        columns = [self.target_names.index(name) for name in names]
        # An integer index drops the axis of the targets, a list keeps it.
        return replace(self, y=self.y[:, columns[0] if len(columns) == 1 else columns], target_names=tuple(names))


@dataclass(frozen=True)
class ScikitLearnSet:
    """A set that is installed with scikit-learn, or one with `feature_names` that a function of it draws."""

    name: str
    function: str
    shape: tuple[int, int]  # of a drawn set by default, as in the paper
    task: Task
    target: str
    description: str
    licence: str
    citation: str
    image_shape: tuple[int, int] | None = None
    feature_names: tuple[str, ...] | None = None

    def load(self, n_samples: int | None = None, random_state: int | None = None) -> Dataset:
        """Read the set, or draw it; without a seed every draw differs, and NumPy's global generator is not used."""
        from sklearn import datasets

        function, features, classes = getattr(datasets, self.function), self.feature_names, None
        if features is None:
            bunch = function()
            X, y, features = np.asarray(bunch.data, np.float64), np.asarray(bunch.target), tuple(bunch.feature_names)
            if self.task == "classification":
                classes = tuple(str(label) for label in bunch.target_names)
            y = y.astype(np.float64 if classes is None else np.int64)
        else:
            # scikit-learn would take None as NumPy's global generator; a new RandomState leaves that alone.
            seed: Any = np.random.RandomState() if random_state is None else random_state
            X, y = function(self.shape[0] if n_samples is None else n_samples, random_state=seed)
        return Dataset(
            self.name, X, y, self.task, features, (self.target,), classes, self.image_shape,
            self.description, self.licence, self.citation,
        )  # fmt: skip
