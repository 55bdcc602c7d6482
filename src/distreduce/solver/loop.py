"""From a reduction problem to a fitted one: prepare, alternate T-step and Z-step until J stops falling, extend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distreduce._utils.numerics import divide_columns, evenly_spaced
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF
from distreduce.mapping import KernelMap, LeftOut, barycentres
from distreduce.mapping.axes import DIRECTION_SAMPLES, Axes, find_directions, neighbours_say_less
from distreduce.mapping.kernel_map import kernel_rows
from distreduce.mapping.landmarks import join_features
from distreduce.sharding.sample import ShardedSample
from distreduce.solver.dense import prepare_dense
from distreduce.solver.objective import Record, State, Steps
from distreduce.solver.problem import Coupled, ReductionProblem, SampleOracle, Settings
from distreduce.solver.sharded import prepare_sharded

if TYPE_CHECKING:
    from distreduce.solver.checkpoint import Checkpoint


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
    ridge: float = np.nan  # λ/μ of the map


# Tolerance of the loop in units of `tol` if the coupling is fixed: iterations then only continue the Z-step. Finer ones
# took half of the time of a fit to the digits, and the plane was as good.
FIXED_TOL = 1000.0
# Errors of a step after which the state before it is still good.
FAILURES = (ArithmeticError, np.linalg.LinAlgError, MemoryError)


@dataclass(frozen=True)
class Progress:
    """State of the loop after an outer iteration: all that the next one depends on."""

    state: State  # the best so far, which is the latest: a step that raises J is rejected
    history: tuple[Record, ...]  # of all accepted states
    iteration: int = 0
    frozen: bool = False  # the coupling stays as it is from now on
    converged: bool = False
    finished: bool = False  # there is no next iteration
    faults: tuple[str, ...] = ()  # steps that failed and were undone


@dataclass(frozen=True)
class Monitor:
    """What watches a fit.

    `callback` is called with the latest record before every outer iteration; the loop ends if it returns True. `stage`
    is called with the name of each stage of the preparation.
    """

    callback: Callable[[Record], object] | None = None
    checkpoint: Checkpoint | None = None
    stage: Callable[[str], object] = lambda name: None

    def wants_stop(self, record: Record) -> bool:
        """Report a record and return whether the callback wants to stop."""
        return self.callback is not None and self.callback(record) is True

    def keep(self, at: Progress) -> None:
        """Write the checkpoint, if there is one."""
        if self.checkpoint is not None:
            self.checkpoint.keep(at)


UNWATCHED = Monitor()


def fit_reduction(
    problem: ReductionProblem, random_state: np.random.RandomState, *, workers: Workers, monitor: Monitor = UNWATCHED
) -> Fitted:
    """Fit SDR, or without targets DistR, to the sample of a problem.

    Raises NumericalError if the affinity, the first prototypes or the map could not be computed; `best` is then the
    reduction, if it was found.
    """
    # Prepare: affinity, initial coupling, initial prototypes and the factorized map.
    prepare = prepare_sharded if isinstance(problem.sample, ShardedSample) else prepare_dense
    oracle: SampleOracle = prepare(problem, workers, random_state, monitor.stage)
    # Solve: the outer loop.
    monitor.stage("first embedding")
    reduction = solve(oracle, problem.settings, monitor=monitor)
    # Extend: what the loop itself does not need.
    medoids = oracle.medoids(reduction.plan)
    reduction, coefficients, left_out = _extend(oracle, reduction, problem)
    assert oracle.projection is not None
    ridge = oracle.projection.map_reg / oracle.projection.mu
    return Fitted(reduction, _in_features(problem, oracle.map_inputs, coefficients), medoids, left_out, ridge)


def _in_features(problem: ReductionProblem, inputs: Any, coefficients: Array) -> KernelMap:
    """Return the map for features that are not divided by the problem's scales: these become length scales."""
    kernel, predictions = problem.input_kernel, problem.predictions
    if problem.scales is not None:
        assert isinstance(kernel, RBF)
        kernel, inputs = RBF(kernel.length_scale * problem.scales), divide_columns(inputs, 1.0 / problem.scales)
    if predictions is not None:  # the last features
        d = inputs.shape[1] - predictions.shares.shape[1]
        inputs, predictions = inputs[:, :d], replace(predictions, shares=inputs[:, d:])
    return KernelMap(kernel, inputs, coefficients, problem.unit, predictions)


