"""results/benchmarks/gp.md from the cells of benchmarks/gp.py, with the paper's figures beside ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
from gp_problems import CLASSIFICATION, REGRESSION
from quality import markdown
from report import machine

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ROOT.parent / "shared" / "paper" / "targets.json"
PAPER_NAMES = {"SDR-GP, paper's recipe": "SDR-GP"}
SCORES = {False: {"mll": 3, "mse": 4, "mace": 3, "coverage_90": 2}, True: {"mlp": 3, "accuracy": 3, "ece": 3}}
OF_PAPER = {"accuracy": "acc"}


def write_report(cells: list[dict[str, Any]], path: Path) -> None:
    """Write the page."""
    frame = pd.DataFrame([cell for cell in cells if "error" not in cell])
    paper = json.loads(TARGETS.read_text()) if TARGETS.exists() else {}
    parts = [
        "# Gaussian processes on SDR\n",
        "Means ± standard deviations over five seeds, 80/20 splits, targets standardised; in brackets the paper's own "
        "figure. Made by `python benchmarks/gp.py scores | honest | seconds`, then `report`, on "
        f"{os.cpu_count()} cores of {machine(0)['processor']}, no GPU.\n",
        "## Regression (`scores`)\n",
        *(_scores(frame, paper, name, classes=False) for name in REGRESSION),
        "## Classification (`scores`)\n",
        *(_scores(frame, paper, name, classes=True) for name in CLASSIFICATION),
        "## Against a plain ARD GP trained to convergence (`honest`)\n",
        "MLL, and how many of the test points the central 90 % interval covers.\n",
        _honest(frame),
        "## Seconds of fit plus GP (`seconds`)\n",
        _seconds(frame, paper),
        *_errors(cells),
    ]
    path.write_text("\n".join(parts) + "\n")


def _published(paper: dict[str, Any], table: str, method: str, data: str, score: str) -> str:
    rows = paper.get(table, {}).get("rows", {})
    found = rows.get(PAPER_NAMES.get(method, method), {}).get(data, {}).get(OF_PAPER.get(score, score))
    return f" ({found['mean']:g} ± {found['std']:g})" if found else ""


def _scores(frame: pd.DataFrame, paper: dict[str, Any], data: str, *, classes: bool) -> str:
    part = frame[(frame["part"] == "scores") & (frame["data"] == data)]
    part = part.sort_values("method", key=lambda names: ~names.str.startswith("SDR-GP"), kind="stable")
    table = "gp_classification" if classes else "gp_regression"
    rows = []
    for method, group in part.groupby("method", sort=False):
        row: dict[str, Any] = {"method": method if len(group) == 5 else f"{method} ({len(group)} seeds)"}
        for score, digits in SCORES[classes].items():
            value = f"{group[score].mean():.{digits}f} ± {group[score].std(ddof=0):.{digits}f}"
            row[score] = value + ("" if method == "SDR-GP" else _published(paper, table, str(method), data, score))
        rows.append(row)
    return f"### {data}\n\n{markdown(pd.DataFrame(rows))}\n"


def _honest(frame: pd.DataFrame) -> str:
    part = frame[frame["part"] == "honest"]
    means = part.groupby(["data", "method"], sort=False)[["mll", "coverage_90"]].mean().unstack("method")
    rows = []
    for data, row in means.iterrows():
        plain = row["mll", "ARD GP"]
        cells: dict[str, Any] = {"data": data, "ARD GP": f"{plain:.3f}, {row['coverage_90', 'ARD GP']:.0%}"}
        for method in ("SDR-GP", "SDR-GP, p = 3"):
            value = row["mll", method]
            cells[method] = f"{value:.3f} ({value - plain:+.3f}), {row['coverage_90', method]:.0%}"
        rows.append(cells)
    return markdown(pd.DataFrame(rows)) + "\n"


def _seconds(frame: pd.DataFrame, paper: dict[str, Any]) -> str:
    part = frame[frame["part"] == "seconds"]
    groups = part.groupby(["method", "data"], sort=False)["seconds"]
    means, n_seeds = groups.mean().unstack("data"), groups.count()
    table = means.map(lambda value: f"{value:.2f}" if pd.notna(value) else "")
    published = paper.get("runtime_seconds_a100", {}).get("rows", {}).get("SDR-GP", {})
    table.loc["SDR-GP in the paper, A100"] = {
        name: f"{published[name]['seconds']['mean']:g}" for name in means.columns if name in published
    }
    return f"Means over {n_seeds.min()} to {n_seeds.max()} seeds.\n\n{markdown(table.reset_index())}\n"


def _errors(cells: list[dict[str, Any]]) -> list[str]:
    failed = [
        f"- {c['part']}, {c['data']}, {c['method']}, seed {c['seed']}: {c['error']}" for c in cells if "error" in c
    ]
    return ["## Failed\n", *failed] if failed else []
