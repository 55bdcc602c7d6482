"""The exact line search of the T-step: J is a quadratic along every segment T + τ(V − T)."""

from __future__ import annotations

from scipy import sparse

from distreduce._utils.typing import Plan


def exact_step(curvature: float, slope: float) -> float:
    """Minimiser τ of aτ² + bτ over [0, 1], from the curvature a and the slope b."""
    if curvature > 0:
        return min(1.0, max(0.0, -slope / (2 * curvature)))
    return 1.0 if curvature + slope < 0 else 0.0


def move_towards(T: Plan, V: Plan, step: float) -> Plan:
    """(1 − τ) T + τ V, without entries that are zero."""
    if step == 1.0:
        return V
    mixture = sparse.csr_array((1 - step) * T + step * V)
    mixture.eliminate_zeros()
    return mixture
