"""Shards on a cluster of two processes against shards in this one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from distreduce._utils.threads import _LIMIT
from distreduce.sharding import dask_shards
from distreduce.sharding.dask_shards import DaskShards, Given, _LingeringLimit, submit_all
from distreduce.sharding.shards import LocalShards, cut

N, S = 9000, 4
BOUNDS = cut(N)


@pytest.fixture
def both(cluster, rng):
    """The same parts here and on the cluster."""
    X = rng.standard_normal((N, 5))
    blocks = [X[start:stop] for start, stop in zip(BOUNDS[:-1], BOUNDS[1:], strict=True)]
    futures = submit_all(cluster, lambda block: block, [[Given((block,)) for block in blocks]])
    remote = DaskShards([{"x": future, "none": None} for future in futures], BOUNDS, cluster)
    return LocalShards([{"x": block, "none": None} for block in blocks], BOUNDS), remote


def test_collect_gives_the_same_bits_in_the_order_of_the_shards(both, rng):
    plan = sparse.csr_array(rng.uniform(-4, 1, (N, 7)).clip(0))
    vector = rng.standard_normal(N)

    def function(x, nothing, own, slice_of_vector, factor, kernel):
        assert nothing is None
        return own.T @ x * factor + kernel(slice_of_vector @ x)

    local, remote = (
        shards.collect(function, ["x", "none"], 3.0, np.tanh, rows=[plan, vector]) for shards in both
    )  # fmt: skip
    np.testing.assert_array_equal(np.stack(remote), np.stack(local))


def test_a_total_is_added_in_the_order_of_the_shards(both, monkeypatch):
    monkeypatch.setattr(dask_shards, "BATCH", 3)
    local, remote = (shards.total(lambda x, power: (x**power).sum(axis=0), ["x"], 3) for shards in both)
    np.testing.assert_array_equal(remote, local)


def test_a_shared_tuple_that_looks_like_a_task_stays_a_tuple(both):
    shared = (np.sum, [1, 2])
    assert both[1].collect(lambda x, given: given == shared, ["x"], shared) == [True] * S


def test_kept_results_are_parts_and_dropped_ones_are_not(both):
    for shards in both:
        shards.keep("double", lambda x: 2 * x, ["x"])
    local, remote = (shards.collect(lambda x, double: (double - x).sum(), ["x", "double"]) for shards in both)
    both[1].drop("double")
    with pytest.raises(KeyError):
        both[1].collect(len, ["double"])
    assert remote == local


def test_fold_sees_the_other_shards_in_the_given_order(both):
    others = [[0, 2, 1], [3], [], [1, 3]]

    def step(result, own, other, shard, number, factor):
        return [*(result or []), (shard, number, factor * float(own[0] @ other[0]))]

    for shards in both:
        shards.fold("seen", step, ["x"], others, 2.0)
    local, remote = (shards.collect(lambda seen: seen, ["seen"]) for shards in both)
    assert remote == local


def test_large_arguments_do_not_warn(both):
    assert both[1].collect(lambda x, vector: len(vector), ["x"], np.zeros(2_000_000)) == [2_000_000] * S


def test_an_error_keeps_its_class(both):
    with pytest.raises(ZeroDivisionError):
        both[1].collect(lambda x: 1 / 0, ["x"])


def test_blas_is_released_some_time_after_the_last_task(monkeypatch):
    monkeypatch.setattr(dask_shards, "LINGER_SECONDS", 0.2)
    before, limit = _LIMIT._users, _LingeringLimit()
    limit.renew()
    limit.renew()
    assert _LIMIT._users == before + 1
    limit._timer.join(timeout=30)
    assert _LIMIT._users == before
