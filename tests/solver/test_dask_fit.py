"""Fits to dask arrays and frames against the fit to the same rows in memory, and lazy embeddings and predictions."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor
from distreduce.estimators import _base
from distreduce.exceptions import InvalidInputError, InvalidTypeError, SolverConvergenceWarning
from distreduce.sharding import dask_rows
from distreduce.sharding import rows as rows_module
from distreduce.sharding import shards as shards_module
from distreduce.sharding.dask_rows import DaskRows, read_rows
from distreduce.solver.objective import Steps

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

N, D = 1600, 5  # three shards of 512 rows or more
NAMES = [f"f{j}" for j in range(D)]
COMPARED = ("embedding_", "prototypes_", "prototype_weights_", "prototype_targets_", "prototype_medoids_", "labels_")
pytestmark = pytest.mark.filterwarnings(f"ignore::{SolverConvergenceWarning.__module__}.SolverConvergenceWarning")


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards_module, "ROWS_PER_SHARD", 512)
        yield


@pytest.fixture(scope="module")
def data():
    """Eight groups in five classes, more than a plane has room for; a few rows repeated, a few of weight zero."""
    rng = np.random.default_rng(0)
    group = rng.integers(8, size=N)
    X = 3 * rng.standard_normal((8, D))[group] + rng.standard_normal((N, D))
    X[100:120], group[100:120] = X[1000:1020], group[1000:1020]
    weights = np.ones(N)
    weights[[5, 700]] = 0.0
    return X, group % 5, weights


def model(**changed):
    return SDR(**{**dict(n_prototypes=12, affinity="sparse", perplexity=8, max_iter=2, random_state=0), **changed})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Where the fit in memory leaves its checkpoint."""
    return tmp_path_factory.mktemp("in_memory") / "checkpoint"


@pytest.fixture(scope="module")
def in_memory(data, checkpoint):
    X, y, weights = data
    return model(checkpoint=checkpoint).fit(X, y, weights)


def same(one, other, names=COMPARED):
    equal = [np.array_equal(getattr(one, name), getattr(other, name)) for name in names]
    return all(equal) and (one.coupling_ != other.coupling_).nnz == 0 and one.objective_ == other.objective_


def frame_of(X, n_partitions):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=n_partitions)


def test_a_checkpoint_of_a_fit_in_memory_is_that_of_the_same_fit_on_a_cluster(client, data, in_memory, checkpoint):
    """The checkpoint of a fit in memory is accepted: it is finished, so no step is computed."""
    X, y, weights = data
    fitted, recomputed = model(checkpoint=checkpoint), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "t_step", lambda *_: recomputed.append("a step was computed again"))
        fitted.fit(da.from_array(X, chunks=(500, D)), y, weights)
    assert not recomputed and same(fitted, in_memory)


def test_neither_partitions_of_unknown_sizes_nor_a_lost_worker_change_anything(client, data, in_memory, monkeypatch):
    X, y, weights = data
    rows = da.from_array(X, chunks=(290, 2))[da.from_array(np.ones(N, bool), chunks=290)]
    assert np.isnan(rows.chunks[0]).all()
    lost = []

    @contextmanager
    def killing(*_):
        def kill(state, completed=None):
            if completed is not None and not lost:  # after the first Z-step
                lost.append(next(iter(client.run(os.getpid).values())))
                os.kill(lost[0], signal.SIGKILL)

        yield kill

    monkeypatch.setattr(_base, "progress", killing)
    fitted = model().fit(rows, da.from_array(y, chunks=400), da.from_array(weights, chunks=333))
    client.wait_for_workers(2, timeout=60)
    assert lost and same(fitted, in_memory)


def test_the_map_sees_predictions_on_a_cluster_too(in_memory):
    """The other tests compare fits on a cluster with this one."""
    assert in_memory.map_.predictions is not None


def test_a_frame_gives_its_names_and_the_same_fit(client, data, in_memory):
    X, y, weights = data
    frame = frame_of(X, 3)
    fitted = model().fit(frame, dd.from_pandas(pd.Series(y, name="class"), npartitions=2), weights)
    assert fitted.feature_names_in_.tolist() == NAMES and same(fitted, in_memory)


def test_without_a_client_the_rows_go_through_a_file(data, in_memory, monkeypatch):
    X, y, weights = data
    stored, store = [], rows_module._write_in_order
    monkeypatch.setattr(rows_module, "_write_in_order", lambda *given: stored.append(store(*given)) or stored[0])
    fitted = model().fit(frame_of(X, 4), y, weights)
    assert stored and same(fitted, in_memory)


def test_few_rows_are_gathered_for_a_dense_fit(client, data):
    X, y = data[0][:300], data[1][:300]
    names = ("embedding_", "prototypes_")
    assert same(
        model(affinity="auto").fit(da.from_array(X, chunks=(90, D)), y), model(affinity="auto").fit(X, y), names
    )


