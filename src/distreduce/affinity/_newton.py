"""Newton's method on the dual of the symmetric entropic affinity.

The Hessian is a signless Laplacian of 2×2 blocks. Scaled by its diagonal blocks it has its eigenvalues in [0, 2] and
almost all of them near 1 or 2, so a few conjugate-gradient products solve each Newton system; there is no step size to
choose. Three things make the method safe far from the solution:

- Newton is applied to the equations log r_i = 0 and H(P_i / r_i) = log ξ instead of r_i = 1 and H_i = log ξ. The matrix
  is the same, only the right-hand side changes; a row whose mass is exp(−50) then needs one step instead of failing.
- A step moves log γ_i and ν_i = μ_i/γ_i, each by at most ``radius_i``, and a row that jumps across its solution and back
  halves its own radius: one difficult row does not hold the others back.
- A step must lower the convex −g, or the residuals' best sum of squares. The latter matters next to far outliers, where
  −g is a huge number whose last digits say nothing about the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distreduce.affinity._dual import Dual, DualPoint
from distreduce.affinity._kernels import Array

MAX_RADIUS = 2.0
import os
MODE=int(os.environ.get('MODE','0'))
_MAX_PRODUCTS = 30
_STEP_LENGTHS = (1.0, 0.3)[:int(os.environ.get('NL','2'))]
E=lambda k,d: float(os.environ.get(k,d))
DMUL=E('DMUL',8);D0=E('D0',.3);JUMP=E('JUMP',.05);NUC=E('NUC',4)
NFIX=int(E('NFIX',4))


@dataclass(frozen=True)
class Residuals:
    """How far the rows of a point are from optimal.

    ``log_mass`` is log r_i and ``excess`` is H(P_i / r_i) − log ξ, zero where γ_i is at its floor and the constraint
    is slack (``free`` is False there). ``kkt`` is the largest violation of the optimality conditions: |r_i − 1|,
    log ξ − H_i, and min(γ_i / scale_i, H_i − log ξ) for the complementarity of γ_i and the slack.
    """

    log_mass: Array
    excess: Array
    free: Array
    merit: float
    kkt: float


@dataclass(frozen=True)
class Solution:
    """The last point of the iteration and its residual."""

    point: DualPoint
    kkt: float
    converged: bool


def solve(dual: Dual, gamma: Array, nu: Array, scale: Array, tol: float, max_iter: int) -> Solution:
    """Minimise −g over γ ≥ floor, from γ and ν = μ/γ; ``scale`` is the natural size of each γ_i."""
    # A γ of a tenth of the tolerance is as good as zero for the conditions, and keeps P defined among duplicates.
    floor = 0.1 * tol * scale
    gamma = np.maximum(gamma, floor)
    point = dual.evaluate(gamma, gamma * nu)
    residuals = measure(dual, point, floor, scale)
    radius = np.full(len(nu), MAX_RADIUS)
    best_merit = residuals.merit
    damping = 0.0
    for _ in range(max_iter):
        if residuals.kkt <= tol:
            break
        step = newton_step(dual, point, residuals, floor, scale, radius, tol, damping)
        trial = search(dual, point, step, floor, scale, best_merit)
        if trial is None:
            damping = max(DMUL * damping, D0)
            if damping>1e6: break
            continue
        before, (point, after) = point, trial
        damping = damping / DMUL if damping > D0 else 0.0
        radius = next_radius(radius, np.abs(np.log(point.gamma/before.gamma)), residuals, after)
        residuals, best_merit = after, min(best_merit, after.merit)
    return Solution(point, residuals.kkt, residuals.kkt <= tol)


def measure(dual: Dual, point: DualPoint, floor: Array, scale: Array) -> Residuals:
    """Residuals of a point; see ``Residuals``."""
    log_mass = np.log(point.mass)
    excess = point.entropy / point.mass + log_mass - dual.log_perplexity
    free = (point.gamma > floor) | (excess < 0.0)
    excess = np.where(free, excess, 0.0)
    slack = point.entropy - dual.log_perplexity
    viol=np.maximum(-excess,np.minimum(point.gamma/scale,excess)) if E('VM',1) else excess
    violation = np.maximum(-slack, np.minimum(point.gamma / scale, slack))
    kkt = float(np.maximum(np.abs(point.mass - 1.0), violation).max())
    return Residuals(log_mass, excess, free, float(dual.weights @ (log_mass**2 + viol**2)), kkt)


def newton_step(dual: Dual, point: DualPoint, residuals: Residuals, floor: Array, scale, radius: Array, tol: float, damping) -> Array:
    d_mass = -point.mass * residuals.log_mass
    d_entropy = -point.mass * residuals.excess + (point.entropy / point.mass - 1.0) * d_mass
    if damping>0: d_mass=1-point.mass; d_entropy=dual.log_perplexity-point.entropy
    free=residuals.free
    target = dual.weights * np.array([d_mass, d_entropy + d_mass])
    precision = min(0.1, max(residuals.kkt, 0.1 * tol / residuals.kkt))
    lo=np.maximum(np.minimum(point.gamma*np.expm1(-radius),-JUMP*scale),floor-point.gamma); hi=point.gamma*np.expm1(radius)
    fixed=np.zeros_like(target); rhs=target*np.array([np.ones_like(lo),free])
    lost=free&(residuals.excess<-.1)&(point.gamma<.01*scale)
    if lost.any() and E('LOST',1):
        hi=np.where(lost,.1*scale,hi); fixed[1]=np.where(lost,.1*scale-point.gamma,0); free=free&~lost
        rhs=(target-dual.hessian_product(point,fixed))*np.array([np.ones_like(lo),free])
    for k in range(NFIX):
        step=conjugate_gradient(dual, point, rhs, free, precision, damping)+fixed
        out=free&((step[1]<lo)|(step[1]>hi))
        if not out.any(): break
        fixed[1]=np.where(out,np.clip(step[1],lo,hi),fixed[1]); free=free&~out
        rhs=(target-dual.hessian_product(point,fixed))*np.array([np.ones_like(lo),free])
    step[1]=np.clip(step[1],lo,hi)
    NU=point.mu/point.gamma; dnu=(step[0]-NU*step[1])/point.gamma; step[0]=point.gamma*np.clip(dnu,-NUC,NUC)+NU*step[1]
    return step


def conjugate_gradient(dual: Dual, point: DualPoint, target: Array, free: Array, precision: float, damping) -> Array:
    """(dμ, dγ) with Hessian·(dμ, dγ) = target, dγ = 0 where not ``free``, preconditioned by the diagonal blocks."""
    solution = np.zeros_like(target)
    residual = target.copy()
    direction = preconditioned = solve_blocks(point.curvature, residual, free)
    norm = start = float(np.vdot(residual, preconditioned))
    for _ in range(_MAX_PRODUCTS):
        image = dual.hessian_product(point, direction)
        if damping>0: image=image+damping*np.array([point.curvature[0]*direction[0]+point.curvature[1]*direction[1],point.curvature[1]*direction[0]+point.curvature[2]*direction[1]])
        image[1] *= free
        curvature = float(np.vdot(direction, image))
        if not curvature > 0.0:
            break
        solution = solution + (norm / curvature) * direction
        residual = residual - (norm / curvature) * image
        preconditioned = solve_blocks(point.curvature, residual, free)
        previous, norm = norm, float(np.vdot(residual, preconditioned))
        if norm <= precision**2 * start:
            break
        direction = preconditioned + (norm / previous) * direction
    return solution


def solve_blocks(blocks: Array, target: Array, free: Array) -> Array:
    """Solve the 2×2 system of each row, or its first equation alone where γ is not free."""
    mu_mu, mu_gamma, gamma_gamma = blocks
    # A row that is uniform over its support has a singular block; the bound keeps its step finite.
    determinant = np.maximum(mu_mu * gamma_gamma - mu_gamma**2, 1e-14 * mu_mu * gamma_gamma + 1e-300)
    d_mu = (gamma_gamma * target[0] - mu_gamma * target[1]) / determinant
    d_gamma = (mu_mu * target[1] - mu_gamma * target[0]) / determinant
    return np.where(free, np.array([d_mu, d_gamma]), np.array([target[0] / mu_mu, np.zeros_like(d_mu)]))


def search(
    dual: Dual, point: DualPoint, step: Array, floor: Array, scale: Array, best_merit: float
) -> tuple[DualPoint, Residuals] | None:
    """The first acceptable point along the step, or None."""
    w, nu = dual.weights, point.mu / point.gamma
    noise = 1e-13 * float(w @ (np.abs(point.mu) + point.gamma * (dual.log_perplexity + 1.0)))
    gradient = w * np.array([point.mass - 1.0, point.entropy + point.mass - dual.log_perplexity - 1.0])
    for length in _STEP_LENGTHS:
        if MODE&2:
            gamma=np.maximum(point.gamma*np.exp(length*np.log1p(step[1]/point.gamma)),floor)
            trial=dual.evaluate(gamma,gamma*(nu+length*(step[0]-nu*step[1])/point.gamma))
        else:
            gamma = np.maximum(point.gamma +length * step[1], floor)
            trial = dual.evaluate(gamma, point.mu+length*step[0])
        residuals = measure(dual, trial, floor, scale)
        slope = float(gradient[0] @ (trial.mu - point.mu) + gradient[1] @ (trial.gamma - point.gamma))
        g2=w * np.array([trial.mass - 1.0, trial.entropy + trial.mass - dual.log_perplexity - 1.0])
        s2=float(g2[0] @ (trial.mu - point.mu) + g2[1] @ (trial.gamma - point.gamma))
        if slope<0 and s2<=E('CH',.5)*-slope: return trial, residuals
        if trial.value < point.value + min(1e-4 * slope, -noise) or residuals.merit < 0.9 * best_merit:
            return trial, residuals
    return None


def next_radius(radius: Array, taken: Array, before: Residuals, after: Residuals) -> Array:
    """Halve the radius of the rows that jumped across their solution to a residual as large, widen the others."""
    jumped = np.zeros(len(radius), dtype=bool)
    for old, new in ((before.log_mass, after.log_mass), (before.excess, after.excess)):
        jumped |= (old * new < 0.0) & (np.abs(new) > np.maximum(0.3, 0.7 * np.abs(old)))
    return np.where(jumped, 0.4 * taken, np.minimum(MAX_RADIUS, 4.0 * radius))
