"""Gaussian processes on SDR beside the paper's figures and every competing method: scores, honesty, seconds.

``python benchmarks/gp.py scores --data DIR``   Tables 1 and 2 of the paper, five seeds, with its own figures
``python benchmarks/gp.py honest --data DIR``   SDR-GP beside a plain ARD GP trained to convergence, p = 2 and 3
``python benchmarks/gp.py seconds --data DIR``  fit plus GP beside DKL and NCA-GP in the same run, and the paper's A100
``python benchmarks/gp.py report``              writes results/benchmarks/gp.md from all cells

Every finished cell is kept in results/benchmarks/gp.jsonl: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gp_problems import CLASSIFICATION, PROBLEMS, REGRESSION, Problem
from gp_report import write_report
from rich.console import Console
from rich.progress import track

from distreduce import SDRGPClassifier, SDRGPRegressor, baselines
from distreduce.gp import GPClassifier, GPRegressor
from distreduce.metrics import classification_scores, regression_scores

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "results" / "benchmarks" / "gp.jsonl"
Maker = Callable[[int], Any]


def on_embedding(embedding: Callable[..., Any], **options: Any) -> tuple[Maker, Maker]:
    """The paper's GP (20 or 50 Adam steps) on an embedding of two or ten dimensions."""
    return (
        lambda seed: baselines.EmbeddingGP(
            embedding(2, random_state=seed, **options), GPRegressor(gp_optimizer="adam"), task="regression"
        ),
        lambda seed: baselines.EmbeddingGP(
            embedding(10, random_state=seed, **options),
            GPClassifier(gp_optimizer="adam", random_state=seed),
            task="classification",
        ),
    )


def kspca(n_components: int, random_state: int) -> Any:
    """KSPCA has no randomness."""
    return baselines.KernelSupervisedPCA(n_components)


METHODS: dict[str, tuple[Maker | None, Maker | None]] = {
    "SDR-GP": (lambda seed: SDRGPRegressor(random_state=seed), lambda seed: SDRGPClassifier(random_state=seed)),
    "SDR-GP, embedding alone": (lambda seed: SDRGPRegressor(residual=False, random_state=seed), None),
    "SDR-GP, paper's recipe": (
        lambda seed: SDRGPRegressor.paper(random_state=seed),
        lambda seed: SDRGPClassifier.paper(random_state=seed),
    ),
    "ARD GP": (lambda seed: GPRegressor(), lambda seed: GPClassifier(random_state=seed)),
    "NCA-GP": on_embedding(baselines.NCA),
    "KSPCA-GP": on_embedding(kspca),
    "UMAP-GP": on_embedding(baselines.SupervisedUMAP),
    "PCA-GP": on_embedding(baselines.PCA),
    "linear": (
        lambda seed: baselines.LinearBaseline(task="regression"),
        lambda seed: baselines.LinearBaseline(task="classification"),
    ),
    "DGP": (lambda seed: baselines.DeepGPRegressor(random_state=seed), None),
    "DKL": (
        lambda seed: baselines.DKLRegressor(random_state=seed),
        lambda seed: baselines.DKLClassifier(random_state=seed),
    ),
    "DKL-pretrained": (
        lambda seed: baselines.DKLRegressor(pretrained=True, random_state=seed),
        lambda seed: baselines.DKLClassifier(pretrained=True, random_state=seed),
    ),
    "SDR-GP, p = 3": (lambda seed: SDRGPRegressor(3, random_state=seed), None),
}
HONEST = ("SDR-GP", "SDR-GP, p = 3", "ARD GP")
TIMED = ("SDR-GP", "SDR-GP, paper's recipe", "DKL", "NCA-GP")


def cell(problem: Problem, method: str, seed: int, folder: Path | None) -> dict[str, float]:
    """Fit on 80 % and score on the rest, in units of the standardised targets."""
    make = METHODS[method][problem.classes]
    split = problem.split(seed, folder, images=method.startswith("DKL"))
    began = time.perf_counter()
    model = make(seed).fit(split.X_train, split.y_train)  # type: ignore[misc]
    seconds = time.perf_counter() - began
    if problem.classes:
        scores = classification_scores(split.y_test, model.predict_proba(split.X_test), model.classes_)
    else:
        scores = regression_scores(split.y_test, *model.predict(split.X_test, return_std=True))
    return {**{name: float(value) for name, value in scores.items()}, "seconds": seconds}


def run(part: str, cases: Iterable[tuple[str, str]], n_seeds: int, folder: Path | None) -> None:
    """Compute the cells that are not there yet; a method that fails is recorded and does not stop the rest."""
    done = {(c["part"], c["data"], c["method"], c["seed"]) for c in read_cells()}
    todo = [(*case, seed) for case in cases for seed in range(n_seeds) if (part, *case, seed) not in done]
    for data, method, seed in track(todo, description=part, console=Console(stderr=True)):
        try:
            result: dict[str, Any] = cell(PROBLEMS[data], method, seed, folder)
        except Exception as error:  # the table shows it
            result = {"error": f"{type(error).__name__}: {error}"}
        with CELLS.open("a") as file:
            file.write(json.dumps({"part": part, "data": data, "method": method, "seed": seed, **result}) + "\n")


def read_cells() -> list[dict[str, Any]]:
    """All finished cells."""
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []


def cases_of(part: str, only: list[str] | None, methods: list[str] | None) -> list[tuple[str, str]]:
    """Data set and method of each row of a part's table."""
    if part == "honest":
        data, names = [name for name in PROBLEMS if not PROBLEMS[name].classes], HONEST
    else:
        data, names = [*REGRESSION, *CLASSIFICATION], TIMED if part == "seconds" else tuple(METHODS)[:-1]
    found = [(d, m) for m in names for d in data if METHODS[m][PROBLEMS[d].classes] is not None]
    return [(d, m) for d, m in found if (not only or d in only) and (not methods or m in methods)]


def main() -> None:
    """Run one part, or write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("scores", "honest", "seconds", "report"))
    parser.add_argument("--data", type=Path, default=os.environ.get("DISTREDUCE_DATA"))
    parser.add_argument("--datasets", nargs="*")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.part == "report":
        write_report(read_cells(), CELLS.with_suffix(".md"))
        return
    warnings.simplefilter("ignore")
    if options.part == "seconds":  # compiled loops and imports are not what is measured
        cell(PROBLEMS["friedman 300, noise 1"], "SDR-GP", 0, None)
    run(options.part, cases_of(options.part, options.datasets, options.methods), options.seeds, options.data)


if __name__ == "__main__":
    main()
