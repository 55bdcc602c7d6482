"""Which implementation of the Z-step's objective to use."""

from __future__ import annotations

from functools import partial

from distreduce._utils.threads import SERIAL, Workers
from distreduce.embedding import plain
from distreduce.embedding.fused import FusedObjective, supports
from distreduce.embedding.optimize import Objective
from distreduce.embedding.problem import EmbeddingProblem
from distreduce.exceptions import InvalidInputError


def make_objective(problem: EmbeddingProblem, backend: str = "auto", workers: Workers = SERIAL) -> Objective:
    """Return ``objective(Z) -> (Terms, gradient)``; "auto": fused loops if they support the kernel, else NumPy."""
    name, _, device = backend.partition(":")  # "torch:cuda:0" names a device
    if name == "torch":
        from distreduce.embedding.torch import TorchObjective  # optional dependency

        return TorchObjective(problem, device or None)
    if backend == "numpy" or (backend == "auto" and not supports(problem)):
        return partial(plain.value_and_gradient, problem)
    if not supports(problem):  # "numba" was asked for by name, so do not fall back silently
        raise InvalidInputError(f"backend='numba' does not support embedding_kernel={problem.kernel!r}; use 'auto'.")
    return FusedObjective(problem, workers)
