"""The tables of the experiment `picture`, and whether its limits hold."""

from __future__ import annotations

import numpy as np
import pandas as pd

from distreduce_paper.problems import Task, get_problem
from distreduce_paper.report.blocks import Block, Table, Text
from distreduce_paper.report.comparison import DASH

OURS = ("SDR, m = n", "SDR, m = n/10")
PURE_NOISE: dict[str, Task] = {"pure noise, numbers": "regression", "pure noise, classes": "classification"}
NO_PLANE = "all features"
LINEAR = "PLS or LDA"  # one column: each set has one of them
ORDER = (*OURS, "PCA", LINEAR, "NCA", "UMAP")
BEHIND, OPTIMISM, COVERAGE = 0.02, 0.03, (0.85, 0.95)
SAID = ("fitted", "left_out", "held_out", "all_features", "no_signal", "fit_seconds")
SAID_COLUMNS = {
    "fitted": ("fitted", ".3f"),
    "displayed (left out)": ("left_out", ".3f"),
    "held out": ("held_out", ".3f"),
    "displayed − held out": ("optimism", "+.3f"),
    "the same, all features": ("control", "+.3f"),
    "warns of no signal": ("no_signal", ".0%"),
    "seconds": ("fit_seconds", ".1f"),
}


def report_planes(frame: pd.DataFrame) -> list[Block]:
    """Return the tables of all planes, of what SDR says of itself and of its coverage, and the limits."""
    frame = frame.assign(method=frame["method"].replace({"PLS": LINEAR, "LDA": LINEAR}))
    scores = _pivot(frame, "held_out")
    gaps, leads = _find_gaps(scores), _find_leads(scores)
    own = _compare_said(frame)
    tables = [_score_table(scores, gaps), *_lead_table(leads), *_said_table(own), *_coverage_table(own)]
    # Quick runs see less data than the limits are meant for.
    return tables if frame["quick"].any() else [*tables, *_judge(gaps, leads, own)]


def _compare_said(frame: pd.DataFrame) -> pd.DataFrame:
    """Return our cells, with the displayed less the held-out score, in the plane and with all features."""
    control = frame[frame["method"] == NO_PLANE].set_index(["data", "seed"])["held_out"].rename("control")
    own = frame[frame["method"].isin(OURS)].join(control, on=["data", "seed"])
    # If no cell says anything of itself, the columns are missing.
    own = own.reindex(columns=["data", "method", *SAID, "coverage", "control"])
    return own.assign(optimism=own["left_out"] - own["held_out"], control=own["all_features"] - own["control"])


def _pivot(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over seeds: data sets as rows in their order, methods as columns with all features last."""
    means = frame.groupby(["data", "method"])[column].mean().unstack("method").dropna(how="all")
    methods = [*(name for name in ORDER if name in means), *means.columns.difference([*ORDER, NO_PLANE])]
    methods += [NO_PLANE] if NO_PLANE in means else []
    return means.loc[[name for name in dict.fromkeys(frame["data"]) if name in means.index], methods]


def _find_gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """Return how far ours are ahead of the best other plane of each set; pure noise has nothing to win."""
    others = scores.drop(columns=[NO_PLANE, *OURS], errors="ignore").max(axis=1)
    ours = scores[[method for method in OURS if method in scores]]
    return ours.sub(others, axis=0).drop(index=list(PURE_NOISE), errors="ignore").dropna(how="all")


def _find_leads(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean lead of ours over each other plane, on the sets with signal that both have."""
    signal = scores.drop(index=list(PURE_NOISE), errors="ignore")
    others = signal.drop(columns=[NO_PLANE, *OURS], errors="ignore")
    return pd.DataFrame({ours: -others.sub(signal[ours], axis=0).mean() for ours in OURS if ours in signal})


def _score_table(scores: pd.DataFrame, gaps: pd.DataFrame) -> Table:
    parts = [_texts(scores).join(_texts(gaps, "+.3f", "gap of "))]
    for task, name in (("regression", "mean R²"), ("classification", "mean accuracy")):
        chosen = scores[[data not in PURE_NOISE and get_problem(str(data)).task == task for data in scores.index]]
        if len(chosen):
            parts.append(_texts(chosen.mean().to_frame(name).T))
    caption = "Held-out scores, means over seeds; the gap is that to the best other plane, the means are without noise."
    texts = pd.concat(parts).astype(object)  # a column without any gap is one of numbers, and takes no text
    return Table(caption, _with_names(texts.fillna(DASH), "data"))


def _lead_table(leads: pd.DataFrame) -> list[Block]:
    caption = "Mean lead over each other plane, on the sets without pure noise that it has."
    return [] if leads.empty else [Table(caption, _with_names(_texts(leads, "+.3f", "lead of "), "other plane"))]


def _said_table(own: pd.DataFrame) -> list[Block]:
    if own.empty:
        return []
    means = own.groupby(["data", "method"], sort=False).mean()
    columns = {name: _texts(means[[column]], form)[column] for name, (column, form) in SAID_COLUMNS.items()}
    caption = "What the fit says of itself (its neighbor scores), next to the held-out score: means over seeds."
    return [Table(caption, pd.DataFrame(columns).reset_index())]


def _coverage_table(own: pd.DataFrame) -> list[Block]:
    coverage = _pivot(own, "coverage")
    caption = "Share of held-out targets in the 5 % to 95 % range of the nearest prototype, means over seeds."
    return [] if coverage.empty else [Table(caption, _with_names(_texts(coverage, ".1%"), "data"))]


def _texts(numbers: pd.DataFrame, form: str = ".3f", prefix: str = "") -> pd.DataFrame:
    return numbers.map(lambda value: _format(value, form)).add_prefix(prefix)


def _with_names(texts: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame with its row names as the first column."""
    return texts.rename_axis(index=name, columns=None).reset_index()


def _judge(gaps: pd.DataFrame, leads: pd.DataFrame, own: pd.DataFrame) -> list[Block]:
    """Say for each limit in how many cases it holds, and where it does not."""
    low, high = COVERAGE
    optimism, coverage = _pivot(own, "optimism"), _pivot(own, "coverage")
    limits = {
        f"At most {BEHIND} behind the best other plane": (gaps, gaps >= -BEHIND, "+.3f"),
        "Ahead of each other plane in the mean": (leads, leads > 0, "+.3f"),
        f"Displayed within {OPTIMISM} of held out": (optimism, optimism.abs() <= OPTIMISM, "+.3f"),
    }
    held = (coverage >= low) & (coverage <= high)
    limits[f"Coverage of {_format(low, '.0%')} to {_format(high, '.0%')}"] = coverage, held, ".1%"
    return [Text(f"{limit}: {_count(*numbers)}") for limit, numbers in limits.items() if not numbers[0].empty]


def _count(values: pd.DataFrame, holds: pd.DataFrame, form: str) -> str:
    cases = [(row, method, value) for method in values for row, value in values[method].dropna().items()]
    missed = [f"{row} ({method}: {_format(value, form)})" for row, method, value in cases if not holds.loc[row, method]]
    return f"{len(cases) - len(missed)} of {len(cases)} cases" + (f"; not {'; '.join(missed)}." if missed else ".")


def _format(value: float, form: str = ".3f") -> str:
    text = DASH if np.isnan(value) else format(value, form)
    return text.replace("-", "−").replace("%", " %")
