"""The coupling over shards against the dense solvers on the same affinity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from coupling.coupling_problems import CASES, masses, random_case, soft_plan
from hypothesis import given, settings
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

import distreduce.coupling.sharded as on_shards
from distreduce._utils.threads import Workers
from distreduce.coupling._shard_passes import PlanEntries, _gather
from distreduce.coupling.descent import conditional_gradient
from distreduce.coupling.problem import CouplingProblem, affinity_times_plan, hard_plan
from distreduce.coupling.sharded import ShardedCoupling, solve_on_shards, supervision_on_shards, transported_on_shards
from distreduce.sharding.shards import GraphRows, LocalShards

MU = 0.7


def in_shards(problem: CouplingProblem, bounds: list[int], threads: int = 1) -> LocalShards:
    C = sparse.csr_array(problem.affinity.astype(np.float32))
    parts = []
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        rows = C[start:stop]
        graph = GraphRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        parts.append({"affinity": graph, "targets": None if problem.targets is None else problem.targets[start:stop]})
    return LocalShards(parts, np.array(bounds), Workers(threads))


def sharded_case(seed, bounds=None, threads=1, **options):
    """The same problem dense and in shards, with a map's cost, on an affinity of single precision."""
    case = random_case(seed, **options)
    n, m = case.start.shape
    rng = np.random.default_rng(seed)
    Z, fitted = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    affinity = case.problem.affinity.astype(np.float32).astype(np.float64)
    dense = replace(case.problem, affinity=affinity, linear=0.5 * MU * cdist(fitted, Z, "sqeuclidean"))
    bounds = [0, n // 3, n // 2, n] if bounds is None else bounds(n)
    shards = in_shards(dense, bounds, threads)
    sharded = ShardedCoupling(shards, dense.weights, dense.f2, dense.h2, Z, fitted, MU, dense.loss, dense.alpha)
    return dense, sharded, case.start


def value(problem, plan):
    return problem.value(plan, affinity_times_plan(problem.affinity, plan) @ problem.h2)


@settings(max_examples=20)
@given(**CASES)
def test_descent_takes_the_path_of_the_dense_one(**options):
    dense, sharded, start = sharded_case(**options)

    def cheapest(gradient):
        return hard_plan(gradient.argmin(axis=1), dense.weights, dense.shape[1])

    wanted = conditional_gradient(dense, start, cheapest, max_iter=2000, tol=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_shards, "MAX_SWEEPS", 0)
        found, _ = solve_on_shards(sharded, start, tol=1e-9)
    assert value(dense, found) == pytest.approx(wanted.value, rel=1e-6, abs=1e-8)


@settings(max_examples=20)
@given(**CASES)
def test_row_moves_lower_the_objective_and_keep_the_masses(**options):
    dense, sharded, start = sharded_case(**options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_shards, "MAX_SWEEPS", 0)
        before, _ = solve_on_shards(sharded, start, tol=1e-9)
    after, _ = solve_on_shards(sharded, start, tol=1e-9)
    assert_allclose(masses(after)[0], dense.weights, rtol=1e-12)
    assert value(dense, after) <= value(dense, before) + 1e-9 * abs(value(dense, before))


def test_single_moves_end_where_no_row_gains_by_moving_alone():
    """Brute force: J after every move of one row to one prototype."""
    dense, sharded, start = sharded_case(3, supervised=False, structured=True)
    plan, _ = solve_on_shards(sharded, start, tol=1e-12)
    reached = value(dense, plan)
    best = np.inf
    for i in range(plan.shape[0]):
        for k in range(plan.shape[1]):
            moved = plan.toarray()
            moved[i] = dense.weights[i] * np.eye(plan.shape[1])[k]
            best = min(best, value(dense, sparse.csr_array(moved)))
    assert best >= reached - 1e-9 * abs(reached)


def test_transported_affinity_is_that_of_the_plan():
    dense, sharded, start = sharded_case(5, weighted=True)
    plan, transported = solve_on_shards(sharded, start, tol=1e-9)
    assert_allclose(transported, plan.T @ (dense.affinity @ plan.toarray()), rtol=1e-10, atol=1e-12)


def test_transported_affinity_of_a_soft_plan():
    dense, sharded, start = sharded_case(6, weighted=True)
    plan = soft_plan(np.random.default_rng(0), dense.weights, start.shape[1])
    assert_allclose(transported_on_shards(sharded.shards, plan), plan.T @ (dense.affinity @ plan.toarray()), rtol=1e-10)


def test_supervision_is_that_of_the_dense_problem():
    dense, sharded, start = sharded_case(7, supervised=True, weighted=True)
    wanted = float(start.multiply(dense.supervision(start)).sum())
    assert supervision_on_shards(sharded.shards, start, dense.loss) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("bounds", [lambda n: [0, n], lambda n: [0, 1, 2, n], lambda n: list(range(n + 1))])
def test_any_cut_into_shards_gives_the_same_plan(bounds):
    _, sharded, start = sharded_case(8, supervised=True)
    _, other, _ = sharded_case(8, bounds, supervised=True)
    assert_allclose(
        solve_on_shards(other, start)[0].toarray(), solve_on_shards(sharded, start)[0].toarray(), atol=1e-10
    )


def test_threads_do_not_change_a_bit():
    one = solve_on_shards(*sharded_case(9, supervised=True)[1:])
    three = solve_on_shards(*sharded_case(9, threads=3, supervised=True)[1:])
    assert np.array_equal(one[0].toarray(), three[0].toarray()) and np.array_equal(one[1], three[1])


def test_products_that_underflow_are_noted_nowhere():
    # Each of the 50 products of C and T underflows to zero; noting their column each time would leave the buffer of m.
    n, m = 50, 2
    row, touched = np.zeros(m), np.full(n, -1, dtype=np.int32)
    graph = GraphRows(np.array([0, n]), np.arange(n, dtype=np.int32), np.full(n, 1e-40, dtype=np.float32))
    plan = PlanEntries(np.arange(n + 1), np.zeros(n, dtype=np.int32), np.full(n, 1e-285))
    assert _gather(0, graph, plan, row, touched) == 0
    assert (touched == -1).all() and (row == 0).all()
