"""The map on landmarks: the dense map where all samples are landmarks, that of Q + D where they are few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import distreduce.mapping.landmarks as landmarks_module
from distreduce._utils.threads import Workers
from distreduce.coupling.problem import hard_plan
from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import MapRegression, barycentres
from distreduce.mapping.landmarks import (
    PANEL,
    GatherInformation,
    LandmarkKernel,
    LandmarkRegression,
    orthonormal_axes,
    spread_landmarks,
)
from distreduce.sharding.shards import local_shards

MU, LAM = 0.7, 0.05
PLANS = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
KERNELS = pytest.mark.parametrize(
    "kernel", [RBF(1.2), RBF((0.8, 1.5, 2.0)), RationalQuadratic(length_scale=0.8), Linear()], ids=str
)


def case(rng, n=60, m=5, soft=False):
    """Samples, weights, a plan and prototypes."""
    X, h = rng.normal(size=(n, 3)), rng.uniform(0.5, 3.0, n)
    return X, h, a_plan(rng, h, m, soft), rng.normal(size=(m, 2))


def a_plan(rng, h, m=5, soft=False):
    if soft:
        return sparse.csr_array(h[:, None] * rng.dirichlet(np.ones(m), len(h)))
    return hard_plan(rng.integers(m, size=len(h)), h, m)


def projection(X, h, landmarks, kernel, workers=None):
    """Over shards of unequal size, none of them a multiple of a block."""
    bounds = np.array([0, len(h) // 3, len(h) // 2 + 1, len(h)])
    shards = local_shards({"features": X, "shares": None}, workers or Workers(1), bounds)
    return LandmarkRegression(shards, landmarks, kernel, h, MU, LAM)


def brute_force(X, h, F, landmarks, kernel):
    """L by least squares on the stacked rows √(μh) (f − kL) and √λ S L, SᵀS = K_rr, and the value there."""
    K_rr, K = kernel(landmarks), kernel(X, landmarks)
    values, vectors = np.linalg.eigh(K_rr)
    S = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    root = np.sqrt(MU * h)[:, None]
    rows, right = np.vstack([root * K, np.sqrt(LAM) * S]), np.vstack([root * F, np.zeros((len(S), F.shape[1]))])
    L = np.linalg.lstsq(rows, right, rcond=1e-13)[0]
    return L, 0.5 * ((rows @ L - right) ** 2).sum()


@PLANS
@KERNELS
def test_all_samples_as_landmarks_are_the_dense_map(kernel, soft, rng):
    X, h, plan, Z = case(rng, soft=soft)
    dense, F = MapRegression(kernel(X), h, MU, LAM), barycentres(plan, h) @ Z
    few = projection(X, h, X, kernel)
    L = dense.coefficients(F)
    np.testing.assert_allclose(few.quadratic(plan), dense.quadratic(plan), atol=1e-6)
    np.testing.assert_allclose(few.fitted(plan, Z), dense.values(F, L), atol=1e-6)


@PLANS
def test_all_samples_as_landmarks_have_the_dense_coefficients(soft, rng):
    """For a kernel of full rank; where it has none, several L give the same map."""
    X, h, plan, Z = case(rng, soft=soft)
    L = MapRegression(RBF(0.5)(X), h, MU, LAM).coefficients(barycentres(plan, h) @ Z)
    np.testing.assert_allclose(projection(X, h, X, RBF(0.5)).coefficients(barycentres(plan, h) @ Z), L, atol=1e-6)


def explained_and_diagonal(X, landmarks, kernel):
    """K̃ = Q + diag(K − Q), by its definition."""
    K_nr = kernel(X, landmarks)
    Q = K_nr @ np.linalg.pinv(kernel(landmarks), rcond=1e-12, hermitian=True) @ K_nr.T
    return Q + np.diag(np.maximum(np.diagonal(kernel(X)) - np.diagonal(Q), 0.0))


@PLANS
@KERNELS
def test_few_landmarks_are_the_dense_map_of_what_they_explain_and_the_diagonal(kernel, soft, rng):
    X, h, plan, Z = case(rng, soft=soft)
    dense = MapRegression(explained_and_diagonal(X, X[::6], kernel), h, MU, LAM)
    few = projection(X, h, X[::6], kernel)
    np.testing.assert_allclose(few.quadratic(plan), dense.quadratic(plan), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(few.fitted(plan, Z), dense.fitted(plan, Z), rtol=1e-6, atol=1e-7)


@KERNELS
def test_coefficients_are_those_of_least_squares(kernel, rng):
    X, h, plan, Z = case(rng, soft=True)
    L, _ = brute_force(X, h, barycentres(plan, h) @ Z, X[::6], kernel)
    found = projection(X, h, X[::6], kernel).coefficients(barycentres(plan, h) @ Z)
    np.testing.assert_allclose(kernel(X, X[::6]) @ found, kernel(X, X[::6]) @ L, rtol=1e-6, atol=1e-8)


def test_many_landmarks_of_a_smooth_kernel_need_no_repair(rng):
    """K_rr with eigenvalues down to rounding, and landmarks twice: warnings are errors here."""
    X, h, plan, Z = case(rng, n=400)
    _, smallest = brute_force(X, h, barycentres(plan, h) @ Z, X[:150], RBF(3.0))
    R = projection(X, h, np.vstack([X[:150], X[:20]]), RBF(3.0)).quadratic(plan)
    assert 0.5 * np.trace(Z.T @ R @ Z) == pytest.approx(smallest, rel=1e-5)


@pytest.mark.parametrize("n_moved", [0, 3, 50])
def test_a_plan_after_others_has_the_quadratic_it_has_first(n_moved, rng):
    X, h, plan, _ = case(rng, n=300)
    few = projection(X, h, X[::10], RBF(1.2))
    for _ in range(12):
        few.quadratic(plan)
        moved = plan.indices.copy()
        moved[rng.choice(300, n_moved, replace=False)] = rng.integers(5, size=n_moved)
        plan = hard_plan(moved, h, 5)
    fresh = projection(X, h, X[::10], RBF(1.2)).quadratic(plan)
    np.testing.assert_allclose(few.quadratic(plan), fresh, rtol=1e-11, atol=1e-11)


def test_a_plan_is_compared_with_the_landmarks_once(rng, monkeypatch):
    X, h, plan, _ = case(rng, n=300)
    few, passes, whole = projection(X, h, X[::10], RBF(1.2)), [], LandmarkRegression._pass
    monkeypatch.setattr(LandmarkRegression, "_pass", lambda self, plan: passes.append(plan) or whole(self, plan))
    first = few.quadratic(plan)
    few.fitted(plan, np.ones((5, 2)))
    other = few.quadratic(hard_plan((plan.indices + 1) % 5, h, 5))
    assert len(passes) == 2
    np.testing.assert_array_equal(few.quadratic(plan), first)  # whatever plans came between: a fit can be resumed
    assert abs(other - first).max() > 1e-3


def test_landmarks_are_spread_over_clusters_that_single_rows_are_far_from(rng):
    """In 50 dimensions a row is far from all others, but not from the centre of its cluster."""
    centres = rng.normal(size=(20, 50))
    X = centres[rng.integers(20, size=2000)] + 0.7 * rng.normal(size=(2000, 50))
    found = spread_landmarks(X, 40)
    assert found.shape == (40, 50) and cdist(X, found).min(axis=1).mean() < 0.8 * cdist(X[40:], X[:40]).min(1).mean()
    np.testing.assert_array_equal(spread_landmarks(X[:30], 40), X[:30])


@pytest.mark.parametrize("kind", [np.float32, sparse.csr_array, sparse.csr_matrix])
@KERNELS
def test_sparse_and_single_precision_features(kernel, kind, rng):
    X, h, plan, _ = case(rng)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(np.float64)
    given = X.astype(np.float32) if kind is np.float32 else kind(X)
    few = projection(given, h, given[::6], kernel)
    np.testing.assert_allclose(few.quadratic(plan), projection(X, h, X[::6], kernel).quadratic(plan), rtol=1e-8)


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e6])
@pytest.mark.parametrize("length_scale", [1.0, (0.3, 1.0, 4.0)], ids=["scalar", "ard"])
def test_the_fast_kernel_is_the_kernel(length_scale, scale, rng):
    """Far from the origin and near a landmark alike."""
    X = scale * (50.0 + rng.normal(size=(40, 3)))
    kernel = RBF(scale * np.asarray(length_scale))
    np.testing.assert_allclose(LandmarkKernel(kernel, X[::3])(X), kernel(X, X[::3]), atol=1e-10)


def test_blocks_do_not_change_the_result(rng, monkeypatch):
    X, h, plan, _ = case(rng, soft=True)
    whole = projection(X, h, X[::6], RBF(1.2)).quadratic(plan)
    monkeypatch.setattr(landmarks_module, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(projection(X, h, X[::6], RBF(1.2)).quadratic(plan), whole, rtol=1e-11, atol=1e-12)


def test_threads_do_not_change_a_bit(rng):
    X, h, plan, Z = case(rng, n=500)
    pool = Workers(2)
    one, two = (projection(X, h, X[::10], RBF(1.2), workers) for workers in (None, pool))
    np.testing.assert_array_equal(one.quadratic(plan), two.quadratic(plan))
    F = barycentres(plan, h) @ Z
    np.testing.assert_array_equal(one.coefficients(F), two.coefficients(F))
    pool.close()


def test_places_of_a_damaged_checkpoint_give_values_that_the_solver_can_refuse(rng):
    X, h, plan, Z = case(rng)
    Z[2, 0] = np.inf
    with np.errstate(invalid="ignore"):
        values = projection(X, h, X[:20], RBF(1.2)).fitted(plan, Z)  # SciPy's ValueError names no cause
    assert not np.isfinite(values).all()


def test_a_kernel_that_is_no_number_is_an_error(rng):
    X, h, _, _ = case(rng)
    with pytest.raises(NumericalError, match="length_scale"):
        projection(X, h, np.full((4, 3), np.nan), RBF())


RATIO = 7.0


def whole_sums(features, weights, similarity, axes):
    """Σ v φφᵀ and Σ h φφᵀ as written, and v/h."""
    phi = similarity(features) @ axes
    shares = 1.0 / (1.0 + RATIO * weights * np.maximum(1.0 - (phi**2).sum(axis=1), 0.0))
    return phi.T @ ((weights * shares)[:, None] * phi), phi.T @ (weights[:, None] * phi), shares


@pytest.mark.parametrize("q", [1, PANEL - 1, PANEL, 2 * PANEL + 3])
@pytest.mark.parametrize("triangular", [False, True])
@pytest.mark.parametrize("name", ["shared", "plain"])
def test_sums_over_two_shards_are_those_of_all_rows(name, triangular, q):
    rng, r = np.random.default_rng(q), 2 * PANEL + 5
    features, weights = rng.normal(size=(700, 3)), rng.uniform(0.5, 2.0, 700)
    similarity, axes = LandmarkKernel(RBF(), rng.normal(size=(r, 3))), 0.02 * rng.normal(size=(r, q))
    axes = np.triu(axes) if triangular else axes
    shared, plain, shares = whole_sums(features, weights, similarity, axes)
    shards = local_shards({"features": features, "shares": None}, bounds=np.array([0, 300, 700]))
    found = shards.total(GatherInformation(weights, similarity, axes, RATIO))
    np.testing.assert_allclose(np.concatenate(found.shares), shares, rtol=1e-12)
    expected = {"shared": shared, "plain": plain}[name]
    np.testing.assert_allclose(np.triu(getattr(found, name)), np.triu(expected), rtol=1e-9, atol=1e-10)


def a_kernel(rng, n=80, length_scale=1.0):
    return RBF(length_scale)(rng.normal(size=(n, 3)))


@pytest.mark.parametrize("length_scale", [0.3, 0.5, 1.0, 3.0, 30.0])
def test_the_kernel_is_the_identity_in_them(length_scale, rng):
    """To the rounding that the least direction that is kept, 1e-12 of the largest, leaves."""
    K = a_kernel(rng, length_scale=length_scale)
    A = orthonormal_axes(K)
    np.testing.assert_allclose(A.T @ K @ A, np.eye(A.shape[1]), atol=1e-3)


def test_a_factor_spans_what_the_eigenvectors_do(rng):
    """AAᵀ is K⁻¹ for both."""
    K = a_kernel(rng, length_scale=0.4)
    A, vectors = landmarks_module._inverse_cholesky(K), landmarks_module._scaled_eigenvectors(K)
    np.testing.assert_allclose(A @ A.T, vectors @ vectors.T, rtol=1e-9, atol=1e-9)


def test_a_kernel_far_from_singular_is_factorised(rng, monkeypatch):
    monkeypatch.delattr(landmarks_module, "_scaled_eigenvectors")
    assert orthonormal_axes(a_kernel(rng, length_scale=0.4)).shape == (80, 80)


@pytest.mark.parametrize("length_scale", [0.4, 3.0])
def test_directions_of_repeated_landmarks_are_left_out(length_scale, rng):
    X = rng.normal(size=(40, 3))
    once, twice = (orthonormal_axes(RBF(length_scale)(rows)) for rows in (X, np.vstack([X, X[:7]])))
    assert twice.shape[1] == once.shape[1]


def test_a_kernel_with_nan_is_rejected(rng):
    K = a_kernel(rng)
    K[3, 5] = np.nan
    with pytest.raises(NumericalError, match="not finite"):
        orthonormal_axes(K)


@pytest.mark.parametrize("computed", [False, True])
def test_left_out_is_the_map_fitted_without_the_sample(rng, monkeypatch, computed):
    monkeypatch.setattr(landmarks_module, "PROJECTIONS", 4 if computed else 100_000)  # leverages to half a percent
    monkeypatch.setattr(landmarks_module, "MOST_ESTIMATED", 0.05 if computed else 1.0)
    X, h, plan, Z = case(rng)
    landmarks, F = X[:8], barycentres(plan, h) @ Z
    found = projection(X, h, landmarks, RBF(1.2)).left_out(F)
    accuracy = {"rtol": 1e-6} if computed else {"rtol": 0.02, "atol": 0.01}
    for i in (0, 17, 59):  # the first is a landmark itself, and stays one
        rest = np.arange(len(X)) != i
        L, _ = brute_force(X[rest], h[rest], F[rest], landmarks, RBF(1.2))
        np.testing.assert_allclose(found[i], (RBF(1.2)(X[[i]], landmarks) @ L)[0], **accuracy)


def test_cross_fit_needs_no_diagonal_and_predicts_what_has_no_weight(rng):
    X, h, _, _ = case(rng)
    h[::5] = 0.0
    Y = np.where(h > 0, rng.normal(size=len(h)), 0.0)[:, None]
    bounds = np.array([0, 20, len(h)])
    shards = local_shards({"features": X, "shares": None}, Workers(1), bounds)
    regression = LandmarkRegression(shards, X[:15], RBF(1.2), h, MU, LAM, residual=False)
    values, coefficients = regression.cross_fit(Y)
    L, _ = brute_force(X, h, Y, X[:15], RBF(1.2))
    np.testing.assert_allclose(coefficients, L, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(values[::5], (RBF(1.2)(X, X[:15]) @ L)[::5], rtol=1e-6, atol=1e-8)


def test_expected_targets_are_those_of_the_regression_on_the_other_samples(rng, monkeypatch):
    monkeypatch.setattr(landmarks_module, "PROJECTIONS", 100_000)
    X, h, _, _ = case(rng)
    landmarks, Y = X[:8], np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    found = projection(X, h, landmarks, RBF(1.2)).expect(Y, shares=False)
    mean = h @ Y / h.sum()
    for i in (0, 17, 59):
        rest = np.arange(len(X)) != i
        L, _ = brute_force(X[rest], h[rest], Y[rest] - mean, landmarks, RBF(1.2))
        expected = np.clip(mean + (RBF(1.2)(X[[i]], landmarks) @ L)[0], Y.min(axis=0), Y.max(axis=0))
        np.testing.assert_allclose(found[i], expected, rtol=0.02, atol=0.02)