def _extend(
    oracle: SampleOracle, reduction: Reduction, problem: ReductionProblem
) -> tuple[Reduction, Array, LeftOut | None]:
    """Return the reduction in the axes of the picture, L, and with targets the left-out places.

    If they cannot be computed, the error carries the reduction.
    """
    plan, Z = reduction.plan, reduction.prototypes
    try:
        F = barycentres(plan, problem.sample.weights) @ Z
        L = oracle.map_coefficients(F)
        if not np.isfinite(L).all():
            raise NumericalError("Its coefficients are not finite")
        if problem.target_kernel is None:
            return reduction, L, None
        axes = _draw_axes(oracle, problem, F, L) if problem.opens_axes else None
        if axes is not None:
            L = oracle.map_coefficients(axes(F))
            reduction = replace(reduction, prototypes=Z @ axes.kept)  # used ones are moved onto the map later
        again = partial(refine, settings=problem.settings)
        return reduction, L, oracle.left_out(plan, Z, again, axes or (lambda F, _: F))
    except FAILURES as error:
        raise NumericalError(
            f"The out-of-sample map of the reduction could not be computed ({error}); raise map_reg or scale X. "
            "The reduction itself is this error's `best`.",
            best=reduction,
        ) from error


def _draw_axes(oracle: SampleOracle, problem: ReductionProblem, F: Array, L: Array) -> Axes | None:
    """Return axes of the picture if the map L leaves one too narrow and neighbours lose nothing; F: solver's places."""
    sample, inputs, projection = problem.sample, oracle.map_inputs, oracle.projection
    if inputs is None:  # distances have no directions
        return None
    assert projection is not None
    # Some samples decide, with what the map sees of them.
    if isinstance(sample, ShardedSample):
        drawn = sample.subsample
        seen = join_features(drawn.features, drawn.shares)
    else:
        drawn, seen = sample, inputs
    rows = evenly_spaced(len(drawn.weights), DIRECTION_SAMPLES)
    assert drawn.kernel_targets is not None
    X, Y, h, seen = drawn.features[rows], drawn.kernel_targets[rows], drawn.weights[rows], seen[rows]
    K, own = (kernel_rows(problem.input_kernel, seen, others) for others in (inputs, seen))
    # Directions of the features as the user gave them, except beside predictions, which have a metric of their own.
    scales = problem.scales if problem.predictions is None else None
    ridge, places = projection.map_reg / projection.mu, K @ L
    found = find_directions(places, X, Y, own, h, ridge, scales)
    if found is None:
        return None
    products = oracle.project(found.features)
    axes = found.draw(products - sample.weights @ products / sample.weights.sum())
    values = K @ oracle.map_coefficients(axes(F))
    factors = found.factors(values, h)
    if neighbours_say_less(places, values * factors, Y, own, h, ridge):
        return None
    return replace(axes, drawn=axes.drawn * factors)


def solve(oracle: SampleOracle, settings: Settings, *, monitor: Monitor = UNWATCHED) -> Reduction:
    """Alternate T-step and Z-step from the oracle's initial coupling and prototypes until J stops falling.

    The T-step lowers BSFGW and the map's term but does not see the dependence (the paper's surrogate), so J can rise
    over a pair of steps. Such a coupling is rejected: T then stays as it was, and only Z is optimized to its tolerance.
    The same happens if a step fails; the reduction lists it in its `faults` (decision 17).

    With a checkpoint the loop resumes from where that one was. A KeyboardInterrupt ends it with the best state so far.
    If the first Z-step fails, the `best` of the NumericalError is a reduction with the initial coupling and prototypes.
    """
    with np.errstate(all="ignore"):  # the steps check themselves whether their results are finite
        steps, at = _begin(oracle, settings, monitor)
    stopped = interrupted = False
    try:
        monitor.keep(at)
        while not (at.finished or stopped):
            # Before the iteration: the callback sees the initial prototypes too.
            stopped = monitor.wants_stop(at.state.record)
            if not stopped:
                with np.errstate(all="ignore"):
                    at = _advance(steps, at)
            monitor.keep(at)
    except KeyboardInterrupt:  # the state before the interrupted iteration is a complete one
        interrupted = True
        monitor.keep(at)
    plan, Z = at.state.coupled.plan, at.state.prototypes
    return Reduction(plan, Z, at.history, at.converged, stopped, interrupted, at.faults)


