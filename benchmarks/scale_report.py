"""scale.md: the claims, the tables behind them, and how they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scale_claims import claims
from scale_figure import drawing
from scale_points import CENTRE_SCALE, DENSE, PAPER, RECALL_ROWS, SPARSE, UMAP

from distreduce_paper.store import CellResult

COMMAND = "python benchmarks/scale.py"
SCORES = {"homogeneity": "homogeneity", "nmi": "NMI", "silhouette": "silhouette"}
NOTES = f"""\
Every fit ran in a process of its own, after a short fit to few samples that does not count: Numba's compilation is in \
none of these seconds. *Memory* is the largest resident set during the fit, interpreter, libraries and data included; \
*of the fit* is that less what was resident when it began. *Neighbours* are the cells and the search for the k \
nearest (`arrange`, `keep_neighbours`), *after* is all else. *Recall* is the share of a sample's exact k nearest \
neighbours (by brute force, mean over {RECALL_ROWS} samples drawn at random) that the graph links it \
with, in the metric of the fit.

Points of *{PAPER}*, and of *{UMAP}* up to 100,000 samples, are of an earlier run on a machine of the same \
kind."""
MIXTURES = f"""\
100 Gaussians in 50 dimensions, centres from N(0, {CENTRE_SCALE}² I) and unit noise, ten classes of ten components \
each; m = 200, perplexity 30. *{SPARSE}* and *{DENSE}* are `SDR(affinity=..., eta="auto")`; *{PAPER}* is the row of \
that name in the rebuilt paper (Adam, alternation, spectral start, eta = 1000, n×n arrays); *{UMAP}* is umap-learn's \
own fit with categorical targets, 50 neighbours and no seed, with which it would use a single core. A method that went \
over a limit was not run on more samples."""
MEASURED = ("seconds", "peak_mb", "before_mb", "after_seconds", "stopped")


