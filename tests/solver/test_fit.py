"""From a weighted sample to a fitted map: length scales, kernels, and the map's own formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from distreduce._utils.threads import SERIAL, Workers, single_threaded_blas
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.losses import SquaredLoss
from distreduce.mapping.relevance import input_kernel, median_length_scale
from distreduce.sharding.sample import Sample
from distreduce.solver.loop import fit_reduction
from distreduce.solver.problem import ReductionProblem, Settings

PROBLEM = ReductionProblem(
    sample=None,
    settings=Settings(eta=20.0, max_iter=3, max_inner_iter=30),
    n_components=2,
    n_prototypes=None,
    perplexity=8.0,
    init="auto",
    target_loss=SquaredLoss(),
    target_kernel=RBF(),
    input_kernel=RBF(1.5),
    mu=2.0,
    map_reg=0.05,
)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: on small arrays threads of BLAS only wait for one another."""
    with single_threaded_blas():
        yield


def make_sample(rng, n=40, **options):
    X = rng.normal(size=(n, 3))
    Y = X[:, :1] ** 2
    return Sample(**{"features": X, "weights": np.ones(n), "targets": Y, "kernel_targets": Y, **options})


def fit(sample, problem=PROBLEM, workers=SERIAL):
    return fit_reduction(replace(problem, sample=sample), np.random.RandomState(0), workers=workers)


@pytest.mark.parametrize("n_prototypes", [None, 6])
@pytest.mark.parametrize("kernel", [RBF(1.5), RationalQuadratic(), RBF([1.0, 2.0, 0.5])], ids=str)
def test_map_is_ridge_regression_on_the_samples_embedding(kernel, n_prototypes, rng):
    sample = make_sample(rng, weights=rng.uniform(0.5, 2, 40))
    found = fit(sample, replace(PROBLEM, n_prototypes=n_prototypes, input_kernel=kernel))
    h = sample.weights
    F = (found.reduction.plan.toarray() / h[:, None]) @ found.reduction.prototypes
    X, new = sample.features, rng.normal(size=(5, 3))
    L = np.linalg.solve(2.0 * kernel(X) + np.diag(0.05 / h), 2.0 * F)
    np.testing.assert_allclose(found.map(new), kernel(new, X) @ L, rtol=1e-8, atol=1e-10)


def test_threads_do_not_change_a_bit(rng):
    sample = make_sample(rng, n=300)
    problem = replace(PROBLEM, n_prototypes=170)
    pool = Workers(2)
    one, two = fit(sample, problem), fit(sample, problem, pool)
    pool.close()
    assert np.array_equal(one.reduction.prototypes, two.reduction.prototypes)
    assert np.array_equal(one.map.coefficients, two.map.coefficients)


def test_distances_instead_of_features(rng):
    sample = make_sample(rng)
    distances = replace(sample, features=cdist(sample.features, sample.features), precomputed=True)
    new = rng.normal(size=(4, 3))
    from_features = fit(sample).map(new)
    from_distances = fit(distances).map(cdist(new, sample.features))
    np.testing.assert_allclose(from_distances, from_features, rtol=1e-3, atol=1e-4)


def test_sparse_features_are_like_dense_ones(rng):
    sample = make_sample(rng)
    mapped = fit(replace(sample, features=sparse.csr_array(sample.features))).map(sparse.csr_array(sample.features[:5]))
    np.testing.assert_allclose(mapped, fit(sample).map(sample.features[:5]), rtol=1e-3, atol=1e-4)


def test_an_array_is_taken_as_the_initial_plan(rng):
    sample = make_sample(rng)
    start = np.arange(40) % 5
    found = fit(sample, replace(PROBLEM, n_prototypes=5, init=start, settings=replace(PROBLEM.settings, max_iter=0)))
    np.testing.assert_array_equal(found.reduction.plan.indices, start)


@pytest.mark.parametrize("n", [40, 300])
def test_median_length_scale_is_that_of_the_distances(n, rng):
    X = rng.normal(size=(n, 3))
    expected = np.sqrt(0.5 * np.median(pdist(X, "sqeuclidean")))
    assert median_length_scale(X, np.ones(n)) == pytest.approx(expected, rel=2e-3)
    assert median_length_scale(cdist(X, X), np.ones(n), precomputed=True) == pytest.approx(expected, rel=2e-3)


def test_median_length_scale_takes_weights_as_repetitions(rng):
    X, w = rng.normal(size=(12, 2)), rng.integers(1, 4, 12)
    repeated = median_length_scale(np.repeat(X, w, axis=0), np.ones(w.sum()))
    assert median_length_scale(X, w.astype(float)) == pytest.approx(repeated, rel=1e-12)


def test_median_of_a_large_sample_is_estimated(rng):
    X = rng.normal(size=(3000, 2))
    assert median_length_scale(X, np.ones(3000)) == pytest.approx(
        np.sqrt(0.5 * np.median(pdist(X[:2000]) ** 2)), rel=0.05
    )


def test_input_kernels_by_name(rng):
    sample = make_sample(rng)
    median = median_length_scale(sample.features, sample.weights)
    assert input_kernel("rbf", "median", sample, 1.0) == RBF(median)
    assert input_kernel("rq", "median", sample, 1.0) == RationalQuadratic(length_scale=median)
    assert input_kernel("linear", "median", sample, 1.0) == Linear()
    assert input_kernel("rbf", 3.0, sample, 2.0) == RBF(1.5)
    assert input_kernel("rbf", [1.0, 2.0, 4.0], sample, 2.0) == RBF([0.5, 1.0, 2.0])
    own = RBF(0.1)
    assert input_kernel(own, "median", sample, 1.0) is own


def test_learned_length_scales_leave_rows_without_target_out(rng):
    sample = make_sample(rng, n=80)
    Y = sample.kernel_targets.copy()
    Y[:5] = np.nan
    kernel = input_kernel("rbf", "ard", replace(sample, kernel_targets=Y), 1.0)
    scales = np.array(kernel.length_scale)
    assert scales[1:].min() > 3 * scales[0]


@pytest.mark.parametrize("options", [{"kernel_targets": None}, {"precomputed": True}], ids=["no y", "distances"])
def test_learned_length_scales_need_features_and_targets(options, rng):
    with pytest.raises(InvalidInputError, match="length_scale='ard'"):
        input_kernel("rbf", "ard", make_sample(rng, **{**options, "features": np.eye(40)}), 1.0)


def test_one_scale_a_feature_needs_the_gaussian_kernel(rng):
    with pytest.raises(InvalidInputError, match="length_scale"):
        input_kernel("rq", [1.0, 2.0, 3.0], make_sample(rng), 1.0)
