"""Shapes of marks for more classes than there are safe colours, the same in plots and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array

if TYPE_CHECKING:
    from matplotlib.path import Path

Shapes = NDArray[np.intp]


def _regular(corners: int, turn: float, inner: float = 1.0) -> Array:
    """Return corners on a circle, the first at `turn` quarters; every second one at radius `inner` makes a star."""
    angle = np.pi / 2 * turn + 2 * np.pi * np.arange(corners) / corners
    radius = np.where(np.arange(corners) % 2, inner, 1.0)
    return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def _cross(arm: float) -> Array:
    quarter = np.array([[1.0, -arm], [1.0, arm], [arm, arm]])
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.concatenate([quarter @ np.linalg.matrix_power(turn, k) for k in range(4)])


def _scale_to_disc(corners: Array) -> Array:
    """Scale to the area of the unit disc, because the area of a mark shows a weight whatever its shape."""
    x, y = corners.T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    return np.asarray(corners * np.sqrt(np.pi / area))


# Corners with y upwards; None is the disc.
SHAPES: tuple[Array | None, ...] = (
    None,
    _scale_to_disc(_regular(4, 0.5)),
    _scale_to_disc(_regular(3, 1.0)),
    _scale_to_disc(_regular(4, 1.0) * [0.75, 1.0]),
    _scale_to_disc(_cross(0.36)),
    _scale_to_disc(_regular(10, 1.0, 0.45)),
)


def marker_path(shape: int) -> Path:
    """Return a shape in the units of matplotlib, where the disc has radius one half."""
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    # A closed path repeats its first corner; matplotlib ignores the coordinates of the last.
    corners = SHAPES[shape]
    if corners is None:
        return Affine2D().scale(0.5).transform_path(Path.unit_circle())
    return Path(np.r_[corners, corners[:1]] / 2, closed=True)
