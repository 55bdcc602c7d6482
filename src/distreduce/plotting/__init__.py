"""Pictures of a fitted reduction and of the calibration of predictions: matplotlib axes in, matplotlib axes out."""

from distreduce.plotting._plots import plot_calibration, plot_coupling, plot_embedding, plot_history, plot_prototypes

__all__ = ["plot_calibration", "plot_coupling", "plot_embedding", "plot_history", "plot_prototypes"]
