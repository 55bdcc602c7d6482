"""The plane that an embedding of any dimension is drawn on, in plots and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError
from distreduce.plotting.palette import Colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class View:
    """Project samples and prototypes on a plane.

    Two dimensions are drawn as they are, one dimension against the target, more than two on the first two principal
    axes of the samples, or on the two given `components`.
    """

    def __init__(self, model: BaseReduction, colours: Colours, components: tuple[int, int] | None = None) -> None:
        self.model, self.colours = model, colours
        p = model.embedding_.shape[1]
        self.line = p == 1
        names = [str(name) for name in model.get_feature_names_out()]
        self.axes: Array
        if components is None:
            self.axes, self.labels = (np.eye(p), names) if p <= 2 else self._principal_axes()
        else:
            if len(components) != 2 or not all(0 <= a < p for a in components):
                raise InvalidInputError(f"components={components} must be two dimensions among 0 … {p - 1}.")
            self.axes, self.labels = np.eye(p)[:, list(components)], [names[a] for a in components]

    def _principal_axes(self) -> tuple[Array, list[str]]:
        Z = self.model.embedding_
        _, sizes, rows = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        share = sizes**2 / (sizes**2).sum()
        return rows[:2].T, [f"principal axis {a + 1} of z ({share[a]:.0%})" for a in (0, 1)]

    def samples(self) -> Array:
        """Return the place of each sample; on a line, an unknown y is replaced by that of the sample's prototype."""
        heights = self.colours.sample_values
        if heights is not None and self.colours.prototype_values is not None:
            heights = np.where(np.isnan(heights), self.colours.prototype_values[self.model.labels_], heights)
        return self._project(self.model.embedding_, heights)

    def prototypes(self) -> Array:
        """Return the place of each prototype."""
        return self._project(self.model.prototypes_, self.colours.prototype_values)

    def _project(self, Z: Array, heights: Array | None) -> Array:
        if not self.line:
            return np.asarray(Z @ self.axes)
        return np.c_[Z[:, 0], np.zeros(len(Z)) if heights is None else heights]

    def label_axes(self, ax: Axes) -> None:
        """Set margins, labels, aspect and, for classes on a line, their names as ticks."""
        ax.margins(0.08)  # the discs are wider than the points they stand for
        ax.set_xlabel(self.labels[0])
        if not self.line:
            ax.set_ylabel(self.labels[1])
            ax.set_aspect("equal", adjustable="datalim")
        elif self.colours.classes is not None:
            names = [str(label) for label in self.colours.classes]
            ax.set_yticks(range(len(names)), names, parse_math=False)
        elif self.colours.prototype_values is not None:
            ax.set_ylabel(self.colours.name, parse_math=False)
        else:
            ax.set_yticks([])
