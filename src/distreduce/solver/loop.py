"""The outer loop: coupling T and embedding Z in turn (with the map L eliminated, or beside them as in the paper)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.exceptions import NumericalError
from distreduce.mapping.landmarks import Memory
from distreduce.solver.dense import DenseSide, ReductionProblem
from distreduce.solver.oracle import Coupled, SampleSide
from distreduce.solver.steps import HalfSteps, Record, Settings, State

if TYPE_CHECKING:
    from distreduce.solver.checkpoint import Checkpoint

__all__ = ["Progress", "Record", "Reduction", "Settings", "alternate", "solve"]

# What may go wrong in a step while the state before it is good.
FAILURES = (ArithmeticError, np.linalg.LinAlgError, MemoryError)


@dataclass(frozen=True)
class Reduction:
    """What a fit found: T, Z, the history of J, and how the loop ended.

    `stopped`: by the callback; `interrupted`: from the keyboard. `faults`: steps that failed and were undone, one
    sentence each; all else is as if they had not been tried.
    """

    plan: sparse.csr_array
    embedding: Array
    history: tuple[Record, ...]
    converged: bool
    stopped: bool = False
    interrupted: bool = False
    faults: tuple[str, ...] = ()

    @property
    def objective(self) -> float:
        return self.history[-1].objective if self.history else math.inf


@dataclass(frozen=True)
class Progress:
    """Where the loop is after an outer iteration: all that the next one depends on.

    `frozen`: the coupling stays as it is. `finished`: there is no next one. `memory`: of the sample side.
    """

    state: State
    history: tuple[Record, ...]
    iteration: int = 0
    frozen: bool = False
    converged: bool = False
    finished: bool = False
    faults: tuple[str, ...] = ()
    memory: Memory | None = None

    def reduction(self, *, stopped: bool = False, interrupted: bool = False) -> Reduction:
        """The best so far, which is the latest: a step that raises J is not taken."""
        plan, Z = self.state.coupled.plan, self.state.embedding
        return Reduction(plan, Z, self.history, self.converged, stopped, interrupted, self.faults)


def solve(
    problem: ReductionProblem,
    settings: Settings,
    *,
    workers: Workers = SERIAL,
    callback: Callable[[Record], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Reduction:
    """Solve a problem whose affinity and kernel are n×n arrays; see :func:`alternate`."""
    side = DenseSide(problem, workers)
    options: dict[str, Any] = {"workers": workers, "callback": callback, "checkpoint": checkpoint}
    return alternate(side, problem.plan, problem.embedding, settings, **options)


def alternate(
    side: SampleSide,
    plan: sparse.csr_array,
    embedding: Array,
    settings: Settings,
    *,
    workers: Workers = SERIAL,
    callback: Callable[[Record], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Reduction:
    """Alternate the two half-steps until J stops falling; a coupling that would raise J is not taken.

    The T-step descends BSFGW and the map's term but does not see the dependence (the paper's surrogate), so J can rise
    over a pair of half-steps. Then the coupling stays as it was and only the embedding is carried to its tolerance.
    So it does when a step fails; the reduction says so in its `faults` (decision 17). If the first embedding fails, a
    :class:`NumericalError` carries what there is. A callback is told of every outer iteration; the loop ends early if
    it answers True, and with an interrupt from the keyboard. With a checkpoint it goes on from where that one was.
    """
    with np.errstate(all="ignore"):  # the half-steps look for themselves whether their numbers are finite
        steps, at = _begin(side, plan, embedding, settings, workers, checkpoint)
    stopped = interrupted = False
    try:
        _keep(checkpoint, at)
        while not (at.finished or stopped):
            stopped = callback is not None and callback(at.state.record) is True
            if not stopped:
                with np.errstate(all="ignore"):
                    at = replace(_advance(steps, at), memory=side.memory())
            _keep(checkpoint, at)
    except KeyboardInterrupt:
        interrupted = True
        _keep(checkpoint, at)
    return at.reduction(stopped=stopped, interrupted=interrupted)


def _keep(checkpoint: Checkpoint | None, at: Progress) -> None:
    if checkpoint is not None:
        checkpoint.keep(at)


def _begin(
    side: SampleSide,
    plan: sparse.csr_array,
    embedding: Array,
    settings: Settings,
    workers: Workers,
    checkpoint: Checkpoint | None,
) -> tuple[HalfSteps, Progress]:
    """Where a checkpoint was, or the embedding of the plan as given."""
    try:
        steps = HalfSteps(side, settings, workers)
        earlier = None if checkpoint is None else checkpoint.read(plan, embedding.shape)
        if earlier is not None:
            side.recall(earlier.memory)
            return steps, earlier
        state = steps.embed(Coupled(plan, side.transported(plan)), embedding, 0)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise NumericalError(
            f"The first embedding could not be computed. {error}", best=Reduction(plan, embedding, (), False)
        ) from error
    # Without outer iterations the plan stays as given and the embedding's own tolerance decides.
    at = Progress(state, (state.record,), faults=_faults(state), finished=settings.max_iter == 0)
    return steps, replace(at, converged=at.finished and state.settled, memory=side.memory())


def _advance(steps: HalfSteps, at: Progress) -> Progress:
    """One outer iteration."""
    settings, state, iteration = steps.settings, at.state, at.iteration + 1
    at = replace(at, iteration=iteration, finished=iteration >= settings.max_iter)
    began = time.perf_counter()
    try:
        coupled = state.coupled if at.frozen else steps.couple(state)
        candidate = steps.embed(coupled, state.embedding, iteration)
    except FAILURES as error:
        fault = f"Outer iteration {iteration} failed and was undone ({type(error).__name__}: {error})"
        return replace(at, frozen=True, finished=at.frozen or at.finished, faults=(*at.faults, fault))
    at = replace(at, faults=at.faults + _faults(candidate))
    decrease = state.record.objective - candidate.record.objective
    enough = settings.tol * max(1.0, abs(state.record.objective))
    if decrease >= 0:
        took = time.perf_counter() - began
        state = replace(candidate, record=replace(candidate.record, seconds=took))
        at = replace(at, state=state, history=(*at.history, state.record))
    if decrease > enough:
        return at
    if state.settled or not steps.joint or (at.frozen and decrease >= 0):
        return replace(at, converged=(state.settled or at.frozen) and not at.faults, finished=True)
    return replace(at, frozen=True)


def _faults(state: State) -> tuple[str, ...]:
    stuck = f"The embedding step of outer iteration {state.record.iteration} ended where its objective was no number"
    return (stuck,) if state.stuck else ()
