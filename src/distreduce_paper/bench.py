"""What ``distreduce bench`` measures: fits of data that come with scikit-learn or are drawn, each beside a yardstick.

The yardstick of a reduction is the paper's algorithm, that of a Gaussian process scikit-learn's. ``benchmarks/`` has
the larger comparison, with the straightforward pipeline and with the paper's data.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine, make_blobs, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from threadpoolctl import threadpool_limits

from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.gp import SDRGPRegressor
from distreduce_paper.measure import measured
from distreduce_paper.methods import PAPER_ALGORITHM

Fit = Callable[[], float]  # gives what was reached


@dataclass(frozen=True)
class Case:
    """A fit in two ways; `measure` is the name of what either gives back."""

    name: str
    shape: tuple[int, int]
    measure: str
    fits: dict[str, Fit]  # ours first


@dataclass(frozen=True)
class Run:
    """One fit of a case: how long it took, the largest resident set of the process meanwhile, and what it reached."""

    by: str
    seconds: float
    peak_mb: float
    reached: float


@dataclass(frozen=True)
class Outcome:
    """The runs of a case; `ratio` is the yardstick's seconds over ours."""

    case: str
    shape: tuple[int, int]
    measure: str
    runs: tuple[Run, ...]
    ratio: float


def cases(*, quick: bool) -> list[Case]:
    """The cases of a quick or a full run; data are read and drawn here, outside of what is timed."""
    wine, cultivar = load_wine(return_X_y=True)
    images, digits = load_digits(return_X_y=True)
    X, y = load_diabetes(return_X_y=True)
    if quick:
        return [
            _reduction("wine", scale(wine), cultivar, None),
            _reduction("digits", images[:500] / 16, digits[:500], 40),
            _regression("diabetes", X[:200], y[:200]),
        ]
    blobs, groups = make_blobs(500, 10, centers=5, cluster_std=2.5, random_state=0)
    many, many_groups = make_blobs(3000, 20, centers=12, cluster_std=4.0, random_state=0)
    return [
        _reduction("wine", scale(wine), cultivar, None),
        _reduction("mixture of 5", blobs, groups, None),
        _reduction("digits", images / 16, digits, 60),
        _reduction("mixture of 12", many, many_groups, 100),
        _regression("diabetes", X, y),
        _regression("Friedman #1", *make_friedman1(500, noise=1.0, random_state=0)),
    ]


def run_cases(some: Sequence[Case], advance: Callable[[str], object]) -> Iterator[Outcome]:
    """Time the cases one after the other; `advance` is called with a few words before each fit."""
    for case in some:
        runs = []
        for by, fit in case.fits.items():
            advance(f"{case.name}: {by}")
            runs.append(_timed(by, fit))
        yield Outcome(case.name, case.shape, case.measure, tuple(runs), runs[-1].seconds / runs[0].seconds)


def compile_loops() -> float:
    """Fit small data in every way once, so that no run pays for the compilation of the loops; its seconds."""
    start = time.perf_counter()
    X, y = load_iris(return_X_y=True)
    for case in (_reduction("", X, y, None), _reduction("", X, y, 10), _regression("", X[:60], X[:60, 2])):
        for by, fit in case.fits.items():
            _timed(by, fit)
    return time.perf_counter() - start


def load_average() -> float | None:
    """Processes that wanted a core in the last minute, None where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _timed(by: str, fit: Fit) -> Run:
    # Matrices are small here: BLAS on several threads would be slower, and on busy cores thirty times as slow.
    with threadpool_limits(1, "blas"), warnings.catch_warnings(), measured() as cost:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's algorithm ends without converging
        reached = fit()
    return Run(by, cost.seconds, cost.peak_mb, reached)


def _reduction(name: str, X: Array, y: NDArray[Any], m: int | None) -> Case:
    def fit(**options: Any) -> float:
        return float(SDR(n_prototypes=m, random_state=0, **options).fit(X, y).objective_)

    few = "m = n" if m is None else f"m = {m}"
    fits: dict[str, Fit] = {"SDR": fit, "paper's algorithm": lambda: fit(**PAPER_ALGORITHM)}
    return Case(f"{name}, {few}", X.shape, "J", fits)


def _regression(name: str, X: Array, y: Array) -> Case:
    """Features are standardised by either; scores are of a fifth held out, and count as time too."""
    A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=0)
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    plain = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))
    ours = SDRGPRegressor(random_state=0)
    fits: dict[str, Fit] = {
        "SDRGPRegressor": lambda: float(ours.fit(A, a).score(B, b)),
        "scikit-learn's GP": lambda: float(plain.fit(A, a).score(B, b)),
    }
    return Case(f"{name}, GP", A.shape, "R²", fits)
