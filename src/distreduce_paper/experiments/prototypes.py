"""Figures 2 and 3: scores and runtimes over the number of prototypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._reductions import SCORES, draw_scores, fit_reduction
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block, Table, Text
from distreduce_paper.report.comparison import format_mean
from distreduce_paper.report.drawing import draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {
    "homogeneity": "homogeneity",
    "nmi": "NMI",
    "silhouette": "silhouette",
    "cka": "CKA",
    "used": "prototypes used",
    "cpu_seconds": "CPU seconds",
}
OURS = ("SDR", "SDR, defaults", "SDR, eta=n", "SDR, paper's algorithm")
NOTES = """\
The scores are those of DistR, times 100: homogeneity of the hard assignment, normalized mutual information of the \
classes with a k-means clustering of the prototypes, and the silhouette of prototypes labelled by their heaviest \
class. SDR sees the classes and the three baselines do not, so the figure shows what supervision adds, not which \
method clusters best. The paper prints no numbers for these figures. *SDR, eta=n* raises the weight of the \
dependence with the number of samples; it was run on Fashion-MNIST only, because on the two smaller sets it hardly \
differs from *SDR*. *SDR* has the constants of the paper (`SDR.paper`), *SDR, defaults* is `SDR()`: its coupling sees \
what left-out samples predict instead of the classes, so that its homogeneity is what new samples keep (one seed on \
Fashion-MNIST). A class with a single prototype has a silhouette of zero, which is the case for all 20 classes of \
COIL-20 at 20 prototypes. Seconds are CPU seconds of a fit with its scores on one thread, because other \
programs ran at the same time; the table of *training times* was measured on an idle machine."""
SHARED = """\
DR-then-Cluster embeds all samples first, with the coupling held at the identity, as usual in dimensionality \
reduction. This embedding depends on the samples alone, not on the number of prototypes or the seed, so it was \
computed once per data set; deviations are those of the clustering. Its seconds count in full in every fit of Figure \
3, and in the computing time above."""


def run(cell: Cell) -> dict[str, Any]:
    """Return the scores of one reduction (times 100, except CKA), its used prototypes, and the seconds of its fit."""
    _, results = fit_reduction(cell, int(str(cell.parameters["n_prototypes"])))
    return results


def report(frame: pd.DataFrame) -> list[Block]:
    """Show both figures, how often SDR leads, and the numbers behind them."""
    columns = {label(str(name)): part for name, part in frame.groupby("data", sort=False)}
    width = 1.2 + 2.9 * len(columns)
    seconds = {"cpu_seconds": "CPU seconds of the fit"}
    return [
        *([Text(SHARED)] if "DR-then-Cluster" in set(frame["method"]) else []),
        draw_figure(
            "prototypes_scores",
            "Scores over the number of prototypes: means over seeds, bands of one standard deviation (Figure 2).",
            (width, 7.4),
            lambda figure: _draw(figure, columns, SCORES),
        ),
        draw_figure(
            "prototypes_seconds",
            "CPU seconds of a fit over the number of prototypes, affinity included (Figure 3).",
            (width, 3.4),
            lambda figure: _draw(figure, columns, seconds),
        ),
        *_count_leads(frame),
        *(_table(name, part) for name, part in columns.items()),
    ]


def _draw(figure: Figure, columns: dict[str, pd.DataFrame], scores: dict[str, str]) -> None:
    axes = draw_scores(figure, columns, scores, "n_prototypes")
    for ax in axes[-1]:
        ax.set(xlabel="prototypes m", xticks=sorted({m for part in columns.values() for m in part["n_prototypes"]}))
    # Seconds span orders of magnitude, scores do not.
    if "cpu_seconds" in scores:
        for ax in axes.ravel():
            ax.set_yscale("log")


def _count_leads(frame: pd.DataFrame) -> list[Block]:
    """Count the points at which SDR has the best mean."""
    # Means of every method at each point, methods as columns.
    means = frame.groupby(["data", "n_prototypes", "method"])[list(SCORES)].mean().unstack("method")
    # The claim is about supervision: variants of SDR do not compete with it.
    others = [method for method in dict.fromkeys(frame["method"]) if not method.startswith("SDR")]
    found: list[Block] = []
    for ours in [name for name in OURS[:2] if name in set(frame["method"]) and others]:
        # A lead counts only against the best of the others; NaN scores are left out.
        gaps = pd.concat([means[score][ours] - means[score][others].max(axis=1) for score in SCORES]).dropna()
        if len(gaps):
            found.append(
                Text(
                    f"*{ours}* has a higher mean than every method without supervision at {(gaps > 0).sum()} of "
                    f"{len(gaps)} points (data set, score, number of prototypes); the median gap is "
                    f"{gaps.median():.1f}."
                )
            )
    return found


def _table(name: str, part: pd.DataFrame) -> Table:
    columns = {column: title for column, title in COLUMNS.items() if column in part}
    rows = [
        {"Method": str(method), "m": str(m)}
        | {title: format_mean(own[column].dropna().to_numpy(float)) for column, title in columns.items()}
        for (method, m), own in part.groupby(["method", "n_prototypes"], sort=False)
    ]
    return Table(f"{name}: means ± standard deviations over seeds", pd.DataFrame(rows))


EXPERIMENT = Experiment(
    name="prototypes",
    title="Reductions: scores and runtimes over the number of prototypes",
    paper="Figures 2 and 3",
    kind="reduction",
    datasets=("coil20", "fashion", "snareseq"),
    task="classification",
    methods=(*OURS, "DistR", "Cluster-then-DR", "DR-then-Cluster"),
    grid={"n_prototypes": (20, 60, 100, 140, 180)},
    quick_grid={"n_prototypes": (10, 30)},
    skips=lambda data, method: method == "SDR, eta=n" and data in ("coil20", "snareseq"),  # see NOTES
    run=run,
    report=report,
    notes=NOTES,
)
