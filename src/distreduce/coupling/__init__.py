"""The coupling T: barycentric supervised fused Gromov-Wasserstein (BSFGW), semi-relaxed and balanced."""

from distreduce.coupling.descent import solve_balanced, solve_semirelaxed
from distreduce.coupling.initial import initial_plan
from distreduce.coupling.problem import (
    CouplingProblem,
    CouplingResult,
    affinity_times_plan,
    hard_plan,
    structure_constant,
    structure_matrices,
)

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