def test_a_fit_without_targets(client, data):
    X = data[0][:1100].astype(np.float32)
    parameters = dict(n_prototypes=6, affinity="sparse", perplexity=5, max_iter=1, random_state=0)
    fitted = DistR(**parameters).fit(da.from_array(X, chunks=(400, D)))
    assert np.array_equal(fitted.embedding_, DistR(**parameters).fit(X).embedding_)


def test_numbers_that_are_not_finite_are_refused_by_name(client, data):
    X = data[0].copy()
    X[1000, 1] = np.nan
    with pytest.raises(InvalidInputError, match="X contains NaN"):
        model().fit(da.from_array(X, chunks=(300, D)), data[1])


def test_a_constant_table_is_refused_as_in_memory(client):
    with pytest.raises(InvalidInputError, match="X is constant"):
        model().fit(da.ones((1500, 3), chunks=(400, 3)), np.arange(1500) % 2)


def test_text_is_refused_by_name(data):
    frame = dd.from_pandas(pd.DataFrame({"a": ["x", "y"] * 10, "b": 1.0}), npartitions=2)
    with pytest.raises(InvalidInputError, match="partition of X"):
        model().fit(frame, np.arange(20) % 2)


def test_a_series_is_no_table(data):
    with pytest.raises(InvalidTypeError, match="two dimensions"):
        model().fit(da.ones(20, chunks=5), np.arange(20) % 2)


def test_rows_stay_on_the_cluster_and_can_be_taken_in_any_order(client, data, rng):
    X = data[0]
    rows = read_rows(da.from_array(X, chunks=(321, D)), lambda n: n == N)
    wanted = rng.permutation(N)[:500]
    assert isinstance(rows, DaskRows) and np.array_equal(rows.take(wanted), X[wanted])


def test_too_many_rows_are_not_gathered(monkeypatch):
    monkeypatch.setattr(dask_rows, "MAX_GATHERED", 1000)
    with pytest.raises(InvalidInputError, match="sample of the rows"):
        SDRGPRegressor(n_prototypes=20).fit(da.ones((100, 3), chunks=(50, 3)), np.arange(100.0))


@pytest.mark.parametrize("as_frame", [False, True])
def test_an_embedding_is_lazy_and_that_of_arrays(data, in_memory, as_frame):
    X = data[0][:500]
    computed = []
    rows = da.from_array(X, chunks=(150, 2)).map_blocks(
        lambda block: computed.append(1) or block, dtype=float, meta=X[:0]
    )
    rows = dd.from_dask_array(rows, columns=NAMES) if as_frame else rows
    named = model(affinity="dense", max_iter=0).fit(pd.DataFrame(X, columns=NAMES) if as_frame else X, data[1][:500])
    lazy = named.transform(rows)
    assert not computed and lazy.shape[1] == 2 and np.array_equal(lazy.compute(), named.embedding_)


def test_another_number_of_features_is_refused_before_anything_is_computed(in_memory):
    with pytest.raises(ValueError, match="5 features"):
        in_memory.transform(da.ones((10, 3), chunks=(5, 3)))


def test_regression_predicts_lazily_what_it_predicts_of_the_same_blocks(data, rng, light):
    X, y = data[0][:120], data[0][:120] @ np.arange(D) + rng.standard_normal(120)
    rows = da.from_array(X, chunks=(70, 2))
    fitted = SDRGPRegressor(random_state=0).fit(rows, da.from_array(y, chunks=50))
    lazy = [*fitted.predict(rows, return_std=True), fitted.predict_quantiles(rows), fitted.transform(rows)]
    blocks = [
        (*fitted.predict(block, return_std=True), fitted.predict_quantiles(block), fitted.transform(block))
        for block in (X[:70], X[70:])
    ]
    known = map(np.concatenate, zip(*blocks, strict=True))
    assert all(np.array_equal(a.compute(), b) for a, b in zip(lazy, known, strict=True))


def test_classification_predicts_lazily_what_it_predicts_in_memory(data, light):
    X, y = data[0][:150], np.array(["a", "b", "c"])[data[1][:150] % 3]
    fitted = SDRGPClassifier(2, random_state=0).fit(frame_of(X, 2), y)
    rows = frame_of(X, 4)
    here = rows.compute()
    assert np.array_equal(fitted.predict(rows).compute(), fitted.predict(here))
    assert np.allclose(fitted.predict_proba(rows).compute(), fitted.predict_proba(here), rtol=1e-12, atol=1e-12)


def test_a_joint_covariance_of_lazy_rows_is_refused(data):
    X = data[0][:60]
    fitted = SDRGPRegressor(experts=[], gp_steps=3, random_state=0).fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="return_cov"):
        fitted.predict(da.from_array(X), return_cov=True)
