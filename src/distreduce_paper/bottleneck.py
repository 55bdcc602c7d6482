"""FGW-only against SDR: supervision through the coupling alone does not reach the embedding."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from distreduce import SDR
from distreduce._utils.typing import Array
from distreduce.dependence import cka
from distreduce.exceptions import SolverConvergenceWarning
from distreduce.kernels import sq_distances
from distreduce_paper import problems
from distreduce_paper._reductions import fitted, prototype_panels, rounded, rounded_list
from distreduce_paper.blocks import Block, Figure, Text
from distreduce_paper.cell import Cell
from distreduce_paper.comparison import comparison_tables
from distreduce_paper.drawing import drawn, legend, style_of
from distreduce_paper.experiment import Experiment
from distreduce_paper.paper import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ORIGINAL = "Original data"

STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the first embedding step

NOTES = """\
FGW-only is SDR with η = 0: targets act through the coupling alone. *Original data* is the CKA of exp(−|x − \
x'|²/median squared distance), the kernel of SDR's map, with the classes; of the kernels tried on the scaled inputs \
(RBF and RQ of length one and of the median distance, linear; centred or not) it comes closest to the paper's 0.48 \
and 0.45. CKA is taken between the prototypes and their mean targets, every used prototype counting alike; in the \
curves of the paper's algorithm it is the paper's own, of T'K_Y T. Inner loops are shown before the map moves the \
prototypes."""


def run(cell: Cell) -> dict[str, Any]:
    """Scores of one reduction and the CKA of the data themselves; curves and prototypes of the first seed."""
    n_prototypes = 30 if cell.quick else 200
    model, results = fitted(cell, n_prototypes)
    X, y = problems.whole(cell.data, cell.seed, quick=cell.quick)
    results["original_cka"] = rounded(original_cka(X, y))
    if isinstance(model, SDR):
        results["own_cka"] = rounded(model.history_["cka"].iloc[-1])
    if cell.seed == 0:
        results |= _prototypes(model, y)
        if isinstance(model, SDR):
            results["outer_cka"] = rounded_list(model.history_["cka"])
            results["inner_cka"] = _inner_curve(cell, n_prototypes)
    return results


def original_cka(X: Array, y: Array) -> float:
    """CKA of exp(−|x − x'|²/median squared distance) with the delta kernel of the classes."""
    distances = sq_distances(X)
    median = np.median(distances[np.triu_indices(len(X), 1)])
    return cka(np.exp(-distances / median), (y[:, None] == y[None, :]).astype(float))


def _inner_curve(cell: Cell, n_prototypes: int) -> list[float]:
    """CKA after so many STEPS on the initial coupling. The optimisers have no chance in them: prefixes agree.

    The paper's relaxation towards the map comes after its inner loop, and is left out here.
    """
    steps = STEPS[:5] if cell.quick else STEPS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)  # to stop early is the purpose
        fits = [fitted(cell, n_prototypes, max_iter=0, max_inner_iter=step, beta=0.0)[0] for step in steps]
    return rounded_list(model.history_["cka"].iloc[-1] for model in fits)


def _prototypes(model: Any, y: Array) -> dict[str, Any]:
    """Places and weights of the used prototypes, and the class that weighs most in each."""
    used = np.flatnonzero(model.prototype_weights_)
    classes, codes = np.unique(y, return_inverse=True)
    mass = np.asarray(model.coupling_.T @ np.eye(len(classes))[codes])[used]
    return {
        "first": rounded_list(model.prototypes_[used, 0]),
        "second": rounded_list(model.prototypes_[used, 1]),
        "weight": rounded_list(model.prototype_weights_[used]),
        "heaviest": [int(code) for code in mass.argmax(axis=1)],
    }


def report(frame: pd.DataFrame) -> list[Block]:
    """The table, the curves and the prototypes."""
    blocks: list[Block] = [Text(NOTES)]
    if frame.empty:
        return blocks
    metrics = {"cka": "cka", "silhouette": "silhouette"}
    blocks += comparison_tables(_with_original(frame), "bottleneck", metrics, _paper_row, reason=_reason)
    blocks += _own_measure(frame)
    first = frame[(frame["seed"] == 0) & frame["first"].notna()] if "first" in frame else frame.iloc[:0]
    return [*blocks, *_figures(first)] if len(first) else blocks


def _own_measure(frame: pd.DataFrame) -> list[Block]:
    """What the paper's algorithm says of itself."""
    own = frame[frame["method"] == "SDR, paper's algorithm"] if "own_cka" in frame else frame.iloc[:0]
    if own.empty:
        return []
    means = own.groupby("data", sort=False)["own_cka"].mean()
    found = " and ".join(f"{mean:.2f} on {label(str(name))}" for name, mean in means.items())
    return [Text(f"By its own measure, with T'K_Y T, the paper's algorithm reaches a CKA of {found}.")]


def _with_original(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the data themselves as a further method, the first of each data set."""
    original = frame.drop_duplicates(["data", "seed"]).assign(
        method=ORIGINAL, cka=lambda rows: rows["original_cka"], silhouette=np.nan
    )
    return pd.concat([original, frame], ignore_index=True)


def _paper_row(method: str) -> str | None:
    """The data themselves are a landmark, which nobody can be better or worse at."""
    return "SDR" if method.startswith("SDR") else method if method == "FGW-only" else None


def _reason(method: str, data: str) -> str | None:
    if method == "SDR, paper's algorithm":
        return (
            "It aligns with T'K_Y T, in which heavy prototypes drown the light ones, and leaves most prototypes empty: "
            "a class with one has a silhouette of zero."
        )
    return None


def _figures(first: pd.DataFrame) -> list[Figure]:
    columns, rows = first["method"].nunique(), first["data"].nunique()
    prototypes = drawn(
        "bottleneck_prototypes",
        "Prototypes of the first seed, coloured by their heaviest class; areas follow the weights.",
        (0.3 + 2.8 * columns, 0.3 + 2.8 * rows),
        lambda figure: prototype_panels(figure, first),
    )
    if "inner_cka" not in first:
        return [prototypes]
    traced = first[first["inner_cka"].notna()]
    curves = drawn(
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
            look = style_of(row["method"])
            inner.plot(STEPS[: len(row["inner_cka"])], row["inner_cka"], label=row["method"], **look)
            outer.plot(range(len(row["outer_cka"])), row["outer_cka"], **look)
        for ax in (inner, outer):
            ax.axhline(own["original_cka"].iloc[0], color="#999999", linestyle=":", linewidth=1.0, label=ORIGINAL)
        inner.set(title=label(name), xscale="log", xlabel="optimiser steps in the first inner loop")
        outer.set(xlabel="outer iteration", ylim=(0.0, 1.02))
        outer.xaxis.get_major_locator().set_params(integer=True)
    for ax in axes[:, 0]:
        ax.set_ylabel("CKA")
    legend(figure)


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
)
