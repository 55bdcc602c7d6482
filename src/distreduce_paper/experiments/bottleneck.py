"""FGW-only against SDR: supervision through the coupling alone does not reach the embedding."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from distreduce import SDR
from distreduce.dependence import cka
from distreduce.exceptions import SolverConvergenceWarning
from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._reductions import draw_prototypes, fit_reduction, round_digits, round_list
from distreduce_paper.problems import Array, load_whole
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block, Figure, Text
from distreduce_paper.report.comparison import comparison_tables
from distreduce_paper.report.drawing import add_legend, draw_figure, method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ORIGINAL = "Original data"
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the first embedding step
NOTES = """\
FGW-only is SDR with η = 0: targets act through the coupling alone. *Original data* is the CKA of exp(−|x − \
x'|²/median squared distance), the kernel of SDR's map, with the classes. Of the kernels tried on the scaled inputs \
(RBF and RQ of length one and of the median distance, linear; centred or not) it comes closest to the paper's 0.48 \
and 0.45. CKA compares the prototypes with their mean targets, and all used prototypes have equal weight. The curves \
of the paper's algorithm show the paper's own CKA, of T'K_Y T. Inner loops are shown before the map moves the \
prototypes."""


def run(cell: Cell) -> dict[str, Any]:
    """Return the scores of one reduction and the CKA of the data; for the first seed also curves and prototypes."""
    n_prototypes = 30 if cell.quick else 200
    model, results = fit_reduction(cell, n_prototypes)
    X, y = load_whole(cell.data, cell.seed, quick=cell.quick)
    results["original_cka"] = round_digits(original_cka(X, y))
    if isinstance(model, SDR):
        # The CKA that the fit itself maximised, which may be in another form than the score.
        results["own_cka"] = round_digits(model.history_["cka"].iloc[-1])
    if cell.seed == 0:  # figures show one seed, and files stay small
        results |= _describe_prototypes(model, y)
        if isinstance(model, SDR):
            results["outer_cka"] = round_list(model.history_["cka"])
            results["inner_cka"] = _trace_inner_loop(cell, n_prototypes)
    return results


def original_cka(X: Array, y: Array) -> float:
    """Return the CKA of exp(−|x − x'|²/median squared distance) with the delta kernel of the classes."""
    distances = pdist(X, "sqeuclidean")
    kernel = np.exp(-squareform(distances) / np.median(distances))
    return cka(kernel, (y[:, None] == y[None, :]).astype(float))


def _trace_inner_loop(cell: Cell, n_prototypes: int) -> list[float]:
    """Return the CKA after each number of STEPS on the initial coupling; the optimizers are deterministic.

    The paper's relaxation towards the map comes after its inner loop, and is left out here.
    """
    steps = STEPS[:5] if cell.quick else STEPS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)  # stopping early is the purpose
        # One fit per number of steps, because the history has outer iterations only.
        fits = [fit_reduction(cell, n_prototypes, max_iter=0, max_inner_iter=step, beta=0.0)[0] for step in steps]
    return round_list(model.history_["cka"].iloc[-1] for model in fits)


def _describe_prototypes(model: Any, y: Array) -> dict[str, Any]:
    """Return places and weights of the used prototypes, and the heaviest class of each."""
    used = np.flatnonzero(model.prototype_weights_)
    classes, codes = np.unique(y, return_inverse=True)
    mass = np.asarray(model.coupling_.T @ np.eye(len(classes))[codes])[used]
    return {
        "first": round_list(model.prototypes_[used, 0]),
        "second": round_list(model.prototypes_[used, 1]),
        "weight": round_list(model.prototype_weights_[used]),
        "heaviest": [int(code) for code in mass.argmax(axis=1)],
    }


def report(frame: pd.DataFrame) -> list[Block]:
    """Show the table, the curves and the prototypes."""
    metrics = {"cka": "cka", "silhouette": "silhouette"}
    # Cells without prototypes (other seeds, failed fits) cannot be drawn.
    first = frame[(frame["seed"] == 0) & frame["first"].notna()] if "first" in frame else frame.iloc[:0]
    return [
        *comparison_tables(_add_original(frame), "bottleneck", metrics, _paper_row, reason=_reason),
        *_report_own_cka(frame),
        *(_figures(first) if len(first) else []),
    ]


def _report_own_cka(frame: pd.DataFrame) -> list[Block]:
    """Report the CKA that the paper's algorithm maximizes."""
    own = frame[frame["method"] == "SDR, paper's algorithm"] if "own_cka" in frame else frame.iloc[:0]
    if own.empty:
        return []
    means = own.groupby("data", sort=False)["own_cka"].mean()
    values = " and ".join(f"{mean:.2f} on {label(str(name))}" for name, mean in means.items())
    return [Text(f"By its own measure, with T'K_Y T, the paper's algorithm reaches a CKA of {values}.")]


def _add_original(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the original data as a further method, the first of each data set."""
    # The CKA of the data is in every cell: take one per seed.
    original = frame.drop_duplicates(["data", "seed"]).assign(
        method=ORIGINAL, cka=lambda rows: rows["original_cka"], silhouette=np.nan
    )
    return pd.concat([original, frame], ignore_index=True)


def _paper_row(method: str) -> str | None:
    """Return the row of the paper; the original data are a reference, not a method to compare."""
    return "SDR" if method.startswith("SDR") else method if method == "FGW-only" else None


def _reason(method: str, data: str) -> str | None:
    if method == "SDR, paper's algorithm":
        return (
            "It aligns with T'K_Y T, in which heavy prototypes drown the light ones, and leaves most prototypes empty: "
            "a class with a single prototype has a silhouette of zero."
        )
    return None


def _figures(first: pd.DataFrame) -> list[Figure]:
    columns, rows = first["method"].nunique(), first["data"].nunique()
    prototypes = draw_figure(
        "bottleneck_prototypes",
        "Prototypes of the first seed, coloured by their heaviest class; areas follow the weights.",
        (0.3 + 2.8 * columns, 0.3 + 2.8 * rows),
        lambda figure: draw_prototypes(figure, first),
    )
    if "inner_cka" not in first:
        return [prototypes]
    # Methods of plugins need not be SDR, and then have no curves.
    traced = first[first["inner_cka"].notna()]
    curves = draw_figure(
        "bottleneck_curves",
        "CKA of the prototypes with their targets over the steps of the first inner loop (above) and over the outer "
        "iterations (below); first seed.",
        (1.2 + 3.4 * traced["data"].nunique(), 5.6),
        lambda figure: _draw_curves(figure, traced),
    )
    return [curves, prototypes]


def _draw_curves(figure: Drawing, traced: pd.DataFrame) -> None:
    names = list(dict.fromkeys(traced["data"]))
    axes = figure.subplots(2, len(names), squeeze=False, sharey=True)
    for (inner, outer), name in zip(axes.T, names, strict=True):
        own = traced[traced["data"] == name]
        for _, row in own.iterrows():
            style = method_style(row["method"])
            inner.plot(STEPS[: len(row["inner_cka"])], row["inner_cka"], label=row["method"], **style)
            outer.plot(range(len(row["outer_cka"])), row["outer_cka"], **style)
        for ax in (inner, outer):
            ax.axhline(own["original_cka"].iloc[0], color="#999999", linestyle=":", linewidth=1.0, label=ORIGINAL)
        inner.set(title=label(name), xscale="log", xlabel="optimizer steps in the first inner loop")
        outer.set(xlabel="outer iteration", ylim=(0.0, 1.02))
        outer.xaxis.get_major_locator().set_params(integer=True)
    for ax in axes[:, 0]:
        ax.set_ylabel("CKA")
    add_legend(figure)


EXPERIMENT = Experiment(
    name="bottleneck",
    title="The supervision bottleneck: FGW alone against SDR",
    paper="the table, the CKA curves and the embeddings of the appendix on the supervision bottleneck (m = 200)",
    kind="reduction",
    datasets=("coil20", "snareseq"),
    task="classification",
    methods=("SDR", "SDR, paper's algorithm", "FGW-only"),
    run=run,
    report=report,
    notes=NOTES,
)
