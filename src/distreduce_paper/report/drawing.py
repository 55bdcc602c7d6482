"""Figures of the report as SVG, the same bytes from the same numbers, and the style of each method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from distreduce.plotting.axes import clean_name, draw_svg
from distreduce_paper.report.blocks import Figure as FigureBlock

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

# The longest name that a method starts with decides. Colours of Okabe and Ito, distinct for any colour vision.
FAMILIES = {
    "SDR": ("#0072B2", "o"),
    "FGW-only": ("#56B4E9", "v"),
    "DistR": ("#E69F00", "s"),
    "Cluster-then-DR": ("#009E73", "^"),
    "DR-then-Cluster": ("#CC79A7", "D"),
    "NCA": ("#E69F00", "s"),
    "KSPCA": ("#009E73", "^"),
    "UMAP": ("#CC79A7", "D"),
    "DKL": ("#D55E00", "P"),
    "DGP": ("#8C6D1F", "X"),
    "ARD GP": ("#000000", "*"),
    "PCA": ("#999999", "<"),
    "linear": ("#666666", ">"),
}
# Our rows other than the default, by what follows "SDR, " or "SDR-GP, ".
VARIANTS = {
    "embedding alone": ("#6BAED6", "8"),
    "eta=n": ("#6BAED6", "8"),
    "paper's recipe": ("#2B9EB3", "d"),
    "paper's algorithm": ("#6A51A3", "p"),
}


def draw_figure(name: str, caption: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> FigureBlock:
    """Draw a figure of `size` inches with the function `draw`, and return it as a block of the report."""
    return FigureBlock(clean_name(name), caption, draw_svg(draw, size, name=name))


def method_style(method: str) -> dict[str, str | float]:
    """Return colour, marker and line of a method: the same in every figure, dashed for variants of a method."""
    family = max((name for name in FAMILIES if method.startswith(name)), key=len, default=None)
    if family is None:
        return {"color": "#7F7F7F", "marker": "x", "linestyle": ":", "zorder": 2.0}
    if method in (family, f"{family}-GP"):
        colour, marker, line, order = *FAMILIES[family], "-", 4.0
    else:
        variant = method.partition(", ")[2] if family == "SDR" else ""
        colour, marker, line, order = *VARIANTS.get(variant, FAMILIES[family]), "--", 3.0
    return {"color": colour, "marker": marker, "linestyle": line, "zorder": order}


def add_legend(figure: Figure, columns: int = 4) -> None:
    """Add one legend below all panels, with every entry that any of them has."""
    entries: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            # Panels repeat the methods: each gets one entry.
            entries.setdefault(name, handle)
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
