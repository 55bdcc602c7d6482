"""Plot how the number of prototypes was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distreduce.exceptions import InvalidInputError
from distreduce.plotting._axes import check_reduction, draw_legend, get_axes
from distreduce.plotting.palette import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        raise InvalidInputError("plot_choice needs a model fitted with n_prototypes='auto' in this process.")
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
