"""The exact line search of the T-step, for dense and sharded couplings.

With the prototype targets held fixed, the objective of the T-step is a quadratic aτ² + bτ along every segment
T + τ(V − T). b is minus the duality gap; a comes from `CouplingProblem.curvature` (dense) and `_ShardedDescent.search`
(shards).
"""

from __future__ import annotations

from scipy import sparse

from distreduce._utils.typing import Plan


def exact_step(quadratic: float, slope: float) -> float:
    """Return the minimizer τ of aτ² + bτ over [0, 1], from the coefficient a and the slope b."""
    if quadratic > 0:
        return min(1.0, max(0.0, -slope / (2 * quadratic)))
    return 1.0 if quadratic + slope < 0 else 0.0  # concave or straight: the minimum is at an end


def move_towards(T: Plan, V: Plan, step: float) -> Plan:
    """(1 − τ) T + τ V, without entries that are zero."""
    if step == 1.0:
        return V  # exactly, and as sparse as V
    mixture = sparse.csr_array((1 - step) * T + step * V)
    mixture.eliminate_zeros()
    return mixture
