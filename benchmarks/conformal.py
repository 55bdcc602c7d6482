"""How often conformal 90 % intervals hold new targets, on five kinds of targets.

Each repetition draws a training set of its own and 2000 new samples, and the coverage of a kind is the mean over its
repetitions with its standard error. Results go to results/benchmarks/conformal.jsonl and conformal.md; the same command
resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from distreduce import SDRGPRegressor

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
PROMISED, NEW = 0.9, 2000
METHODS = ("conformal", "model")
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "skewed": lambda rng, X: X[:, 0] + rng.exponential(size=len(X)) ** 2,
    "heavy-tailed": lambda rng, X: X[:, 0] + rng.standard_t(1.5, size=len(X)),
    "counts": lambda rng, X: rng.poisson(np.exp(0.5 * X[:, 0])).astype(float),
    "heteroscedastic": lambda rng, X: X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=len(X)),
    "friedman": lambda rng, X: friedman(X) + rng.normal(size=len(X)),
}


def friedman(X: Any) -> Any:
    """Friedman #1, as scikit-learn defines it."""
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def measure(kind: str, seed: int, n: int, experts: list[str]) -> dict[str, Any]:
    """Fit one training set and return the coverage and the median width of the intervals of new samples."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n + NEW, 10)) if kind == "friedman" else rng.normal(size=(n + NEW, 3))
    y = KINDS[kind](rng, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SDRGPRegressor(experts=experts, random_state=0).fit(X[:n], y[:n])
    found: dict[str, Any] = {"kind": kind, "seed": seed, "n": n, "experts": experts}
    for method in METHODS:
        low, high = model.predict_interval(X[n:], PROMISED, method=method).T
        found[method] = float(np.mean((low <= y[n:]) & (y[n:] <= high)))
        found[f"{method} width"] = float(np.median(high - low))
    return found


def write_table(points: list[dict[str, Any]]) -> None:
    """Write conformal.md."""
    lines = ["# Coverage of new targets", "", __doc__.split("\n\n")[1].replace("\n", " "), "",
             "Three standard normal features. *Skewed*: x₁ + E², E exponential. "
             "*Heavy-tailed*: x₁ + Student's t with 1.5 degrees of freedom. *Counts*: Poisson of mean exp(x₁/2). "
             "*Heteroscedastic*: x₁ + exp(x₂) times a normal. *Friedman*: Friedman #1 with noise 1, ten uniform "
             "features. Experts: the Gaussian processes and those named.", "",
             "| target | n | other experts | repetitions | conformal | ± | model's own | ± |",
             "|---|--:|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for key in dict.fromkeys((p["kind"], p["n"], " ".join(p["experts"])) for p in points):
        own = [p for p in points if (p["kind"], p["n"], " ".join(p["experts"])) == key]
        cells = [str(len(own))]
        for method in METHODS:
            covered = np.array([p[method] for p in own])
            cells += [f"{covered.mean():.4f}", f"{covered.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0:.4f}"]
        lines.append("| " + " | ".join([key[0], str(key[1]), key[2] or "none", *cells]) + " |")
    (RESULTS / "conformal.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--samples", type=int, default=100, help="training samples")
    parser.add_argument(
        "--experts", nargs="*", default=["linear", "forest", "boosting"], help="besides the Gaussian processes"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS)[:4])
    asked = parser.parse_args()
    store = RESULTS / "conformal.jsonl"
    points = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(p["kind"], p["seed"], p["n"], tuple(p["experts"])) for p in points}
    for seed in range(asked.repetitions):
        for kind in asked.kinds:
            if (kind, seed, asked.samples, tuple(asked.experts)) in done:
                continue
            points.append(measure(kind, seed, asked.samples, asked.experts))
            with store.open("a") as file:
                file.write(json.dumps(points[-1]) + "\n")
        write_table(points)
        sys.stdout.write(f"{seed + 1} repetitions\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