def frame_of(results: Sequence[CellResult]) -> pd.DataFrame:
    """Return one row per point, sorted by data, size, method and seed; "stopped" says why there are no numbers."""
    rows = [
        {"data": one["data"], "method": one["method"], "seed": one["seed"], **one["parameters"]}
        | {name: one[name] for name in ("seconds", "peak_mb", "load") if name in one}
        | {"stopped": one.get("error"), **one.get("result", {})}
        for one in results
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return frame
    frame = frame.reindex(columns=dict.fromkeys([*frame, *MEASURED]))  # a point that was stopped has few of them
    frame["fit_mb"] = frame["peak_mb"] - frame["before_mb"]
    # The order of the table, not of the alphabet.
    rank = frame["method"].map({name: k for k, name in enumerate((SPARSE, DENSE, PAPER, UMAP))})
    return frame.assign(rank=rank).sort_values(["data", "n", "rank", "seed"], ignore_index=True)


def save(results: Sequence[CellResult], folder: Path) -> list[Path]:
    """Write scale.md and, if there are mixtures, scale.svg; returns their paths."""
    frame = frame_of(results)
    if frame.empty:
        return []
    paths = [folder / "scale.md"]
    mixtures = frame[frame["data"] == "mixture"]
    if not mixtures["seconds"].isna().all():
        paths.append(folder / "scale.svg")
        paths[-1].write_text(drawing(mixtures), encoding="utf-8")
    paths[0].write_text(markdown(frame, results), encoding="utf-8")
    return paths


def markdown(frame: pd.DataFrame, results: Sequence[CellResult]) -> str:
    """Render the page."""
    parts = ["# A fit over the number of samples", f"`{COMMAND}`. {_setting(results)}", NOTES]
    if found := claims(frame):
        parts += ["## What had to be shown", table(pd.DataFrame(found))]
    fashion, mixtures = (frame[frame["data"] == name] for name in ("fashion", "mixture"))
    if not fashion.empty:
        parts += ["## Fashion-MNIST, 10,000 samples, m = 200, perplexity 50, eta = auto", table(fashion_rows(fashion))]
        parts.append(
            "Means ± standard errors over the seeds; the last row is of the paired differences, sparse less dense."
        )
    if not mixtures.empty:
        parts += ["## Gaussian mixtures", MIXTURES, table(mixture_rows(mixtures))]
        if not mixtures["seconds"].isna().all():
            parts.append("![Seconds of a fit over the number of samples](scale.svg)")
    return "\n\n".join(parts) + "\n"


def fashion_rows(fashion: pd.DataFrame) -> pd.DataFrame:
    """Return one row per kind of affinity, and one for their differences by seed."""
    columns = {"seconds": "seconds", "peak_mb": "memory MB", "fit_mb": "of the fit MB", **SCORES, "recall": "recall"}
    shown = {name: title for name, title in columns.items() if name in fashion}
    values = fashion.set_index(["method", "seed"])[list(shown)]
    groups = {method: values.loc[method] for method in (SPARSE, DENSE) if method in values.index}
    if len(groups) == 2:
        # The index is the seed, so pandas subtracts seed by seed.
        groups["difference"] = (groups[SPARSE] - groups[DENSE]).dropna(how="all")
    return pd.DataFrame(
        {"method": name, "seeds": str(len(group))} | {title: spread(group[column]) for column, title in shown.items()}
        for name, group in groups.items()
    )


def mixture_rows(mixtures: pd.DataFrame) -> pd.DataFrame:
    """Return one row per size and method."""
    return pd.DataFrame(_mixture_row(row) for row in mixtures.to_dict("records"))


def _mixture_row(row: dict[Any, Any]) -> dict[str, str]:
    found = {"n": f"{row['n']:,}", "method": row["method"]}
    if pd.notna(row["stopped"]):
        return found | {"seconds": row["stopped"]}
    # NaN, and so an empty cell, for methods without that stage.
    neighbours = row.get("arrange_seconds", math.nan) + row.get("neighbour_seconds", math.nan)
    found |= {"seconds": short(row["seconds"]), "neighbours": short(neighbours)}
    found |= {"after": short(row.get("after_seconds")), "outer iterations": short(row.get("iterations"))}
    found |= {"memory MB": short(row["peak_mb"]), "of the fit MB": short(row["fit_mb"])}
    found["recall"] = "" if pd.isna(row.get("recall")) else f"{row['recall']:.3f}"
    return found | {title: _score(row.get(name)) for name, title in SCORES.items()}


def table(frame: pd.DataFrame) -> str:
    """Format as Markdown; missing cells are empty, all but the first two columns are right-aligned."""
    lines = ["|" + "|".join(frame.columns) + "|", "|---|---|" + "--:|" * (len(frame.columns) - 2)]
    lines += ["|" + "|".join(row) + "|" for row in frame.fillna("").astype(str).to_numpy()]
    return "\n".join(lines)


def short(value: float | None) -> str:
    """Format with three significant digits, from 100 on without decimals; empty for NaN or None."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: pd.Series) -> str:
    """Format mean ± standard error."""
    known = values.dropna().to_numpy(float)
    if len(known) < 2:
        return short(known[0]) if len(known) else ""
    return f"{short(known.mean())} ± {np.std(known, ddof=1) / math.sqrt(len(known)):.2g}"


def _score(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.1f}"


def _setting(results: Sequence[CellResult]) -> str:
    """Describe machines, threads, versions and load; points measured at different times may have several of each."""
    machines = sorted({one["machine"] for one in results if "machine" in one})
    threads = sorted({str(one["parameters"]["threads"]) for one in results})
    versions = sorted(
        {", ".join(f"{k} {v}" for k, v in one["versions"].items()) for one in results if "versions" in one}
    )
    loads = [one["load"] for one in results if "load" in one] or [math.nan]
    return (
        f"{'; '.join(machines)}; {' or '.join(threads)} threads; load average when a point started {min(loads):.1f} to "
        f"{max(loads):.1f}. {'; '.join(versions)}."
    )
