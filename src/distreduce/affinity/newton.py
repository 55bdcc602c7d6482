"""Newton's method on the dual of the symmetric entropic affinity, without a step size to choose.

What makes it safe far from the solution:

- Newton is applied to the equations log r_i = 0 and H(P_i / r_i) = log ξ instead of r_i = 1 and H_i = log ξ. The matrix
  is the same, only the right-hand side differs, and rows of very small or large mass need far fewer steps.
- A step moves log γ_i and ν_i = μ_i/γ_i by bounded amounts, and a row that jumps across its solution to a residual as
  large narrows its own bound: one difficult row does not slow the others down.
- A step has to lower the convex −g, or the sum of squared residuals. When it does neither, the Hessian is damped by its
  diagonal blocks and the plain gradient used: with enough damping every row descends on its own.

Its linear systems are a signless Laplacian of 2×2 blocks, solved in a box. Scaled by its diagonal blocks the Hessian
has its eigenvalues in [0, 2], almost all of them near 1 or 2, so that a few conjugate-gradient products are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distreduce._utils.typing import Array
from distreduce.affinity.dual import ConcaveDual, DualPoint

# Curvature in γ given to every row, relative to w_i/γ_i: a row that lost all its neighbours has none of its own.
_RIDGE = 1e-8
_MAX_PRODUCTS = 30  # of one step, which is then taken as far as it has been solved


@dataclass(frozen=True)
class NewtonSystem:
    """Hessian of −g plus ``damping`` times its diagonal blocks, acting on arrays (dμ, dγ) of shape (2, n)."""

    dual: ConcaveDual
    point: DualPoint
    damping: float

    def product(self, direction: Array) -> Array:
        """The matrix times ``direction``: one pass over the pairs."""
        mu_mu, mu_gamma, gamma_gamma = self.damping * self.point.curvature
        ridge = _RIDGE * self.dual.weights / self.point.gamma
        d_mu, d_gamma = direction
        local = np.array([mu_mu * d_mu + mu_gamma * d_gamma, mu_gamma * d_mu + (gamma_gamma + ridge) * d_gamma])
        return self.dual.hessian_product(self.point, direction) + local

    def precondition(self, target: Array, free: Array) -> Array:
        """Solve the 2×2 block of each row, or its first equation alone where γ is not free."""
        mu_mu, mu_gamma, gamma_gamma = (1.0 + self.damping) * self.point.curvature
        gamma_gamma = gamma_gamma + _RIDGE * self.dual.weights / self.point.gamma
        # A row that is uniform over its support has a singular block; the bound keeps its solution finite.
        determinant = np.maximum(mu_mu * gamma_gamma - mu_gamma**2, 1e-14 * mu_mu * gamma_gamma)
        # Cramer's rule, for all rows at once; of a row whose weight is next to nothing, 0/0 ends the iteration.
        with np.errstate(divide="ignore", invalid="ignore"):
            d_mu = np.where(free, (gamma_gamma * target[0] - mu_gamma * target[1]) / determinant, target[0] / mu_mu)
            d_gamma = np.where(free, (mu_mu * target[1] - mu_gamma * target[0]) / determinant, 0.0)
        return np.array([d_mu, d_gamma])


def conjugate_gradient(system: NewtonSystem, target: Array, free: Array, precision: float) -> Array:
    """Solution of the system for the free unknowns (every dμ, and dγ where ``free``); the others are zero."""
    solution = np.zeros_like(target)
    # Start: the residual of zero, without the equations of γ that are held.
    residual = target * np.array([np.ones_like(free), free])
    direction = preconditioned = system.precondition(residual, free)
    norm = start = float(np.vdot(residual, preconditioned))
    for _ in range(_MAX_PRODUCTS):
        # Judged in the norm of the preconditioner, which is known anyway.
        if norm <= precision**2 * start:
            break
        image = system.product(direction)
        image[1] *= free  # held γ have no equation
        length = norm / float(np.vdot(direction, image))
        solution = solution + length * direction
        residual = residual - length * image
        preconditioned = system.precondition(residual, free)
        previous, norm = norm, float(np.vdot(residual, preconditioned))
        direction = preconditioned + (norm / previous) * direction
    return solution


def solve_in_box(system: NewtonSystem, target: Array, free: Array, box: tuple[Array, Array], precision: float) -> Array:
    """Solution (dμ, dγ) with dγ inside the box: unknowns that leave it are put on its border and the rest solved again.

    Merely clipping the solution of the free system would leave the other rows with steps that rely on moves which do
    not happen: next to slack rows that is not even a direction of descent.
    """
    step = conjugate_gradient(system, target, free, precision)
    inside = np.clip(step[1], *box)
    outside = free & (inside != step[1])
    if outside.any():
        # Second solve: the unknowns that left the box are constants on its border.
        fixed = np.array([np.zeros_like(inside), np.where(outside, inside, 0.0)])
        step = fixed + conjugate_gradient(system, target - system.product(fixed), free & ~outside, precision)
        step[1] = np.clip(step[1], *box)  # those that leave it only now are clipped: no third solve
    return step


# Bounds of one step of a row: of log γ, of ν, and of μ in units of its natural width.
_MIN_LOG_GAMMA_STEP, _MAX_LOG_GAMMA_STEP = 0.1, 2.0
_MAX_NU_STEP, _MAX_MU_STEP = 1.0, 3.0
_STEP_LENGTHS = (1.0, 0.3)  # shares of the full step; if both fail, the Hessian is damped
# A step to the floor of γ ends on it but for rounding, which differs between NumPys.
_AT_FLOOR = 1.0 + 1e-9
# Two samples far from all others have only the sum of their γ determined: damped by this much, a step leaves the rest.
_SLIGHT_DAMPING = 1e-4
# Damping once the slight one has failed; beyond the largest the method gives up.
_FIRST_DAMPING, _DAMPING_FACTOR, _MAX_DAMPING = 0.3, 8.0, 1e6
# Iterations in which −g may rise along a step that its slopes call a descent. Later, two such steps could move a row
# back and forth forever, up along one and down along the other.
_ITERATIONS_TO_RISE = 25


@dataclass(frozen=True)
class Residuals:
    """How far the rows of a point are from optimal.

    ``log_mass`` is log r_i and ``excess`` is H(P_i / r_i) − log ξ, zero where γ_i is at its floor and the constraint
    is slack (``free`` is False there). ``kkt`` is the largest violation of the optimality conditions: |r_i − 1|,
    log ξ − H_i, and min(γ_i / scale_i, H_i − log ξ), the complementarity of γ_i and the slack. ``merit`` is the sum
    of their squares over the rows.
    """

    log_mass: Array
    excess: Array
    free: Array
    merit: float
    kkt: float


def solve(
    dual: ConcaveDual,
    gamma: Array,
    nu: Array,
    scale: Array,
    tol: float,
    max_iter: int,
    least: float = 0.0,
    most_passes: float = np.inf,
) -> tuple[DualPoint, float]:
    """Minimise −g over γ ≥ floor, from γ and ν = μ/γ, and return the last point with its ``kkt`` (see `Residuals`).

    ``scale`` is the natural size of each γ_i; the floor is ``least`` times the scale, or next to nothing. No iteration
    begins after ``most_passes`` passes.
    """
    # A γ of a tenth of the tolerance is as good as zero for the conditions, and keeps P defined among duplicates.
    floor = max(least, 0.1 * tol) * scale
    gamma = np.maximum(gamma, floor)
    point = dual.evaluate(gamma, gamma * nu)
    residuals = measure(dual, point, floor, scale)
    radius = np.full(len(nu), _MAX_LOG_GAMMA_STEP)
    best_merit, damping = residuals.merit, 0.0
    for iteration in range(max_iter):
        if residuals.kkt <= tol or damping > _MAX_DAMPING or dual.n_evaluations >= most_passes:
            break
        # Bounded bandwidths make a rougher solution as good: fewer products of the last steps.
        forcing = max(residuals.kkt ** (0.5 if least > 0.0 else 1.0), 0.1 * tol / residuals.kkt)
        step = newton_step(NewtonSystem(dual, point, damping), residuals, floor, radius, min(0.3, forcing))
        may_rise = iteration < _ITERATIONS_TO_RISE
        trial = search(dual, point, step, floor, scale, best_merit, bounded=least > 0.0, may_rise=may_rise)
        if trial is None:
            # Neither −g nor the residuals fell: the same point again, with more damping.
            damping = max(_DAMPING_FACTOR * damping, _FIRST_DAMPING) if damping > 0.0 else _SLIGHT_DAMPING
            continue
        # After a success damping falls, and is switched off below its first value.
        damping = damping / _DAMPING_FACTOR if damping > _FIRST_DAMPING else 0.0
        previous, before = point, residuals
        point, residuals = trial
        radius = next_radius(radius, np.abs(np.log(point.gamma / previous.gamma)), before, residuals)
        # The best so far, not the last: a step that was taken because −g fell may raise the merit.
        best_merit = min(best_merit, residuals.merit)
    return point, residuals.kkt


def balance(dual: ConcaveDual, point: DualPoint, tol: float, max_iter: int) -> DualPoint:
    """Bring the row masses to one within ``tol`` by μ alone, γ held: symmetric Sinkhorn steps, each row by half."""
    for _ in range(max_iter):
        if np.abs(point.mass - 1.0).max() <= tol:
            break
        # By half, because both ends of a pair correct its affinity.
        point = dual.evaluate(point.gamma, point.mu - 0.5 * width(dual, point) * np.log(point.mass))
    return point


def measure(dual: ConcaveDual, point: DualPoint, floor: Array, scale: Array) -> Residuals:
    """Residuals of a point; see ``Residuals``."""
    log_mass = np.log(point.mass)
    excess = point.entropy / point.mass + log_mass - dual.log_perplexity
    free = (point.gamma > floor) | (excess < 0.0)  # at its floor, γ can only rise
    excess = np.where(free, excess, 0.0)
    relative = np.where(point.gamma > floor, point.gamma / scale, 0.0)
    # The merit judges rows scaled to mass one, as the equations do; kkt judges them as they are.
    merit = float(dual.weights @ (log_mass**2 + np.maximum(-excess, np.minimum(relative, excess)) ** 2))
    slack = point.entropy - dual.log_perplexity
    violation = np.maximum(-slack, np.minimum(relative, slack))
    return Residuals(log_mass, excess, free, merit, float(np.maximum(np.abs(point.mass - 1.0), violation).max()))


def gradient(dual: ConcaveDual, point: DualPoint) -> Array:
    """Gradient of −g along (μ, γ): w_i (r_i − 1) and w_i (H_i + r_i − log ξ − 1)."""
    mass, entropy = point.mass - 1.0, point.entropy - dual.log_perplexity
    return dual.weights * np.array([mass, entropy + mass])


def newton_step(system: NewtonSystem, residuals: Residuals, floor: Array, radius: Array, precision: float) -> Array:
    """(dμ, dγ) that solves the linearised equations, to a precision that follows the residual.

    Linearised, log r = 0 asks for dr = −r log r and H(P/r) = log ξ for dH = −r·excess + (H/r − 1) dr, and the Hessian
    of −g maps (dμ, dγ) to w (dr, dH + dr).
    """
    point, dual = system.point, system.dual
    d_mass = -point.mass * residuals.log_mass
    d_entropy = -point.mass * residuals.excess + (point.entropy / point.mass - 1.0) * d_mass
    linearised = dual.weights * np.array([d_mass, d_entropy + d_mass])
    # Damped more than slightly, follow the gradient: every row then descends on its own.
    target = linearised if system.damping <= _SLIGHT_DAMPING else -gradient(dual, point)
    # The radius of log γ, and the floor, as bounds of dγ.
    box = np.maximum(point.gamma * np.expm1(-radius), floor - point.gamma), point.gamma * np.expm1(radius)
    return solve_in_box(system, target, residuals.free, box, precision)


def search(
    dual: ConcaveDual, point: DualPoint, step: Array, floor: Array, scale: Array, best_merit: float, *, bounded: bool,
    may_rise: bool = True,
) -> tuple[DualPoint, Residuals] | None:  # fmt: skip
    """The first acceptable point along the step, or None.

    The path is straight in log γ, halfway γ is the geometric mean of its two ends and never negative, and in ν = μ/γ,
    or where γ is ``bounded`` away from zero in μ: the ν of a row on its way to a low floor grows beyond all steps.
    """
    nu = point.mu / point.gamma
    d_log_gamma = np.log1p(step[1] / point.gamma)
    held = (point.gamma <= floor) & (step[1] == 0.0)
    # The step of (μ, γ) as a step of ν = μ/γ, to first order.
    d_nu = np.clip((step[0] - nu * step[1]) / point.gamma, *nu_box(dual, point, held))
    far = _MAX_MU_STEP * width(dual, point)
    d_mu = np.clip(step[0], -far, far)
    for length in _STEP_LENGTHS:
        gamma = point.gamma * np.exp(length * d_log_gamma)
        gamma = np.where(gamma <= _AT_FLOOR * floor, floor, gamma)
        trial = dual.evaluate(gamma, point.mu + length * d_mu if bounded else gamma * (nu + length * d_nu))
        residuals = measure(dual, trial, floor, scale)
        # One of the two is enough: each may rise on the way to the solution.
        if residuals.merit < 0.9 * best_merit or descends(dual, point, trial, may_rise=may_rise):
            return trial, residuals
    return None


def width(dual: ConcaveDual, point: DualPoint) -> Array:
    """Natural size of a step of μ_i: the mean width of the rows on which its mass lies, r_i / Σ_j w_j P_ij/s_ij."""
    return dual.weights * point.mass / point.curvature[0]


def nu_box(dual: ConcaveDual, point: DualPoint, held: Array) -> tuple[Array, Array]:
    """Bounds of a step of ν; ``held`` are the rows that stay at the floor of γ.

    A row at the floor whose mass lies on wider rows (a sample that very many have as a neighbour) moves μ by the width
    of those: in units of its own γ_i it would take a million steps. Upwards it is bounded by its share of itself,
    w_i P_ii = w_i exp ν_i ≤ 1.
    """
    far = np.where(held, np.maximum(0.5 * width(dual, point) / point.gamma, 1.0), 1.0) * _MAX_NU_STEP
    room = -np.log(dual.weights) - point.mu / point.gamma
    return -far, np.maximum(np.minimum(far, room), _MAX_NU_STEP)


def descends(dual: ConcaveDual, point: DualPoint, trial: DualPoint, *, may_rise: bool) -> bool:
    """Whether −g is lower at ``trial``.

    Next to far outliers −g is a huge number whose last digits say nothing about the other rows. Its slopes along the
    chord at both ends do: they add the contributions of the rows that moved. But −g may rise between such slopes;
    unless it ``may_rise``, by no more than rounding.
    """
    chord = np.array([trial.mu - point.mu, trial.gamma - point.gamma])
    start, end = float(np.vdot(gradient(dual, point), chord)), float(np.vdot(gradient(dual, trial), chord))
    # Rounding of the terms that add up to −g.
    noise = 1e-13 * float(dual.weights @ (np.abs(point.mu) + point.gamma * (dual.log_perplexity + 1.0)))
    by_slopes = start < 0.0 and end <= -0.5 * start and (may_rise or trial.value <= point.value + noise)
    return by_slopes or trial.value < point.value + min(1e-4 * start, -noise)


def next_radius(radius: Array, taken: Array, before: Residuals, after: Residuals) -> Array:
    """Narrow the bound of the rows that jumped across their solution to a residual as large, widen the others."""
    jumped = np.zeros(len(radius), dtype=bool)
    for old, new in ((before.log_mass, after.log_mass), (before.excess, after.excess)):
        # The sign changed, and the residual is neither small nor clearly smaller.
        jumped |= (old * new < 0.0) & (np.abs(new) > np.maximum(0.3, 0.7 * np.abs(old)))
    # Not to zero: a row at its floor has not moved at all, and must be able to leave it.
    narrower = np.maximum(0.4 * taken, _MIN_LOG_GAMMA_STEP)
    return np.where(jumped, narrower, np.minimum(_MAX_LOG_GAMMA_STEP, 4.0 * radius))
