"""The linear systems of Newton's method: a signless Laplacian of 2×2 blocks, solved in a box.

Scaled by its diagonal blocks the Hessian has its eigenvalues in [0, 2], almost all of them near 1 or 2, so that a few
conjugate-gradient products are enough.
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
        # Cramer's rule, for all rows at once.
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
