"""What plots share: a check of the model, axes to draw on, and a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_reduction(model: object) -> None:
    """Raise InvalidTypeError or NotFittedError unless `model` is a fitted SDR or DistR."""
    if not isinstance(model, BaseReduction):
        raise InvalidTypeError(f"model must be a fitted SDR or DistR; got {type(model).__name__}.")
    check_is_fitted(model)


def get_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # only here: pyplot chooses a backend and may open windows

    return plt.subplots(layout="constrained")[1]


def draw_legend(ax: Axes, **options: Any) -> None:
    """Draw a legend without a frame whose names are not read as mathematics: a class may be called "$5-$10"."""
    for text in ax.legend(frameon=False, **options).get_texts():
        text.set_parse_math(False)
