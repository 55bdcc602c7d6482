"""The coupling T: barycentric supervised fused Gromov-Wasserstein (BSFGW), semi-relaxed and balanced."""

from distreduce.coupling.balanced import solve_balanced
from distreduce.coupling.initial import initial_plan
from distreduce.coupling.plan import affinity_times_plan, hard_plan
from distreduce.coupling.problem import CouplingProblem, CouplingResult, structure_constant, structure_matrices
from distreduce.coupling.semirelaxed import solve_semirelaxed

__all__ = [
    "CouplingProblem",
    "CouplingResult",
    "affinity_times_plan",
    "hard_plan",
    "initial_plan",
    "solve_balanced",
    "solve_semirelaxed",
    "structure_constant",
    "structure_matrices",
]
