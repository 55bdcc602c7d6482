"""Warnings about a fit that is not quite what was asked for."""

from __future__ import annotations

from typing import Any

from distreduce._utils.warnings import warn_user
from distreduce.exceptions import InterruptedFitWarning, RolledBackWarning, SolverConvergenceWarning
from distreduce.solver.result import Reduction


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
