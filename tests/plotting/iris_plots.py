"""Iris with labels and with numbers, and what the tests of plots look at."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]
LENGTHS = X[:, 2] + 0.5  # a continuous target that X knows


def axes():
    return Figure(layout="constrained").subplots()


def discs(ax):
    return ax.collections[-1]
