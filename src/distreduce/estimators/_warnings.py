"""Warnings about a fit that is not quite what was asked for."""

from __future__ import annotations

from typing import Any

from distreduce._utils.warnings import warn_user
from distreduce.exceptions import (
    InterruptedFitWarning,
    NoSignalWarning,
    OptimisticPictureWarning,
    RolledBackWarning,
    SolverConvergenceWarning,
)
from distreduce.solver.result import Reduction

# Accuracy, or R². With the defaults the difference was above this on 3 of 25 tables: many classes, or many features.
MUCH_BETTER = 0.2


def warn_about_picture(estimator: Any, *, has_signal: bool) -> None:
    """Warn if the targets were left out, or if the plane as fitted promises more than left-out samples keep."""
    scores = getattr(estimator, "neighbor_scores_", None)
    if not has_signal:
        message = (
            "X does not predict left-out targets better than their mean does, so y was left out of the fit: the "
            "picture shows the geometry of X alone, as DistR does. Look for missing features or a wrong scale "
            "of X; a number for eta uses y nevertheless."
        )
        warn_user(message, NoSignalWarning)
    elif scores is not None and scores["fitted"] - scores["left_out"] > MUCH_BETTER:
        measure = "accuracy" if estimator.task_ == "classification" else "R²"
        message = (
            f"The fitted plane promises more than it keeps: {measure} of 10 nearest neighbours is "
            f"{scores['fitted']:.2f} as fitted and {scores['left_out']:.2f} for left-out samples. Look at "
            "embedding_left_out_ instead of embedding_, or use the defaults for eta, map_reg and length_scale."
        )
        warn_user(message, OptimisticPictureWarning)


def warn_about_fit(estimator: Any, reduction: Reduction) -> None:
    """Warn of steps undone, an interrupt, or missing convergence. The estimator is fitted by now."""
    name, faults = type(estimator).__name__, reduction.faults
    if faults:
        more = f" ({len(faults) - 1} more like it)" if len(faults) > 1 else ""
        message = f"{name} kept the best state that it had found. {faults[0]}{more}. "
        warn_user(message + "Look for very large values in X and y, and scale them.", RolledBackWarning)
    if reduction.interrupted:
        again = "" if estimator.checkpoint is None else "; fit again to resume from its checkpoint"
        message = f"{name} was interrupted. It is fitted with the best state until then, that of outer iteration "
        warn_user(f"{message}{reduction.history[-1].iteration}{again}.", InterruptedFitWarning)
    # A callback that stops a fit, and faults, explain the missing convergence.
    elif not (reduction.converged or reduction.stopped or faults):
        last = [record.objective for record in reduction.history[-2:]]
        message = (
            f"{name} stopped after max_iter={estimator.max_iter} outer iterations; the last lowered the objective by "
            f"{last[0] - last[-1]:.3g}. Raise max_iter or max_inner_iter, or tol={estimator.tol}."
        )
        warn_user(message, SolverConvergenceWarning)
