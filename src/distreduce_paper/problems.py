"""The data sets as the experiments use them: drawn, split, scaled. The same seed gives every method the same samples.

Tables are standardised feature by feature. Images keep one global scale, because rescaling every pixel or component
would undo their geometry: they are reduced to 50 principal components, divided by one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from distreduce import datasets
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Kind

Task = Literal["regression", "classification"]
QUICK_SAMPLES = 240
N_COMPONENTS = 50


@dataclass(frozen=True)
class Problem:
    """How to make (X, y) from a seed.

    Attributes
    ----------
    load : callable
        From a seed to X and y.
    task : {"regression", "classification"}
    images : bool
        X are pixels in 0..1.
    perplexity : float
        The paper's, for reductions to prototypes.
    seeded : bool
        The samples depend on the seed; otherwise only the split does.
    """

    load: Callable[[int], tuple[Array, Array]]
    task: Task
    images: bool = False
    perplexity: float = 30.0
    seeded: bool = False


@dataclass(frozen=True)
class Split:
    """80 % to fit, 20 % to score."""

    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array


PROBLEMS: dict[str, Problem] = {}
_ADDED: dict[str, set[str]] = {"predictor": set(), "embedding": set(), "reduction": set()}


def add(name: str, problem: Problem, kinds: tuple[Kind, ...] = ("predictor", "embedding", "reduction")) -> None:
    """Register a data set; the experiments of these kinds can then be asked for it."""
    if name in PROBLEMS and not any(name in names for names in _ADDED.values()):
        raise InvalidInputError(f"The package has a data set {name!r} of its own; choose another name for yours.")
    PROBLEMS[name] = problem
    _whole.cache_clear()
    for kind in kinds:
        _ADDED[kind].add(name)


def include(name: str, problem: Problem) -> None:
    """Register a data set of one experiment; others do not offer it."""
    if any(name in names for names in _ADDED.values()):
        raise InvalidInputError(f"The package has a data set {name!r} of its own; choose another name for yours.")
    PROBLEMS[name] = problem


def added(kind: Kind) -> set[str]:
    """Names of the data sets registered beyond the paper's."""
    return _ADDED[kind]


def problem(name: str) -> Problem:
    """The data set of that name."""
    if name not in PROBLEMS:
        raise InvalidInputError(f"There is no data set {name!r} in the experiments; there are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]


def whole(name: str, seed: int, *, quick: bool = False) -> tuple[Array, Array]:
    """All samples, scaled: what a reduction to prototypes is given."""
    X, y = _whole(name, seed if quick or problem(name).seeded else 0, quick)
    return X.copy(), y.copy()  # a method that works in place must not change what the next one is given


@lru_cache(maxsize=2)  # the principal components of COIL-20 take longer than many a fit
def _whole(name: str, seed: int, quick: bool) -> tuple[Array, Array]:
    X, y = _drawn(problem(name), seed, quick)
    return _scaled(problem(name), X)[0], y


def split(name: str, seed: int, *, images: bool = False, quick: bool = False) -> Split:
    """A split scaled by its training part alone; targets that are numbers are standardised too.

    Methods that read `images` get pixels in 0..1, COIL-20 averaged from 128 × 128 to 32 × 32 for their sake.
    """
    one = problem(name)
    X, y = _drawn(one, seed, quick)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    if one.images and images:
        X_train, X_test = _pixels(X_train), _pixels(X_test)
    else:
        X_train, X_test = _scaled(one, X_train, X_test)
    if one.task == "regression":
        y_train, y_test = _standardised(y_train, y_test)
    return Split(X_train, X_test, y_train, y_test)


def _drawn(one: Problem, seed: int, quick: bool) -> tuple[Array, Array]:
    X, y = one.load(seed)
    if quick and len(X) > QUICK_SAMPLES:
        rows = np.random.default_rng(seed).choice(len(X), QUICK_SAMPLES, replace=False)
        X, y = X[rows], y[rows]
    return X, y


def _scaled(one: Problem, train: Array, *others: Array) -> tuple[Array, ...]:
    if not one.images:
        return _standardised(train, *others)
    pca = PCA(min(N_COMPONENTS, *train.shape), random_state=0).fit(train)
    scale = pca.transform(train).std()
    return tuple(pca.transform(part) / scale for part in (train, *others))


def _standardised(train: Array, *others: Array) -> tuple[Array, ...]:
    scaler = StandardScaler().fit(train.reshape(len(train), -1))
    return tuple(scaler.transform(part.reshape(len(part), -1)).reshape(part.shape) for part in (train, *others))


def _pixels(X: Array) -> Array:
    if X.shape[1] == 128 * 128:
        return X.reshape(-1, 32, 4, 32, 4).mean(axis=(2, 4)).reshape(-1, 1024)
    return X


def _table(name: str) -> Callable[[int], tuple[Array, Array]]:
    def load(seed: int) -> tuple[Array, Array]:
        found = datasets.load(name)
        return found.X, found.y

    return load


def _images(name: str, n_samples: int | None = None) -> Callable[[int], tuple[Array, Array]]:
    def load(seed: int) -> tuple[Array, Array]:
        found = datasets.load(name, n_samples=n_samples, random_state=seed)
        return found.X / 255.0, found.y

    return load


def _generated(name: str) -> Callable[[int], tuple[Array, Array]]:
    def load(seed: int) -> tuple[Array, Array]:
        found = datasets.load(name, random_state=seed)
        return found.X, found.y

    return load


PROBLEMS.update(
    {
        "boston": Problem(_table("boston"), "regression"),
        "energy": Problem(_table("energy"), "regression"),
        "concrete": Problem(_table("concrete"), "regression"),
        "mnist2k": Problem(_images("mnist", 2000), "classification", images=True, seeded=True),
        "coil20": Problem(_images("coil20"), "classification", images=True, perplexity=20.0),
        "fashion": Problem(_images("fashion_mnist"), "classification", images=True, perplexity=50.0),
        "snareseq": Problem(_table("snareseq"), "classification", perplexity=30.0),
        "s_curve": Problem(_generated("s_curve"), "regression", seeded=True),
        "swiss_roll": Problem(_generated("swiss_roll"), "regression", seeded=True),
        "friedman": Problem(_generated("friedman"), "regression", seeded=True),
    }
)
