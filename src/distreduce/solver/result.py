"""The result of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from distreduce._utils.typing import Array, Index, Plan
from distreduce.mapping import KernelMap, LeftOut
from distreduce.solver.objective import Record


@dataclass(frozen=True)
class Reduction:
    """Result of the outer loop: the coupling T (n, m), the prototypes Z (m, p), and how it ended."""

    plan: Plan
    prototypes: Array
    history: tuple[Record, ...]  # J after the first Z-step and after every outer iteration that lowered it
    converged: bool
    stopped: bool = False  # by a callback
    interrupted: bool = False  # by a KeyboardInterrupt
    faults: tuple[str, ...] = ()  # steps that failed and were undone, one sentence each

    @property
    def objective(self) -> float:
        """Final value of J."""
        return self.history[-1].objective if self.history else math.inf  # empty if the first Z-step failed


@dataclass(frozen=True)
class Fitted:
    """A reduction, its map, the medoid of each prototype (−1: unused), and left-out places if there are targets."""

    reduction: Reduction
    map: KernelMap
    medoids: Index
    left_out: LeftOut | None = None
