"""The claims about the sparse path that the benchmark checks, each with the measured number."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scale_points import DENSE, SPARSE
from timing import exponent

LARGEST = 1_000_000  # samples at which memory, time and growth are judged
MOST_EXPONENT, MOST_GB, MOST_MINUTES = 1.1, 8.0, 30.0
MOST_POINTS, LEAST_MEMORY, LEAST_SPEED = 1.0, 5.0, 3.0
HOW = "least squares of log seconds on log n"


def claims(frame: pd.DataFrame) -> list[dict[str, str]]:
    """Return one row per claim: the claim, the measured number, and whether it is met."""
    return [*_fashion(frame[frame["data"] == "fashion"]), *_mixtures(frame[frame["data"] == "mixture"])]


def growth(mixtures: pd.DataFrame, column: str) -> tuple[float, float]:
    """Exponent of a column of the sparse path's seconds over n, and its standard error; NaN for a single size."""
    own = mixtures[(mixtures["method"] == SPARSE)].dropna(subset=["seconds"])
    return exponent(own["n"], own[column]) if own["n"].nunique() > 1 else (math.nan, math.nan)


def _fashion(fashion: pd.DataFrame) -> Iterator[dict[str, str]]:
    """Compare sparse and dense fits by seed; only seeds that both have count."""
    values = fashion.dropna(subset=["seconds"]).set_index(["method", "seed"])
    if not {SPARSE, DENSE} <= set(values.index.get_level_values(0)):
        return
    sparse, dense = values.loc[SPARSE], values.loc[DENSE]
    seeds = sparse.index.intersection(dense.index)
    sparse, dense = sparse.loc[seeds], dense.loc[seeds]
    for score in ("homogeneity", "nmi", "silhouette"):
        gap = (sparse[score] - dense[score]).to_numpy(float)
        error = f" ± {np.std(gap, ddof=1) / math.sqrt(len(gap)):.2f}" if len(gap) > 1 else ""
        measured = f"{gap.mean():+.2f}{error} points ({len(gap)} seeds)"
        claim = f"Fashion-MNIST: {score} of sparse at most {MOST_POINTS:g} point below dense"
        yield _row(claim, measured, gap.mean() >= -MOST_POINTS)
    # Memory with and without interpreter, libraries and data: the claim must hold for both.
    ratios = {
        ("memory of the process", LEAST_MEMORY): dense["peak_mb"].mean() / sparse["peak_mb"].mean(),
        ("memory of the fit", LEAST_MEMORY): dense["fit_mb"].mean() / sparse["fit_mb"].mean(),
        ("time", LEAST_SPEED): dense["seconds"].mean() / sparse["seconds"].mean(),
    }
    for (name, least), ratio in ratios.items():
        yield _row(f"Fashion-MNIST: {name} at least {least:g} times less", f"{ratio:.1f} times", ratio >= least)


def _mixtures(mixtures: pd.DataFrame) -> Iterator[dict[str, str]]:
    own = mixtures[(mixtures["method"] == SPARSE)].dropna(subset=["seconds"])
    if own["n"].nunique() > 1:
        slope, error = growth(mixtures, "after_seconds")
        around = "" if math.isnan(error) else f" ± {error:.2f}"  # two sizes leave nothing to estimate it from
        others = (growth(mixtures, "seconds")[0], growth(own.assign(nn=own["seconds"] - own["after_seconds"]), "nn")[0])
        last = exponent(own["n"].iloc[-2:], own["after_seconds"].iloc[-2:])[0]
        measured = (
            f"{slope:.2f}{around} ({HOW}, {own['n'].nunique()} sizes from {own['n'].min():,} to "
            f"{own['n'].max():,}; the last two alone {last:.2f}; whole fit {others[0]:.2f}, neighbours {others[1]:.2f})"
        )
        claim = f"Mixtures: seconds after the neighbours grow as n to at most {MOST_EXPONENT:g}"
        yield _row(claim, measured, slope <= MOST_EXPONENT if own["n"].max() >= LARGEST else None)
    for _, row in own[own["n"] == LARGEST].iterrows():
        memory, minutes = row["peak_mb"] / 1024, row["seconds"] / 60
        yield _row(f"Mixtures: n = {LARGEST:,} in at most {MOST_GB:g} GB", f"{memory:.2f} GB", memory <= MOST_GB)
        claim = f"Mixtures: whole fit at n = {LARGEST:,} within {MOST_MINUTES:g} min"
        yield _row(claim, f"{minutes:.1f} min", minutes <= MOST_MINUTES)


def _row(claim: str, measured: str, met: bool | None) -> dict[str, str]:
    """Format a claim; `met` is None if the sizes that it is about have not been measured."""
    verdict = "open" if met is None else "yes" if met else "**no**"
    return {"claim": claim, "measured": measured, "met": verdict}
