"""Shards on a cluster of two processes against shards in this one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from distreduce.sharding import dask_shards
from distreduce.sharding.dask_shards import DaskShards, submit_all
from distreduce.sharding.shards import LocalShards, Shard, ShardFold, ShardPass, equal_bounds

N, S = 9000, 4
BOUNDS = equal_bounds(N)


def call(function, *, reads=("features",), **shared):
    """A pass that calls ``function(shard, **shared)``; of a class of this function, so that it travels by value."""

    @dataclass(frozen=True)
    class Call(ShardPass):
        function: Callable[..., Any]
        shared: dict[str, Any]

        def __call__(self, shard: Shard):
            return self.function(shard, **self.shared)

    Call.reads = reads
    return Call(function, shared)


@pytest.fixture
def both(cluster, rng):
    """The same parts here and on the cluster."""
    X = rng.standard_normal((N, 5))
    blocks = [X[start:stop] for start, stop in zip(BOUNDS[:-1], BOUNDS[1:], strict=True)]
    futures = submit_all(cluster, lambda block: block, [blocks], key="blocks")
    remote = DaskShards([{"features": future, "targets": None} for future in futures], BOUNDS, cluster)
    return LocalShards([{"features": block, "targets": None} for block in blocks], BOUNDS), remote


def test_collect_gives_the_same_bits_in_the_order_of_the_shards(both, rng):
    @dataclass(frozen=True)
    class Example(ShardPass):
        reads = ("features", "targets")
        per_sample = ("plan", "vector", "absent")
        plan: sparse.csr_array
        vector: np.ndarray
        absent: None
        factor: float
        function: Callable[..., Any]

        def __call__(self, shard: Shard):
            assert shard.targets is None and self.absent is None and not hasattr(shard, "graph")
            assert self.plan.shape[0] == len(self.vector) == len(shard) == len(shard.features)
            return (
                shard.number + self.plan.T @ shard.features * self.factor + self.function(self.vector @ shard.features)
            )

    plan = sparse.csr_array(rng.uniform(-4, 1, (N, 7)).clip(0))
    example = Example(plan, rng.standard_normal(N), None, 3.0, np.tanh)
    local, remote = (shards.collect(example) for shards in both)
    np.testing.assert_array_equal(np.stack(remote), np.stack(local))


def test_a_total_is_added_in_the_order_of_the_shards(both, monkeypatch):
    monkeypatch.setattr(dask_shards, "BATCH", 3)
    cube = call(lambda shard, power: (shard.features**power).sum(axis=0), power=3)
    local, remote = (shards.total(cube) for shards in both)
    np.testing.assert_array_equal(remote, local)


def test_a_pass_is_one_task_for_each_thread_that_has_shards(both, monkeypatch):
    sent, remote = [], both[1]
    remote.collect_part("features")  # now it is known which worker has them

    def count(client, function, columns, **named):
        sent.append(len(columns[0]))
        return submit_all(client, function, columns, **named)

    monkeypatch.setattr(dask_shards, "submit_all", count)
    assert remote.collect(call(lambda shard: shard.number)) == list(range(S))
    assert sum(sent) <= 2  # one for each of two workers
    monkeypatch.setattr(dask_shards, "FEW_TASKS", 0)
    assert remote.collect(call(lambda shard: shard.number)) == list(range(S))
    assert sum(sent) <= 5  # and what all shards share


def test_results_of_a_total_come_at_once_if_they_were_small(both, monkeypatch):
    monkeypatch.setattr(dask_shards, "BATCH", 1)
    sent, remote = [], both[1]
    gather = remote._gather
    monkeypatch.setattr(remote, "_gather", lambda tasks: sent.append(len(tasks)) or gather(tasks))
    square = call(lambda shard: (shard.features**2).sum(axis=0))
    totals, gathered = [], []
    for limit in (2**26, 2**26, 1):  # bytes: what is known of the size of results, and of how many may come at once
        monkeypatch.setattr(dask_shards, "BATCH_BYTES", limit)
        sent.clear()
        totals.append(remote.total(square))
        gathered.append(len(sent))
    assert gathered == [S, 1, 1]
    np.testing.assert_array_equal(totals[0], totals[1])


FAULTS = """
import resource
import numpy as np
from distreduce.sharding.dask_shards import REUSED_MEMORY

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(2**17)  # a megabyte
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

afresh = faults()
with REUSED_MEMORY, REUSED_MEMORY:
    faults()
    reused = faults()
assert afresh > 50 * 200 > 20 * reused and faults() > 50 * 200, (afresh, reused)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_arrays_of_a_task_reuse_memory_where_dask_gives_it_back():
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}  # of Dask's workers
    subprocess.run([sys.executable, "-c", FAULTS], env=environment, check=True)


def test_shards_go_to_the_workers_that_hold_most_of_them():
    part = SimpleNamespace
    held = {"a": ["x"], "b": ["x", "y"], "c": ["y"], "d": ["x"], "A": ["y"], "e": []}
    client = SimpleNamespace(
        who_has=lambda parts: {one.key: held[one.key] for one in parts}, nthreads=lambda: {"x": 2, "y": 1}
    )
    shards = [{"features": part(key=key), "graph": part(key="A") if key == "b" else None} for key in "abcde"]
    found = DaskShards(shards, np.arange(6), client)._by_thread(("features", "graph"))
    assert sorted(found, key=str) == [("x", [0]), ("x", [3]), ("y", [1, 2]), (None, [4])]


def test_a_shared_tuple_that_looks_like_a_task_stays_a_tuple(both):
    expected = (np.sum, [1, 2])
    assert both[1].collect(call(lambda shard, given: given == (np.sum, [1, 2]), given=expected)) == [True] * S


def test_kept_results_are_parts_and_dropped_ones_are_not(both):
    for shards in both:
        shards.keep("cells", call(lambda shard: 2 * shard.features))
    difference = call(lambda shard: (shard.cells - shard.features).sum(), reads=("features", "cells"))
    local, remote = (shards.collect(difference) for shards in both)
    assert remote == local
    for shards in both:
        shards.drop("cells")
        with pytest.raises(KeyError):
            shards.collect(difference)


def test_a_pass_sees_the_parts_that_it_reads_only(both):
    for shards in both:
        with pytest.raises(AttributeError, match="features"):
            shards.collect(call(lambda shard: shard.features, reads=("targets",)))


def test_fold_sees_the_other_shards_in_the_given_order(both):
    @dataclass(frozen=True)
    class Products(ShardFold):
        reads = ("features",)
        factor: float

        def __call__(self, result, shard: Shard, other: Shard):
            product = self.factor * float(shard.features[0] @ other.features[0])
            return [*(result or []), (shard.number, other.number, shard.rows, other.rows, product)]

    for shards in both:
        shards.fold("cells", Products(2.0), [[0, 2, 1], [3], [], [1, 3]])
    local, remote = (shards.collect(call(lambda shard: shard.cells, reads=("cells",))) for shards in both)
    assert remote == local and [len(seen or []) for seen in local] == [3, 1, 0, 2]


def test_large_arguments_do_not_warn(both):
    size = call(lambda shard, vector: len(vector), vector=np.zeros(2_000_000))
    assert both[1].collect(size) == [2_000_000] * S


def test_an_error_keeps_its_class(both):
    with pytest.raises(ZeroDivisionError):
        both[1].collect(call(lambda shard: 1 / 0))
