"""From a reduction problem to a fitted reduction: prepare, solve, extend by the map."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from distreduce._utils.distances import divide_columns
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array
from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF
from distreduce.mapping import KernelMap
from distreduce.sharding.sample import ShardedSample
from distreduce.solver.dense import prepare_dense
from distreduce.solver.loop import FAILURES, Monitor, refine, solve
from distreduce.solver.oracle import SampleOracle
from distreduce.solver.problem import ReductionProblem
from distreduce.solver.result import Fitted, Reduction
from distreduce.solver.sharded import prepare_sharded


def fit_reduction(
    problem: ReductionProblem, random_state: np.random.RandomState, *, workers: Workers, monitor: Monitor | None = None
) -> Fitted:
    """Fit SDR, or without targets DistR, to the sample of a problem.

    Raises
    ------
    NumericalError
        The affinity, the first prototypes or the map could not be computed; `best` is the reduction, if it was found.
    """
    monitor = monitor or Monitor()
    # Prepare: affinity, initial coupling, initial prototypes and the factorized map.
    prepare = prepare_sharded if isinstance(problem.sample, ShardedSample) else prepare_dense
    oracle: SampleOracle = prepare(problem, workers, random_state, monitor.stage)
    # Solve: the outer loop.
    monitor.stage("first embedding")
    reduction = solve(oracle, problem.settings, monitor=monitor)
    # Extend: what the loop itself does not need.
    medoids = oracle.medoids(reduction.plan)
    coefficients = _map_coefficients(oracle, reduction)
    left_out = None
    if problem.target_kernel is not None:
        left_out = oracle.left_out(reduction.plan, reduction.prototypes, partial(refine, settings=problem.settings))
    return Fitted(reduction, _in_features(problem, oracle.map_inputs, coefficients), medoids, left_out)


def _in_features(problem: ReductionProblem, inputs: Any, coefficients: Array) -> KernelMap:
    """Return the map for features that are not divided by the problem's scales: these become length scales."""
    kernel = problem.input_kernel
    if problem.scales is not None:
        assert isinstance(kernel, RBF)
        kernel, inputs = RBF(kernel.length_scale * problem.scales), divide_columns(inputs, 1.0 / problem.scales)
    return KernelMap(kernel, inputs, coefficients, problem.unit)


def _map_coefficients(oracle: SampleOracle, reduction: Reduction) -> Array:
    """Return L; if it cannot be computed, the error carries the reduction."""
    try:
        L = oracle.map_coefficients(reduction.plan, reduction.prototypes)
        if not np.isfinite(L).all():
            raise NumericalError("Its coefficients are not finite")
    except FAILURES as error:
        raise NumericalError(
            f"The out-of-sample map of the reduction could not be computed ({error}); raise map_reg or scale X. "
            "The reduction itself is this error's `best`.",
            best=reduction,
        ) from error
    return L