def refine(oracle: SampleOracle, settings: Settings) -> tuple[Plan, Array]:
    """Take one T-step and one Z-step from the oracle's coupling and prototypes; if one fails, return these."""
    plan, Z = oracle.plan, oracle.prototypes
    with np.errstate(all="ignore"):
        try:
            steps = Steps(oracle, settings, 0.0)  # nobody compares its J
            state = steps.z_step(steps.t_step(plan, Z), Z, -1)  # no iteration of the loop
        except FAILURES:
            return plan, Z
    return state.coupled.plan, state.prototypes


def _begin(oracle: SampleOracle, settings: Settings, monitor: Monitor) -> tuple[Steps, Progress]:
    """Resume from the checkpoint, or take the first Z-step at the initial coupling."""
    plan, Z = oracle.plan, oracle.prototypes
    try:
        steps = Steps(oracle, settings)
        earlier = None if monitor.checkpoint is None else monitor.checkpoint.read(plan, Z.shape)
        if earlier is not None:
            return steps, earlier
        state = steps.z_step(Coupled(plan, oracle.transported(plan)), Z, 0)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise NumericalError(
            f"The first embedding could not be computed. {error}", best=Reduction(plan, Z, (), False)
        ) from error
    # Without outer iterations the plan stays as given, and the tolerance of the Z-step decides.
    at = Progress(state, (state.record,), faults=_faults(state), finished=settings.max_iter == 0)
    at = replace(at, frozen=settings.fixed_coupling)
    return steps, replace(at, converged=at.finished and state.settled)


def _advance(steps: Steps, at: Progress) -> Progress:
    """Make one outer iteration."""
    settings, state, iteration = steps.settings, at.state, at.iteration + 1
    at = replace(at, iteration=iteration, finished=iteration >= settings.max_iter)
    began = time.perf_counter()
    # T-step and Z-step; if either fails, the state before both stays.
    try:
        coupled = state.coupled if at.frozen else steps.t_step(state.coupled.plan, state.prototypes)
        candidate = steps.z_step(coupled, state.prototypes, iteration)
    except FAILURES as error:
        fault = f"Outer iteration {iteration} failed and was undone ({type(error).__name__}: {error})"
        # Try once more with the coupling fixed; if it was fixed already, end the fit.
        return replace(at, frozen=True, finished=at.frozen or at.finished, faults=(*at.faults, fault))
    at = replace(at, faults=at.faults + _faults(candidate))
    # Accept the candidate unless J rose, or if the start must be left.
    decrease = state.record.objective - candidate.record.objective
    tol = settings.tol * (FIXED_TOL if settings.fixed_coupling else 1.0)
    enough = tol * max(1.0, abs(state.record.objective))
    leaves = decrease < 0 and iteration == 1 and settings.leave_start and not at.frozen
    if decrease >= 0 or leaves:
        took = time.perf_counter() - began  # both steps; the Z-step recorded only its own time
        state = replace(candidate, record=replace(candidate.record, seconds=took))
        # If J rose, it is counted from here on.
        at = replace(at, state=state, history=(state.record,) if leaves else (*at.history, state.record))
    if decrease > enough or leaves:
        return at
    # J has stopped falling: finish, or freeze the coupling until the Z-step meets its tolerance too.
    if state.settled or not steps.joint or (at.frozen and decrease >= 0):
        return replace(at, converged=(state.settled or at.frozen) and not at.faults, finished=True)
    return replace(at, frozen=True)


def _faults(state: State) -> tuple[str, ...]:
    stuck = f"The embedding step of outer iteration {state.record.iteration} ended where its objective is not finite"
    return (stuck,) if state.stuck else ()
