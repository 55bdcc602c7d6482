"""Where the coupling of samples in shards starts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from coupling.coupling_problems import masses
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, homogeneity_score

from distreduce._utils.threads import Workers, single_threaded_blas
from distreduce.affinity.sparse import neighbour_affinity
from distreduce.coupling import initial_sharded
from distreduce.coupling.initial_sharded import initial_plan_on_shards
from distreduce.kernels import RBF, Delta, Linear
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.sharding.shards import local_shards


def blobs(n=600, centers=3):
    X, groups = make_blobs(n, centers=centers, cluster_std=0.3, center_box=(-8, 8), random_state=0)
    return X, groups


def plan_of(X, Y, m, *, init="auto", kernel=None, weights=None, drawn=None, threads=1):
    """A plan over four shards of unequal size; `drawn` are the samples that the driver sees (every second)."""
    n = X.shape[0]
    weights = np.ones(n) if weights is None else weights
    drawn = np.arange(0, n, 2) if drawn is None else drawn
    pool = Workers(threads)
    bounds = np.array([0, n // 5, n // 2, n - 3, n])
    shards = local_shards({"features": X, "kernel_targets": Y}, pool, bounds)
    with single_threaded_blas():
        subsample = Sample(X[drawn], weights[drawn], kernel_targets=None if Y is None else Y[drawn])
        plan = initial_plan_on_shards(
            init,
            m,
            ShardedSample(shards, weights, subsample, probes=None),
            kernel,
            affinity_of=partial(neighbour_affinity, perplexity=5.0),
            random_state=np.random.RandomState(0),
        )
    pool.close()
    return plan


def two_labels(n=600):
    """Labels that the inputs do not show."""
    X, groups = blobs(n)
    return X, groups, np.random.default_rng(1).integers(2, size=n)


@pytest.mark.parametrize("m", [2, 7, 40, 350])
@pytest.mark.parametrize("init", ["auto", "random", "kmeans", "supervised_spectral"])
@pytest.mark.parametrize("target", ["none", "classes", "numbers"])
def test_every_prototype_is_used_and_every_mass_is_placed(init, m, target, rng):
    """More prototypes than samples drawn included."""
    X, groups = blobs()
    weights = rng.uniform(0.5, 2, len(X))
    Y, kernel = {"none": (None, None), "classes": (np.eye(3)[groups], Delta()), "numbers": (X[:, :1], RBF())}[target]
    plan = plan_of(X, Y, m, init=init, kernel=kernel, weights=weights)
    rows, columns = masses(plan)
    np.testing.assert_allclose(rows, weights, rtol=1e-15)
    assert plan.shape == (600, m) and (columns > 0).all() and plan.nnz == 600


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.float32])
def test_clusters_are_found_without_targets(kind):
    X, groups = blobs()
    assert adjusted_rand_score(groups, plan_of(kind(X), None, 3).indices) == 1.0


@pytest.mark.parametrize("kernel", [Delta(), Linear()], ids=str)
def test_no_prototype_mixes_classes(kernel):
    X, _, labels = two_labels()
    assert homogeneity_score(labels, plan_of(X, np.eye(2)[labels], 12, kernel=kernel).indices) == pytest.approx(1.0)


def test_a_class_is_cut_as_its_own_samples_are():
    X, groups, labels = two_labels()
    plan = plan_of(X, np.eye(2)[labels], 6, kernel=Delta())
    assert adjusted_rand_score(2 * groups + labels, plan.indices) == 1.0


@pytest.mark.parametrize("init", ["kmeans", "spectral"])
def test_the_targets_are_looked_at_only_where_asked_for(init):
    X, groups, labels = two_labels()
    plan = plan_of(X, np.eye(2)[labels], 3, init=init, kernel=Delta())
    assert adjusted_rand_score(groups, plan.indices) == 1.0


def test_prototypes_are_shared_out_by_mass():
    X, groups = blobs()
    weights = np.where(groups == 0, 6.0, 1.0)
    plan = plan_of(X, np.eye(3)[groups], 16, kernel=Delta(), weights=weights)
    assert [len(np.unique(plan.indices[groups == k])) for k in range(3)] == [12, 2, 2]


def test_a_class_that_was_not_drawn_has_a_prototype_of_its_own():
    X, groups = blobs()
    labels = groups.copy()
    labels[[1, 301]] = 3
    plan = plan_of(X, np.eye(5)[labels], 10, kernel=Delta())
    assert homogeneity_score(labels == 3, plan.indices) == pytest.approx(1.0)


def test_a_heavy_class_of_few_samples_has_a_prototype_for_each():
    """Five samples, two of them drawn, with most of the mass."""
    X, groups = blobs()
    labels = np.zeros(600, dtype=int)
    rare = np.array([0, 1, 201, 400, 599])
    labels[rare] = 1
    plan = plan_of(X, np.eye(2)[labels], 20, kernel=Delta(), weights=np.where(labels == 1, 1000.0, 1.0))
    assert len(np.unique(plan.indices[rare])) == 5


def test_samples_without_label_go_to_the_nearest_centre_of_all():
    X, groups = blobs()
    Y = np.eye(3)[groups]
    Y[::3] = np.nan
    assert adjusted_rand_score(groups, plan_of(X, Y, 3, kernel=Delta()).indices) == 1.0


def test_fewer_labels_than_prototypes():
    """One label per class: the others are clustered with the class whose label is nearest."""
    X, groups = blobs()
    Y = np.full((600, 3), np.nan)
    for k in range(3):
        Y[np.flatnonzero(groups == k)[0]] = np.eye(3)[k]
    plan = plan_of(X, Y, 30, kernel=Delta())
    assert homogeneity_score(groups, plan.indices) == pytest.approx(1.0) and len(np.unique(plan.indices)) == 30


def test_numbers_are_parted_where_the_inputs_do_not_show_them(rng):
    X, groups, labels = two_labels()
    Y = 3.0 * labels[:, None] + 0.01 * rng.normal(size=(600, 1))
    for scale in (1.0, 1e3):  # no unit of x or of y matters
        plan = plan_of(scale * X, Y / scale, 12, kernel=RBF())
        assert homogeneity_score(labels, plan.indices) == pytest.approx(1.0)


def test_numbers_that_are_unknown_are_no_distance(rng):
    X, groups = blobs()
    Y = groups[:, None] + 0.01 * rng.normal(size=(600, 1))
    Y[::3] = np.nan
    assert adjusted_rand_score(groups, plan_of(X, Y, 3, kernel=RBF()).indices) == 1.0


def test_targets_that_are_all_unknown_in_the_sample_drawn(rng):
    X, groups = blobs()
    Y = groups[:, None].astype(float)
    Y[::2] = np.nan
    assert adjusted_rand_score(groups, plan_of(X, Y, 3, kernel=RBF()).indices) == 1.0


def test_the_joint_clusters_are_those_of_scaled_columns(rng):
    """All samples drawn: the plan is scikit-learn's own labelling of [x / s_x, y / s_y]."""
    X, Y = rng.normal(size=(300, 4)) * [1, 2, 3, 4], 7.0 * rng.normal(size=(300, 2))
    columns = np.hstack([A / np.sqrt(A.var(axis=0).sum()) for A in (X, Y)])
    expected = KMeans(8, n_init=1, random_state=np.random.RandomState(0)).fit(columns).labels_
    found = plan_of(X, Y, 8, kernel=RBF(), drawn=np.arange(300)).indices
    assert adjusted_rand_score(expected, found) == 1.0


def test_repeated_samples_start():
    X = np.repeat(np.arange(4.0)[:, None], 50, axis=0)
    plan = plan_of(X, np.eye(2)[(X[:, 0] > 1).astype(int)], 20, kernel=Delta())
    assert (masses(plan)[1] > 0).all()


def test_neither_threads_nor_blocks_change_the_plan(monkeypatch):
    X, groups = blobs()
    one = plan_of(X, np.eye(3)[groups], 20, kernel=Delta())
    monkeypatch.setattr(initial_sharded, "BLOCK_ROWS", 17)
    two = plan_of(X, np.eye(3)[groups], 20, kernel=Delta(), threads=2)
    np.testing.assert_array_equal(one.indices, two.indices)
