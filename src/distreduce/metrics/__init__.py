"""Scores of reductions, as in the DistR paper, and of predictions: accuracy, density, calibration; criticisms."""

from distreduce.dependence import cka, hsic
from distreduce.metrics.calibration import (
    calibration_curve,
    expected_calibration_error,
    interval_coverage,
    mean_absolute_calibration_error,
)
from distreduce.metrics.clustering import homogeneity, kmeans_nmi, weighted_silhouette
from distreduce.metrics.prediction import (
    accuracy,
    brier_score,
    classification_scores,
    crps,
    mean_log_likelihood,
    mean_log_probability,
    mean_squared_error,
    negative_log_likelihood,
    regression_scores,
)
from distreduce.metrics.reduction import criticisms, drift, reduction_scores

__all__ = [
    "accuracy", "brier_score", "calibration_curve", "cka", "classification_scores", "criticisms", "crps", "drift",
    "expected_calibration_error", "homogeneity", "hsic", "interval_coverage", "kmeans_nmi",
    "mean_absolute_calibration_error", "mean_log_likelihood", "mean_log_probability", "mean_squared_error",
    "negative_log_likelihood", "reduction_scores", "regression_scores", "weighted_silhouette",
]  # fmt: skip
