"""The result of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from distreduce._utils.typing import Array, Index, Plan
from distreduce.mapping import KernelMap, LeftOut
from distreduce.solver.objective import Record


@dataclass(frozen=True)
class Reduction:
    """Result of the outer loop.

    Attributes
    ----------
    plan : (n, m) sparse array
        Coupling T.
    prototypes : (m, p) array
        Prototypes Z.
    history : tuple of Record
        J after the first Z-step and after every outer iteration that lowered it.
    converged : bool
        Whether the tolerance was met.
    stopped : bool
        Whether a callback stopped the loop.
    interrupted : bool
        Whether a KeyboardInterrupt did.
    faults : tuple of str
        Steps that failed and were undone, one sentence each.
    """

    plan: Plan
    prototypes: Array
    history: tuple[Record, ...]
    converged: bool
    stopped: bool = False
    interrupted: bool = False
    faults: tuple[str, ...] = ()

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
