"""Time, memory and scores of predictors on 1,000 to 1,000,000 samples, each in a process of its own.

Friedman #1 with ten features, of which five matter, and noise of standard deviation 1: no model can have an RMSE below
1, nor a log density above −1.419. All methods fit with OMP_NUM_THREADS threads. Results go to
results/benchmarks/predictions.jsonl and predictions.md; the same command resumes. CatBoost and GPyTorch's variational
GP are rows only where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
SIZES, TEST = (1000, 10_000, 100_000, 1_000_000), 5000
OURS, TREES, CATBOOST, SVGP = "SDRGPRegressor", "HistGradientBoosting", "CatBoost", "GPyTorch SVGP"
NEEDS = {CATBOOST: "catboost", SVGP: "gpytorch"}
HELD_OUT = 0.1  # share of the training samples that tell models without a density how wrong they are


class Variational:
    """GPyTorch's sparse variational GP with 500 inducing points, ARD, minibatches of 1024, Adam at 0.01."""

    def fit(self, X: Any, y: Any) -> Variational:
        import gpytorch
        import torch

        torch.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        self.mean, self.std = y.mean(), y.std()
        inputs, target = torch.tensor(X).float(), torch.tensor((y - self.mean) / self.std).float()

        class Model(gpytorch.models.ApproximateGP):
            def __init__(self, points: Any) -> None:
                found = gpytorch.variational.CholeskyVariationalDistribution(len(points))
                super().__init__(gpytorch.variational.VariationalStrategy(self, points, found))
                self.mean_module = gpytorch.means.ConstantMean()
                kernel = gpytorch.kernels.RBFKernel(ard_num_dims=points.shape[1])
                self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

            def forward(self, x: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        self.model = Model(inputs[torch.randperm(len(inputs))[:500]].clone())
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        objective = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, len(inputs))
        optimizer = torch.optim.Adam([*self.model.parameters(), *self.likelihood.parameters()], lr=0.01)
        for _ in range(max(5, min(60, 300_000 // len(inputs)))):  # epochs
            for rows in torch.randperm(len(inputs)).split(1024):
                optimizer.zero_grad()
                (-objective(self.model(inputs[rows]), target[rows])).backward()
                optimizer.step()
        return self

    def predict(self, X: Any) -> tuple[Any, Any]:
        import torch

        self.model.eval(), self.likelihood.eval()
        with torch.no_grad():
            found = self.likelihood(self.model(torch.tensor(X).float()))
        return found.mean.numpy() * self.std + self.mean, found.stddev.numpy() * self.std


def fit(method: str, X: Any, y: Any) -> Any:
    """Return a function from samples and targets to the mean and the log densities of the targets."""
    if method == OURS:
        from distreduce import SDRGPRegressor

        model = SDRGPRegressor(random_state=0).fit(X, y)
        return lambda T, t: (model.predict(T), model.log_density(T, t))
    if method == SVGP:
        process = Variational().fit(X, y)
        return lambda T, t: (process.predict(T)[0], log_density(t, *process.predict(T)))
    if method == CATBOOST:
        from catboost import CatBoostRegressor

        # As many threads as the others get: CatBoost does not look at OMP_NUM_THREADS.
        threads = int(os.environ.get("OMP_NUM_THREADS", "-1"))
        make = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            random_seed=0,
            thread_count=threads,
            verbose=0,
            allow_writing_files=False,
        )
        make.fit(X, y)
        return lambda T, t: (
            make.predict(T)[:, 0],
            log_density(t, make.predict(T)[:, 0], np.sqrt(make.predict(T)[:, 1])),
        )
    part = round(HELD_OUT * len(X))
    spread = np.std(y[:part] - HistGradientBoostingRegressor(random_state=0).fit(X[part:], y[part:]).predict(X[:part]))
    trees = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    return lambda T, t: (trees.predict(T), log_density(t, trees.predict(T), spread))


def log_density(y: Any, mean: Any, std: Any) -> Any:
    """log N(y; mean, std²)."""
    return -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((y - mean) / std) ** 2


def measure(method: str, n: int) -> dict[str, Any]:
    """Fit in this process, after a small fit that loads what is compiled."""
    small = make_friedman1(300, noise=1.0, random_state=2)
    fit(method, *small)
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    T, t = make_friedman1(TEST, noise=1.0, random_state=1)
    before, cpu = time.perf_counter(), time.process_time()
    predict = fit(method, X, y)
    seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    before, used = time.perf_counter(), time.process_time()
    mean, density = predict(T, t)
    used = time.process_time() - used
    return {
        "method": method,
        "n": n,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "predict_ms_per_row": round(1000 * (time.perf_counter() - before) / TEST, 3),
        "predict_cpu_ms_per_row": round(1000 * used / TEST, 3),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "rmse": round(float(np.sqrt(np.mean((mean - t) ** 2))), 4),
        "log_density": round(float(np.mean(density)), 4),
    }


def write_table(points: list[dict[str, Any]]) -> None:
    """Write predictions.md."""
    about = __doc__.split("\n\n")[1].replace("\n", " ").strip()
    how = "`OMP_NUM_THREADS=1 python benchmarks/predictions.py`, beside other programs on two cores: go by CPU seconds."
    lines = ["# Predictors from a thousand to a million samples", "", about, "", how, "",
             "| method | n | seconds | CPU seconds | GB | RMSE | log density | ms per row, mean and density | CPU ms |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for p in sorted(points, key=lambda p: (p["method"], p["n"])):
        names = ("seconds", "cpu_seconds", "gigabytes", "rmse", "log_density", "predict_ms_per_row")
        shown = (*(p[name] for name in names), p.get("predict_cpu_ms_per_row", "–"))  # older rows have no CPU time
        lines.append(f"| {p['method']} | {p['n']:,} | " + " | ".join(map(str, shown)) + " |")
    for method in dict.fromkeys(p["method"] for p in points):
        own = [(p["n"], p["cpu_seconds"]) for p in points if p["method"] == method]
        if len(own) > 1:
            slope = np.polyfit(*np.log(np.array(own)).T, 1)[0]
            lines.append(f"\nExponent of CPU seconds in n, {method}: {slope:.2f}.")
    (RESULTS / "predictions.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure what is missing, one process per point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--methods", nargs="+", default=[OURS, TREES, CATBOOST, SVGP])
    parser.add_argument("--point", nargs=2, help="measure one point in this process and print it")
    asked = parser.parse_args()
    if asked.point:
        sys.stdout.write(json.dumps(measure(asked.point[0], int(asked.point[1]))) + "\n")
        return
    store = RESULTS / "predictions.jsonl"
    points = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(p["method"], p["n"]) for p in points}
    for n in asked.sizes:
        for method in asked.methods:
            if (method, n) in done or (method in NEEDS and find_spec(NEEDS[method]) is None):
                continue
            command = [sys.executable, __file__, "--point", method, str(n)]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if run.returncode:  # the others are worth having; the same command tries this one again
                sys.stdout.write(f"{method}, n = {n}: failed with exit code {run.returncode}\n")
                continue
            points.append(json.loads(run.stdout.splitlines()[-1]))
            with store.open("a") as file:
                file.write(json.dumps(points[-1]) + "\n")
            write_table(points)
            sys.stdout.write(f"{points[-1]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
