"""What ``distreduce bench`` measures: fits on built-in or generated data, each next to a reference.

The reference for a reduction is the paper's algorithm, for a Gaussian process scikit-learn's. ``benchmarks/`` has the
larger comparison, with the straightforward pipeline and with the paper's data.
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

from distreduce import SDR
from distreduce.gp import SDRGPRegressor
from distreduce_paper.measure import measure
from distreduce_paper.methods import PAPER_ALGORITHM
from distreduce_paper.problems import Array

Fit = Callable[[], float]  # fits a model and returns its score


@dataclass(frozen=True)
class Case:
    """One problem fitted in two ways, ours first; `score` names what each fit returns."""

    name: str
    shape: tuple[int, int]
    score: str
    fits: dict[str, Fit]


@dataclass(frozen=True)
class Timing:
    """One fit of a case: its seconds, the largest resident set of the process during it, and its score."""

    method: str
    seconds: float
    peak_mb: float
    value: float


@dataclass(frozen=True)
class CaseResult:
    """The timings of a case; `ratio` is the seconds of the reference divided by ours."""

    case: str
    shape: tuple[int, int]
    score: str
    timings: tuple[Timing, ...]
    ratio: float


def make_cases(*, quick: bool) -> list[Case]:
    """Make the cases of a quick or a full run. Data are loaded here, outside of what is timed."""
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


def run_cases(cases: Sequence[Case], advance: Callable[[str], object]) -> Iterator[CaseResult]:
    """Time the cases one after the other; call `advance` with a short description before each fit."""
    for case in cases:
        timings = []
        for method, fit in case.fits.items():
            advance(f"{case.name}: {method}")
            timings.append(_time(method, fit))
        ratio = timings[-1].seconds / timings[0].seconds  # ours is the first fit, the reference the last
        yield CaseResult(case.name, case.shape, case.score, tuple(timings), ratio)


def compile_loops() -> float:
    """Fit small data in every way once, so that no timing includes compilation; return the seconds."""
    start = time.perf_counter()
    X, y = load_iris(return_X_y=True)
    # One prototype per sample, few prototypes and a GP: the three kinds of case.
    for case in (_reduction("", X, y, None), _reduction("", X, y, 10), _regression("", X[:60], X[:60, 2])):
        for method, fit in case.fits.items():
            _time(method, fit)
    return time.perf_counter() - start


def load_average() -> float | None:
    """Return the load average of the last minute, or None if the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _time(method: str, fit: Fit) -> Timing:
    # Matrices are small here: BLAS on several threads would be slower, up to thirty times on busy cores.
    with threadpool_limits(1, "blas"), warnings.catch_warnings(), measure() as cost:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's algorithm stops before it converges
        value = fit()
    return Timing(method, cost.seconds, cost.peak_mb, value)


def _reduction(name: str, X: Array, y: NDArray[Any], m: int | None) -> Case:
    def fit(**options: Any) -> float:
        return float(SDR.paper(n_prototypes=m, random_state=0, **options).fit(X, y).objective_)

    prototypes = "m = n" if m is None else f"m = {m}"
    fits: dict[str, Fit] = {"SDR": fit, "paper's algorithm": lambda: fit(**PAPER_ALGORITHM)}
    return Case(f"{name}, {prototypes}", X.shape, "J", fits)


def _regression(name: str, X: Array, y: Array) -> Case:
    """Both standardize the features. Scores are those of a held-out fifth, and scoring counts as time too."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    # The same model family as our plain GP: one length scale per feature, signal and noise.
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    plain = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))
    ours = SDRGPRegressor(random_state=0)
    fits: dict[str, Fit] = {
        "SDRGPRegressor": lambda: float(ours.fit(X_train, y_train).score(X_test, y_test)),
        "scikit-learn's GP": lambda: float(plain.fit(X_train, y_train).score(X_test, y_test)),
    }
    return Case(f"{name}, GP", X_train.shape, "R²", fits)
