"""The prototypes Z: Gromov-Wasserstein and dependence terms of the Z-step, and its optimizers."""

from distreduce.embedding import plain
from distreduce.embedding.optimize import EmbeddingResult, make_objective, minimize_adam, minimize_lbfgs
from distreduce.embedding.problem import EmbeddingProblem, Terms

__all__ = ["EmbeddingProblem", "EmbeddingResult", "Terms", "make_objective", "minimize_adam", "minimize_lbfgs", "plain"]
