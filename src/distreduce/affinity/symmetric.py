"""Symmetric entropic affinity (SEA), the input affinity C_X of the paper."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.affinity._inputs import as_distances, as_weights
from distreduce.affinity.dual import Dual
from distreduce.affinity.newton import solve
from distreduce.affinity.row_entropic import row_bandwidths
from distreduce.exceptions import AffinityConvergenceWarning

# The rows' own bandwidths are only a start: a few hundredths of a nat are enough.
START_TOLERANCE = 0.03


@dataclass(frozen=True)
class AffinitySolution:
    """The dual variables γ and μ of P_ij = exp((μ_i + μ_j − 2 D_ij) / (γ_i + γ_j)), and how they were found."""

    gamma: Array
    mu: Array
    residual: float  # largest violation of the optimality conditions; see newton.Residuals
    n_evaluations: int  # passes over the pairs: evaluations of the dual and products with its Hessian
    converged: bool


@dataclass(frozen=True)
class SymmetricAffinity(AffinitySolution):
    """A symmetric entropic affinity P (n, n) in memory, with Σ_j w_j P_ij = 1."""

    matrix: Array


def symmetric_entropic_affinity(
    sq_distances: ArrayLike,
    perplexity: float,
    weights: ArrayLike | None = None,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
    overwrite: bool = False,
    workers: Workers = SERIAL,
) -> SymmetricAffinity:
    r"""Symmetric entropic affinity of weighted samples (Van Assel et al., 2023).

    minimise Σ_ij w_i w_j P_ij D_ij over P = Pᵀ with Σ_j w_j P_ij = 1 and −Σ_j w_j P_ij log P_ij ≥ log ξ in every row.

    The diagonal is part of the row, so that a sample of weight two is a sample repeated twice. A row whose entropy
    exceeds log ξ at the optimum (next to many duplicates, say) has γ_i = 0: its constraint is slack.

    Parameters
    ----------
    sq_distances : array of shape (n, n)
        Squared distances D, float32 or float64, symmetric, zero on the diagonal, on any scale.
    perplexity : float
        Perplexity ξ, between 1 and Σ_j w_j.
    weights : array of shape (n,), optional
        Weights w of the samples, as counts; ones by default.
    tol : float
        Largest violation of the optimality conditions to accept.
    max_iter : int
        Newton iterations before giving up with an ``AffinityConvergenceWarning``.
    overwrite : bool
        Write P over ``sq_distances``, when that is a writeable C-contiguous array of floats: no second n×n array.
    workers : Workers
        Threads to compute with; they do not change the result.

    Returns
    -------
    SymmetricAffinity

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6.0)
    >>> affinity = symmetric_entropic_affinity((x[:, None] - x) ** 2, perplexity=3)
    >>> affinity.converged, bool(np.allclose(affinity.matrix, affinity.matrix.T))
    (True, True)
    """
    distances = as_distances(sq_distances)
    w = as_weights(weights, len(distances))
    # Start from the bandwidths that the rows would have by themselves.
    rows = row_bandwidths(distances, perplexity, w, tol=START_TOLERANCE, workers=workers)
    # Computing in units of a typical bandwidth makes the solution exactly as good on any scale of the distances.
    unit = float(np.median(rows.scale))
    dual = Dual(w, float(np.log(perplexity)), unit, distances, workers)
    # μ_i = −γ_i log Z_i makes P_ij the geometric mean of the two rows' affinities, weighted by their bandwidths.
    solution = solve(dual, rows.gamma / unit, -rows.log_partition, rows.scale / unit, tol, max_iter)
    if not solution.converged:
        message = convergence_message(solution.kkt, tol, dual.n_evaluations)
        warnings.warn(message, AffinityConvergenceWarning, stacklevel=2)
    # An entry of P depends on its own distance only, so that P may be written over D.
    matrix = distances if overwrite and distances.flags.writeable else np.empty_like(distances)
    dual.fill(solution.point, matrix)
    point = solution.point
    return SymmetricAffinity(
        unit * point.gamma, unit * point.mu, solution.kkt, dual.n_evaluations, solution.converged, matrix
    )


def convergence_message(residual: float, tol: float, n_evaluations: int) -> str:
    """The warning when Newton's method has not reached its tolerance."""
    return (
        f"The symmetric entropic affinity stopped at a residual of {residual:.1e} (tolerance {tol:.0e}) after "
        f"{n_evaluations} passes over the pairs; raise max_iter, or tol when such a residual is good enough."
    )
