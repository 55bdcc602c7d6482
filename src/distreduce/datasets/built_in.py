"""Sets that need no download: the generators of scikit-learn and the sets installed with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce.datasets.dataset import Dataset
from distreduce.estimators._targets import Task

SKLEARN = "F. Pedregosa et al. (2011). Scikit-learn: machine learning in Python. JMLR 12, 2825–2830."
FISHER = "R. A. Fisher (1936). The use of multiple measurements in taxonomic problems. Annals of Eugenics 7, 179–188."
FRIEDMAN = "J. H. Friedman (1991). Multivariate adaptive regression splines. Annals of Statistics 19, 1–67."
SWISS_ROLL = "S. Marsland (2014). Machine Learning: An Algorithmic Perspective, 2nd edition, chapter 6."
WINE = "S. Aeberhard and M. Forina (1991). Wine. UCI Machine Learning Repository, doi:10.24432/C5PC7J."
DIGITS = (
    "E. Alpaydin and C. Kaynak (1998). Optical recognition of handwritten digits. UCI Machine Learning Repository, "
    "doi:10.24432/C50P49."
)
CANCER = (
    "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993). Breast cancer Wisconsin (diagnostic). UCI Machine "
    "Learning Repository, doi:10.24432/C5DW2B."
)
DIABETES = (
    "B. Efron, T. Hastie, I. Johnstone and R. Tibshirani (2004). Least angle regression. Annals of Statistics 32."
)


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


SPACE = ("x", "y", "z")
GENERATED_SETS: dict[str, GeneratedSet] = {
    spec.name: spec
    for spec in (
        GeneratedSet(
            "s_curve", "make_s_curve", 100, SPACE, "position", "Points on a bent sheet, and how far along it.", SKLEARN
        ),
        GeneratedSet(
            "swiss_roll", "make_swiss_roll", 100, SPACE, "position", "Points on a rolled sheet, and how far along it.",
            SWISS_ROLL,
        ),
        GeneratedSet(
            "friedman", "make_friedman1", 500, tuple(f"x{column}" for column in range(10)), "y",
            "Friedman's first problem: y = 10 sin(π x0 x1) + 20 (x2 − ½)² + 10 x3 + 5 x4, no noise, x5 … x9 without "
            "effect.", FRIEDMAN,
        ),
    )
}  # fmt: skip
BUNDLED_SETS: dict[str, BundledSet] = {
    spec.name: spec
    for spec in (
        BundledSet(
            "iris", "load_iris", (150, 4), "classification", "species", "Flowers of three species of iris.",
            "CC BY 4.0", FISHER,
        ),
        BundledSet(
            "wine", "load_wine", (178, 13), "classification", "grower", "Chemistry of the wines of three growers.",
            "CC BY 4.0", WINE,
        ),
        BundledSet(
            "digits", "load_digits", (1797, 64), "classification", "digit", "Handwritten digits, grey levels 0 … 16.",
            "CC BY 4.0", DIGITS, (8, 8),
        ),
        BundledSet(
            "breast_cancer", "load_breast_cancer", (569, 30), "classification", "diagnosis",
            "Cell nuclei of benign and malignant tumours.", "CC BY 4.0", CANCER,
        ),
        BundledSet(
            "diabetes", "load_diabetes", (442, 10), "regression", "progression",
            "Progression of diabetes a year after the features were measured; features scaled by scikit-learn.",
            "none stated by the origin", DIABETES,
        ),
    )
}  # fmt: skip
