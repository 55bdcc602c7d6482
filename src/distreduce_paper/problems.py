"""The data sets as the experiments use them: loaded, split, scaled. For one seed, every method sees the same samples.

Tables are standardized feature by feature. Images keep one global scale, because rescaling each pixel or component
would destroy their geometry: they are reduced to 50 principal components, which are divided by one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from distreduce import datasets
from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Kind

Array = NDArray[np.float64]
Task = Literal["regression", "classification"]
QUICK_SAMPLES = 240
N_COMPONENTS = 50
COIL20_SIDE, DKL_SIDE = 128, 32  # pixels


@dataclass(frozen=True)
class Problem:
    """How to make (X, y) from a seed.

    Attributes
    ----------
    load : callable
        From a seed to X and y.
    task : {"regression", "classification"}
        Kind of the targets.
    images : bool
        Whether X holds pixels between 0 and 1.
    perplexity : float
        Perplexity for reductions to prototypes, as in the paper.
    seeded : bool
        Whether the samples depend on the seed; otherwise only the split does.
    """

    load: Callable[[int], tuple[Array, Array]]
    task: Task
    images: bool = False
    perplexity: float = 30.0
    seeded: bool = False


@dataclass(frozen=True)
class Split:
    """Samples to fit, and samples held out."""

    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array


PROBLEMS: dict[str, Problem] = {}
_ADDED: dict[str, set[str]] = {"predictor": set(), "embedding": set(), "reduction": set()}


def add_problem(name: str, problem: Problem, kinds: tuple[Kind, ...] = ("predictor", "embedding", "reduction")) -> None:
    """Register a data set that can be selected in all experiments of these kinds."""
    # A plugin may register its own set again, but not replace one of the paper.
    _check_name(name, taken=name in PROBLEMS and not _is_added(name))
    PROBLEMS[name] = problem
    _load_whole.cache_clear()  # a plugin may have replaced a data set of its own
    for kind in kinds:
        _ADDED[kind].add(name)


def add_own_problems(own: Mapping[str, Problem]) -> None:
    """Register data sets that belong to one experiment; other experiments do not offer them."""
    for name, problem in own.items():
        _check_name(name, taken=_is_added(name))
        PROBLEMS[name] = problem


def _is_added(name: str) -> bool:
    return any(name in names for names in _ADDED.values())


def _check_name(name: str, *, taken: bool) -> None:
    if taken:
        raise InvalidInputError(f"The package has its own data set {name!r}; choose another name for yours.")


def added_names(kind: Kind) -> set[str]:
    """Return the names of the data sets added to the paper's."""
    return _ADDED[kind]


def get_problem(name: str) -> Problem:
    """Return the data set called `name`; raise InvalidInputError if there is none."""
    if name not in PROBLEMS:
        raise InvalidInputError(f"There is no data set {name!r} in the experiments; there are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]


def load_whole(name: str, seed: int, *, quick: bool = False) -> tuple[Array, Array]:
    """Load all samples, scaled, as reductions to prototypes see them."""
    # Where the seed does not matter, all seeds share one entry of the cache.
    X, y = _load_whole(name, seed if quick or get_problem(name).seeded else 0, quick)
    return X.copy(), y.copy()  # a method that works in place must not change the samples of the next one


@lru_cache(maxsize=2)  # the principal components of COIL-20 take longer than many fits
def _load_whole(name: str, seed: int, quick: bool) -> tuple[Array, Array]:
    problem = get_problem(name)
    X, y = _load(problem, seed, quick)
    return _scale(problem, X)[0], y


def load_split(name: str, seed: int, *, held_out: float = 0.2, images: bool = False, quick: bool = False) -> Split:
    """Load a split that is scaled by its training part alone; numeric targets are standardized too.

    `held_out` is the share of the samples that are held out.

    With `images`, image data are pixels between 0 and 1, and COIL-20 is averaged from 128 × 128 to 32 × 32.
    """
    problem = get_problem(name)
    X, y = _load(problem, seed, quick)
    # Split first and scale by the training part: held-out samples must not leak into the scale.
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=held_out, random_state=seed)
    if problem.images and images:
        X_train, X_test = _shrink(X_train), _shrink(X_test)
    else:
        X_train, X_test = _scale(problem, X_train, X_test)
    if problem.task == "regression":
        y_train, y_test = _standardize(y_train, y_test)
    return Split(X_train, X_test, y_train, y_test)


def _load(problem: Problem, seed: int, quick: bool) -> tuple[Array, Array]:
    X, y = problem.load(seed)
    if quick and len(X) > QUICK_SAMPLES:
        # A quick run takes a sample of its own for each seed, also where the full data do not depend on it.
        rows = np.random.default_rng(seed).choice(len(X), QUICK_SAMPLES, replace=False)
        X, y = X[rows], y[rows]
    return X, y


def _scale(problem: Problem, train: Array, *others: Array) -> tuple[Array, ...]:
    if not problem.images:
        return _standardize(train, *others)
    # Learned from the training part; one number for all components keeps the geometry.
    pca = PCA(min(N_COMPONENTS, *train.shape), random_state=0).fit(train)
    scale = pca.transform(train).std()
    return tuple(pca.transform(part) / scale for part in (train, *others))


def _standardize(train: Array, *others: Array) -> tuple[Array, ...]:
    # The scaler wants tables; targets may be a single column (n,).
    scaler = StandardScaler().fit(train.reshape(len(train), -1))
    return tuple(scaler.transform(part.reshape(len(part), -1)).reshape(part.shape) for part in (train, *others))


def _shrink(X: Array) -> Array:
    """Average the pixels of COIL-20; smaller images stay as they are."""
    if X.shape[1] != COIL20_SIDE**2:
        return X
    factor = COIL20_SIDE // DKL_SIDE
    # Rows and columns of pixels, each in blocks of `factor`; the mean is over both axes of a block.
    return X.reshape(-1, DKL_SIDE, factor, DKL_SIDE, factor).mean(axis=(2, 4)).reshape(-1, DKL_SIDE**2)


def draw_friedman(n: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Friedman #1: five of ten features matter."""
    X, y = make_friedman1(n, noise=noise, random_state=seed)
    return X, y


def _loader(name: str, scale: float = 1.0, **options: Any) -> Callable[[int], tuple[Array, Array]]:
    def load(seed: int) -> tuple[Array, Array]:
        bunch = datasets.load(name, random_state=seed, **options)
        return bunch.X / scale, bunch.y

    return load


PROBLEMS.update(
    {
        "boston": Problem(_loader("boston"), "regression"),
        "energy": Problem(_loader("energy"), "regression"),
        "concrete": Problem(_loader("concrete"), "regression"),
        "mnist2k": Problem(_loader("mnist", 255.0, n_samples=2000), "classification", images=True, seeded=True),
        "coil20": Problem(_loader("coil20", 255.0), "classification", images=True, perplexity=20.0),
        "fashion": Problem(_loader("fashion_mnist", 255.0), "classification", images=True, perplexity=50.0),
        "snareseq": Problem(_loader("snareseq"), "classification", perplexity=30.0),
        "s_curve": Problem(_loader("s_curve"), "regression", seeded=True),
        "swiss_roll": Problem(_loader("swiss_roll"), "regression", seeded=True),
        "friedman": Problem(_loader("friedman"), "regression", seeded=True),
    }
)
