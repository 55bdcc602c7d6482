"""Where the coupling starts."""

from __future__ import annotations

import numpy as np
import pytest
from coupling.coupling_problems import masses
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from distreduce.affinity import symmetric_entropic_affinity
from distreduce.coupling.initial import initial_plan
from distreduce.coupling.problem import plan_from_array
from distreduce.kernels import Delta

KINDS = ["auto", "random", "kmeans", "spectral", "supervised_spectral"]


def blobs(n=90):
    """Three well-parted groups with their affinity."""
    X, groups = make_blobs(n, centers=3, cluster_std=0.3, center_box=(-8, 8), random_state=0)
    return X, groups, symmetric_entropic_affinity(cdist(X, X, "sqeuclidean"), min(8.0, n / 2)).matrix


def plan_of(kind, m, X, C, weights=None, **options):
    weights = np.ones(len(X)) if weights is None else weights
    return initial_plan(
        kind, m, weights=weights, affinity=C, features=X, random_state=np.random.RandomState(0), **options
    )


@pytest.mark.parametrize("m", [2, 7, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_every_prototype_is_used_and_every_mass_is_placed(kind, m, rng):
    X, groups, C = blobs()
    weights = rng.uniform(0.5, 2, len(X))
    plan = plan_of(kind, m, X, C, weights, targets=np.eye(3)[groups], target_kernel=Delta())
    rows, columns = masses(plan)
    np.testing.assert_allclose(rows, weights, rtol=1e-15)
    assert plan.shape == (90, m) and (columns > 0).all() and plan.nnz == 90


@pytest.mark.parametrize("kind", ["identity", "auto"])
def test_as_many_prototypes_as_samples_start_one_to_one(kind, rng):
    X, _, C = blobs(12)
    weights = rng.uniform(0.5, 2, 12)
    np.testing.assert_array_equal(plan_of(kind, 12, X, C, weights).toarray(), np.diag(weights))


@pytest.mark.parametrize("kind", ["kmeans", "spectral", "auto"])
def test_clusters_are_found(kind):
    X, groups, C = blobs()
    assert adjusted_rand_score(groups, plan_of(kind, 3, X, C).indices) == 1.0


def test_supervised_spectral_groups_by_class():
    """Classes that the inputs do not show: two labels at random inside every blob."""
    X, groups, C = blobs(120)
    labels = np.random.default_rng(1).integers(2, size=120)
    plan = plan_of("supervised_spectral", 12, X, C, targets=np.eye(2)[labels], target_kernel=Delta())
    heaviest = contingency_matrix(2 * groups + labels, plan.indices).max(axis=0)
    assert heaviest.sum() == 120


def test_spectral_does_not_look_at_the_targets():
    X, groups, C = blobs()
    targets = np.eye(2)[np.random.default_rng(1).integers(2, size=90)]
    with_targets = plan_of("spectral", 3, X, C, targets=targets, target_kernel=Delta())
    assert adjusted_rand_score(groups, with_targets.indices) == 1.0


def test_samples_without_target_go_with_their_neighbours():
    X, groups, C = blobs(120)
    targets = np.eye(3)[groups]
    targets[::4] = np.nan
    plan = plan_of("supervised_spectral", 3, X, C, targets=targets, target_kernel=Delta())
    assert adjusted_rand_score(groups, plan.indices) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_one_plan(kind):
    X, _, C = blobs()
    plans = [plan_of(kind, 10, X, C) for _ in range(2)]
    np.testing.assert_array_equal(plans[0].indices, plans[1].indices)


def test_tiny_samples():
    X, _, C = blobs(3)
    for kind in KINDS:
        assert (masses(plan_of(kind, 2, X, C))[1] > 0).all()


def test_plan_from_shares_and_from_assignments():
    weights = np.array([1.0, 2.0, 4.0])
    shares = np.array([[1.0, 1.0], [0.0, 5.0], [3.0, 1.0]])
    np.testing.assert_allclose(plan_from_array(shares, weights).toarray(), [[0.5, 0.5], [0, 2], [3, 1]])
    np.testing.assert_allclose(plan_from_array(np.array([1, 0, 1]), weights).toarray(), [[0, 1], [2, 0], [0, 4]])
