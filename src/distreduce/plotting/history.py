"""The course of a fit over the outer iterations, and how the number of prototypes was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from distreduce._utils.typing import Index
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError
from distreduce.plotting.axes import check_reduction, draw_legend, get_axes
from distreduce.plotting.palette import OKABE_ITO, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERMS = ("objective", "supervision", "gromov_wasserstein", "dependence", "projection")


def plot_history(model: BaseReduction, ax: Axes | None = None) -> Axes:
    """Draw the objective and its terms over the outer iterations, as change since the first, and the CKA on the right.

    Parameters
    ----------
    model : SDR or DistR
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        The axes of the terms. If the fit has a CKA, its axes are the last of the same figure.
    """
    check_reduction(model)
    history, ax = model.history_, get_axes(ax)
    draw_terms(ax, history)
    handles = ax.get_lines()
    if history["cka"].notna().any():
        # The CKA is between 0 and 1 and needs its own axis beside changes of the objective.
        right = ax.twinx()
        draw_cka(right, history, linestyle="--", marker="s", markersize=3, color=UNKNOWN)
        right.get_lines()[0].set_label(f"CKA, right (ends at {history['cka'].iloc[-1]:.3f})")
        handles += right.get_lines()
    draw_legend(ax, handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="small")
    return ax


def draw_terms(ax: Axes, history: pd.DataFrame) -> None:
    """Draw the objective (black) and its terms that are not zero, labelled with the values they end at."""
    # As changes: the terms differ by orders of magnitude, and only their course matters here.
    for name, colour in zip(TERMS, (OKABE_ITO[-1], *OKABE_ITO), strict=False):
        values = history[name].to_numpy()
        if values.any():  # DistR has no supervision
            label = f"{name.replace('_', '-')} (ends at {values[-1]:.4g})"
            ax.plot(_count(history), values - values[0], ".-", color=colour, label=label)
    ax.set_ylabel("change since iteration 1")
    _label_iterations(ax)


def draw_cka(ax: Axes, history: pd.DataFrame, **style: Any) -> None:
    """Draw the dependence (CKA) between prototypes and target."""
    known = history["cka"].notna().to_numpy()
    ax.plot(_count(history)[known], history["cka"].to_numpy()[known], **style)
    ax.set(ylabel="CKA", ylim=(min(0.0, history["cka"].min()), 1.02))
    _label_iterations(ax)


def _count(history: pd.DataFrame) -> Index:
    """Return the outer iterations as people count them, so that the last is ``n_iter_``."""
    return np.arange(1, len(history) + 1)


def _label_iterations(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("outer iteration")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def plot_choice(model: Any, *, ax: Any = None) -> Axes:
    """Draw the left-out error over the number of prototypes, and the number that was chosen.

    Parameters
    ----------
    model : SDR
        Fitted with ``n_prototypes="auto"``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    check_reduction(model)
    if not hasattr(model, "prototype_choice_"):
        raise InvalidInputError("plot_choice needs a model fitted with n_prototypes='auto'.")
    table = model.prototype_choice_
    ax = get_axes(ax)
    ax.errorbar(table["n_prototypes"], table["error"], table["standard_error"], fmt="o-", color="0.35", capsize=3)
    best, chosen = table.loc[table["error"].idxmin()], table[table["chosen"]].iloc[0]
    ax.axhline(best["error"] + best["standard_error"], color="0.6", ls=":", label="one standard error above the best")
    label = f"chosen: {chosen['n_prototypes']}"
    ax.plot(chosen["n_prototypes"], chosen["error"], "o", ms=11, color=OKABE_ITO[0], label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(table["n_prototypes"], [str(m) for m in table["n_prototypes"]])
    ax.set(xlabel="prototypes", ylabel="error of left-out targets (1: their mean)")
    draw_legend(ax)
    return ax
