"""What a fit tells of itself when it is not quite what was asked for."""

from __future__ import annotations

from typing import Any

from distreduce._utils.warnings import warn_user
from distreduce.exceptions import InterruptedFitWarning, RolledBackWarning, SolverConvergenceWarning
from distreduce.solver.loop import Reduction


def tell(estimator: Any, reduction: Reduction) -> None:
    """Warn at the user's line; the estimator is fitted by now, so that a warning made an error costs nothing."""
    for category, message in _warnings(estimator, reduction):
        warn_user(message, category)


def _warnings(estimator: Any, reduction: Reduction) -> list[tuple[type[Warning], str]]:
    name, faults = type(estimator).__name__, reduction.faults
    found: list[tuple[type[Warning], str]] = []
    if faults:
        more = f" ({len(faults) - 1} more like it)" if len(faults) > 1 else ""
        message = f"{name} kept the best state that it had found. {faults[0]}{more}. "
        found.append((RolledBackWarning, message + "Look for enormous values in X and y, and scale them."))
    if reduction.interrupted:
        again = "" if estimator.checkpoint is None else "; fit again to go on from its checkpoint"
        message = f"{name} was interrupted. It is fitted with the best state until then, that of outer iteration "
        found.append((InterruptedFitWarning, f"{message}{reduction.history[-1].iteration}{again}."))
    elif not (reduction.converged or reduction.stopped or faults):
        last = [record.objective for record in reduction.history[-2:]]
        message = (
            f"{name} stopped after max_iter={estimator.max_iter} outer iterations; the last lowered the objective by "
            f"{last[0] - last[-1]:.3g}. Raise max_iter or max_inner_iter, or tol={estimator.tol}."
        )
        found.append((SolverConvergenceWarning, message))
    return found
