"""Plots of a fitted reduction and of the calibration of predictions: they take and return matplotlib axes.

matplotlib is imported when a plot is drawn, not with the package, and its global settings are never changed.
"""

from distreduce.plotting.calibration import plot_calibration
from distreduce.plotting.coupling import plot_coupling
from distreduce.plotting.embedding import plot_embedding, plot_prototypes
from distreduce.plotting.history import plot_choice, plot_history

__all__ = ["plot_calibration", "plot_choice", "plot_coupling", "plot_embedding", "plot_history", "plot_prototypes"]
