"""scale.svg: seconds of a fit over the number of samples, on logarithmic axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scale_points import DENSE, PAPER, SPARSE, UMAP

from distreduce_paper.report.drawing import add_legend, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, distinct for any colour vision; ours is blue, its two stages light blue.
LOOKS: dict[str, dict[str, Any]] = {
    "SDR, sparse: whole fit": {"color": "#0072B2", "marker": "o", "linewidth": 2.2, "zorder": 5},
    "SDR, sparse: neighbours": {"color": "#56B4E9", "marker": "^", "linestyle": "--", "zorder": 4},
    "SDR, sparse: after neighbours": {"color": "#56B4E9", "marker": "s", "linestyle": ":", "zorder": 4},
    DENSE: {"color": "#000000", "marker": "D", "markersize": 5, "zorder": 6},
    PAPER: {"color": "#D55E00", "marker": "p", "markersize": 6, "zorder": 3},
    UMAP: {"color": "#CC79A7", "marker": "v", "zorder": 3},
}


def drawing(mixtures: pd.DataFrame) -> str:
    """Draw the figure and return it as SVG."""
    return draw_figure(
        "scale", "Seconds of a fit over the number of samples.", (6.8, 4.8), lambda f: draw(f, mixtures)
    ).svg


def draw(figure: Figure, mixtures: pd.DataFrame) -> None:
    """Draw one line per method, three for the sparse path; where a method stopped, its last point says why."""
    ax = figure.subplots()
    for name, (n, seconds) in series(mixtures).items():
        ax.plot(n, seconds, label=name, **LOOKS[name])
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="seconds of a fit")
    _proportional(ax, mixtures[mixtures["method"] == SPARSE].dropna(subset=["seconds"]))
    for method, own in mixtures.groupby("method"):
        _stopped(ax, str(method), own)
    ax.grid(which="minor", alpha=0.12)
    ax.margins(x=0.08)
    add_legend(figure, columns=3)


def series(mixtures: pd.DataFrame) -> dict[str, tuple[Any, Any]]:
    """Return sizes and seconds of every line that has points."""
    measured = mixtures.dropna(subset=["seconds"])
    lines = {name: measured[measured["method"] == name] for name in (DENSE, PAPER, UMAP)}
    found = {name: (own["n"], own["seconds"]) for name, own in lines.items() if not own.empty}
    sparse = measured[measured["method"] == SPARSE]
    if sparse.empty:
        return found
    # In the order of the first three entries of LOOKS.
    stages = (sparse["seconds"], sparse["seconds"] - sparse["after_seconds"], sparse["after_seconds"])
    return {name: (sparse["n"], stage) for name, stage in zip(LOOKS, stages, strict=False)} | found


def _proportional(ax: Axes, sparse: pd.DataFrame) -> None:
    """Draw a line of seconds proportional to n, below our first point."""
    if sparse["n"].nunique() > 1:
        n = np.array([sparse["n"].min(), sparse["n"].max()])
        seconds = 0.45 * sparse["after_seconds"].iloc[0] * n / n[0]  # 0.45 keeps the line clear of ours
        ax.plot(n, seconds, color="#999999", linewidth=0.9, zorder=1, label="proportional to n")


def _stopped(ax: Axes, method: str, own: pd.DataFrame) -> None:
    measured, ended = own.dropna(subset=["seconds"]), own.dropna(subset=["stopped"])
    if measured.empty or ended.empty:
        return
    last, end = measured.iloc[-1], ended.iloc[0]
    text = f"{end['stopped']}\nat n = {end['n']:,}"
    # The sparse path has three lines and is not itself a key of LOOKS.
    colour = LOOKS[method]["color"] if method in LOOKS else LOOKS["SDR, sparse: whole fit"]["color"]
    place: dict[str, Any] = {"xytext": (7, 2), "textcoords": "offset points", "va": "bottom", "fontsize": 8}
    ax.annotate(text, (last["n"], last["seconds"]), color=colour, **place)
