"""Products with sparse plans, and the plans themselves."""

from __future__ import annotations

import numpy as np
import pytest
from coupling.coupling_problems import soft_plan

from distreduce._utils.threads import Workers
from distreduce.coupling.problem import affinity_times_plan, hard_plan, move_to, rescale_rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_product_is_the_dense_one(n, dtype, rng):
    C = rng.uniform(size=(n, n)).astype(dtype)
    C = C + C.T
    plan = soft_plan(rng, rng.uniform(0.5, 2, n), 4)
    plan.data[plan.data < 0.3] = 0.0
    plan.eliminate_zeros()
    expected = C.astype(np.float64) @ plan.toarray()
    np.testing.assert_allclose(affinity_times_plan(C, plan), expected, rtol=1e-13)


def test_product_has_the_same_bits_on_two_threads(rng):
    C, plan = rng.uniform(size=(400, 400)), soft_plan(rng, np.ones(400), 5)
    pool = Workers(2)
    np.testing.assert_array_equal(affinity_times_plan(C, plan, pool), affinity_times_plan(C, plan))
    pool.close()


def test_hard_plan_puts_a_rows_mass_in_one_place():
    plan = hard_plan(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4)
    np.testing.assert_array_equal(plan.toarray(), [[0, 0, 1, 0], [2, 0, 0, 0], [0, 0, 3, 0]])


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_moved_rows_have_all_their_mass_in_one_place(soft, rng):
    weights, target = rng.uniform(0.5, 2, 6), np.array([3, 0, 1, 2, 2, 0])
    plan = soft_plan(rng, weights, 4) if soft else hard_plan(rng.integers(4, size=6), weights, 4)
    moved, expected = move_to(plan, np.array([1, 4]), target, weights), plan.toarray()
    expected[[1, 4]] = 0.0
    expected[[1, 4], target[[1, 4]]] = weights[[1, 4]]
    np.testing.assert_array_equal(moved.toarray(), expected)


def test_rescaled_rows_sum_to_the_weights_and_keep_their_shares(rng):
    weights = rng.uniform(0.5, 2, 6)
    plan = soft_plan(rng, np.full(6, 3.0), 4)
    scaled = rescale_rows(plan, weights)
    np.testing.assert_allclose(scaled.toarray(), plan.toarray() * weights[:, None] / 3.0, rtol=1e-14)
