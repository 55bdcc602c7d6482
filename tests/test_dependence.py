"""HSIC and CKA against their definitions, the target matrix B in its three forms, and features of the target kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import KernelCenterer

import distreduce.dependence
from distreduce.coupling.problem import hard_plan
from distreduce.dependence import RESIDUAL, center, cka, dependence_target, hsic, nystrom_features
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Delta, Linear, RationalQuadratic


@pytest.fixture
def kernels(rng):
    X = rng.standard_normal((14, 3))
    return RationalQuadratic()(X), RBF()(X[:, :1] + 0.5 * rng.standard_normal((14, 1)))


@pytest.fixture
def weights(rng):
    return rng.uniform(0.1, 3.0, 14)


def brute_force(K, L, w):
    """Σ_ij p_i p_j K̃_ij L̃_ij, with every mean of the centring written out as a sum."""
    p, n = w / w.sum(), len(w)

    def centred(M, i, j):
        row = sum(p[k] * M[i, k] for k in range(n))
        column = sum(p[k] * M[k, j] for k in range(n))
        return M[i, j] - row - column + sum(p[k] * p[m] * M[k, m] for k in range(n) for m in range(n))

    return sum(p[i] * p[j] * centred(K, i, j) * centred(L, i, j) for i in range(n) for j in range(n))


def test_center_against_sklearn_and_explicit_projection(kernels, weights):
    K, n = kernels[0], 14
    np.testing.assert_allclose(center(K), KernelCenterer().fit_transform(K), atol=1e-14)
    H = np.eye(n) - np.outer(np.ones(n), weights) / weights.sum()
    np.testing.assert_allclose(center(K, weights), H @ K @ H.T, atol=1e-14)
    np.testing.assert_allclose(center(K, weights) @ weights, 0.0, atol=1e-13)


def test_hsic_against_the_trace_formula(kernels):
    K, L = kernels
    H = np.eye(14) - 1 / 14
    assert hsic(K, L) == pytest.approx(np.trace(K @ H @ L @ H) / 14**2, rel=1e-12)


def test_weighted_hsic_and_cka_against_brute_force(kernels, weights):
    K, L = kernels
    assert hsic(K, L, weights) == pytest.approx(brute_force(K, L, weights), rel=1e-12)
    norm = np.sqrt(brute_force(K, K, weights) * brute_force(L, L, weights))
    assert cka(K, L, weights) == pytest.approx(brute_force(K, L, weights) / norm, rel=1e-12)


def test_linear_cka_is_the_squared_correlation(rng):
    x, y = rng.standard_normal((2, 40))
    expected = np.corrcoef(x, y)[0, 1] ** 2
    assert cka(Linear()(x[:, None]), Linear()(y[:, None])) == pytest.approx(expected, rel=1e-10)


def test_uncentred_is_the_formula_as_printed(kernels):
    K, L = kernels
    expected = (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))
    assert cka(K, L, centered=False) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("centered", [True, False])
def test_weight_two_is_a_point_given_twice(kernels, centered):
    K, L = kernels
    times = np.array([1, 2, 3] + [1] * 11)
    rows = np.repeat(np.arange(14), times)
    K_rep, L_rep = K[np.ix_(rows, rows)], L[np.ix_(rows, rows)]
    assert cka(K, L, times, centered) == pytest.approx(cka(K_rep, L_rep, None, centered), rel=1e-12)
    assert hsic(K, L, times) == pytest.approx(hsic(K_rep, L_rep), rel=1e-12)


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10), weight=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_invariances_and_range(scale, shift, weight, seed):
    rng = np.random.default_rng(seed)
    K, L = (RBF()(rng.standard_normal((9, 2))) for _ in range(2))
    w, order = rng.uniform(0.1, 1.0, 9), rng.permutation(9)
    value = cka(K, L, w)
    assert 0.0 <= value <= 1.0 + 1e-12
    assert cka(L, K, w) == pytest.approx(value)
    assert cka(scale * K + shift, L, weight * w) == pytest.approx(value, rel=1e-6)
    assert cka(K[np.ix_(order, order)], L[np.ix_(order, order)], w[order]) == pytest.approx(value)
    assert cka(K, K, w) == pytest.approx(1.0)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1])
def test_constant_kernels_depend_on_nothing(kernels, constant):
    K = np.full((14, 14), constant)
    assert cka(K, kernels[1]) == 0.0
    assert cka(kernels[1], K) == 0.0
    assert cka(np.zeros((14, 14)), kernels[1], centered=False) == 0.0


@pytest.mark.parametrize("bad", [np.ones(3), np.zeros(14), -np.ones(14), np.full(14, np.nan)])
def test_weights_are_checked(kernels, bad):
    with pytest.raises(InvalidInputError, match="weights must be 14"):
        cka(*kernels, bad)


def test_shapes_are_checked(kernels):
    with pytest.raises(InvalidInputError, match="same points"):
        hsic(kernels[0], kernels[1][:5, :5])
    for measure in (cka, hsic):
        with pytest.raises(InvalidInputError, match=r"not a kernel matrix.*\(14, 1\)"):
            measure(np.ones((14, 1)), kernels[1])
    assert hsic(kernels[0].tolist(), kernels[1].tolist()) == hsic(*kernels)


KERNELS = pytest.mark.parametrize("kernel", [RBF(1.3), Delta(), Linear()], ids=str)


def soft(rng, n=15, m=6):
    return sparse.csr_array(rng.uniform(0.5, 2, (n, 1)) * rng.dirichlet(np.ones(m), n))


def labels(rng, n=15):
    return np.eye(3)[rng.integers(3, size=n)]


def value(B, omega, K, dependence):
    """The dependence of a kernel K on B as the Z-step computes it."""
    if dependence == "hsic":
        return (K * B).sum()
    H = np.eye(len(K)) - np.outer(np.ones(len(K)), omega / omega.sum())
    K_used = H @ K @ H.T if dependence == "cka" else K
    return (K * B).sum() / np.sqrt(omega @ K_used**2 @ omega)


def expected(K, K_Y, omega, dependence):
    return hsic(K, K_Y, omega) if dependence == "hsic" else cka(K, K_Y, omega, centered=dependence == "cka")


@pytest.mark.parametrize("dependence", ["cka", "cka_uncentered", "hsic"])
@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
@KERNELS
def test_each_form_is_the_dependence_on_its_kernel(kernel, form, dependence, rng):
    T, Y = soft(rng), labels(rng)
    dense = T.toarray()
    q = dense.sum(axis=0)
    K_Y = dense.T @ kernel(Y) @ dense if form == "transport" else kernel(dense.T @ Y / q[:, None])
    omega = q if form == "mass" else np.ones(6)
    B, weights = dependence_target(T, Y, kernel, form, dependence)
    np.testing.assert_allclose(weights, omega, rtol=1e-14)
    K = RBF()(rng.normal(size=(6, 2)))
    assert value(B, weights, K, dependence) == pytest.approx(expected(K, K_Y, omega, dependence), rel=1e-10)


@KERNELS
def test_transport_by_blocks_is_the_whole_product(kernel, rng, monkeypatch):
    monkeypatch.setattr(distreduce.dependence, "BLOCK_ROWS", 4)
    T, Y = soft(rng), rng.normal(size=(15, 2))
    B, _ = dependence_target(T, Y, kernel, "transport", "cka_uncentered")
    K = T.toarray().T @ kernel(Y) @ T.toarray()
    np.testing.assert_allclose(B, K / np.linalg.norm(K), rtol=1e-11)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_one_to_one_plans_weigh_samples_as_repetitions(form, rng):
    Y, Z = rng.normal(size=(7, 1)), rng.normal(size=(7, 2))
    weights = np.r_[2.0, np.ones(6)]
    twice = np.r_[0, np.arange(7)]
    B, omega = dependence_target(hard_plan(np.arange(7), weights, 7), Y, RBF(), form, "cka")
    repeated = cka(RBF()(Z[twice]), RBF()(Y[twice]))
    assert value(B, omega, RBF()(Z), "cka") == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_samples_without_target_take_no_part(form, rng):
    T, Y = soft(rng), labels(rng)
    unknown = Y.copy()
    unknown[[1, 8]] = np.nan
    known = np.delete(np.arange(15), [1, 8])
    B, omega = dependence_target(T, unknown, Delta(), form, "cka")
    B_known, omega_known = dependence_target(T[known], Y[known], Delta(), form, "cka")
    np.testing.assert_allclose(np.c_[B, omega], np.c_[B_known, omega_known], rtol=1e-12)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_a_prototype_without_known_targets_takes_no_part(form, rng):
    Y = labels(rng, 8)
    Y[:2] = np.nan
    B, omega = dependence_target(hard_plan(np.arange(8) // 2, np.ones(8), 4), Y, Delta(), form, "cka")
    assert omega[0] == 0 and (B[0] == 0).all() and (B[:, 0] == 0).all()


@pytest.mark.parametrize("dependence", ["cka", "hsic"])
def test_constant_targets_have_no_direction(dependence):
    B, _ = dependence_target(hard_plan(np.arange(6) % 3, np.ones(6), 3), np.ones((6, 1)), RBF(), "mass", dependence)
    np.testing.assert_allclose(B, 0.0, atol=1e-12)


@pytest.mark.parametrize("dependence", ["cka", "hsic"])
def test_prototypes_of_equal_targets_have_no_direction(dependence):
    plan = sparse.csr_array(np.full((9, 4), 0.25))
    B, _ = dependence_target(plan, np.linspace(0.1, 1.7, 9)[:, None], RBF(), "barycentric", dependence)
    assert not B.any()


SMOOTH = pytest.mark.parametrize("kernel", [RBF(0.8), RationalQuadratic(length_scale=0.5)], ids=str)


def largest_error(features, kernel, Y):
    return np.abs(kernel(Y) - features(Y) @ features(Y).T).max()


@pytest.mark.parametrize("n_features", [3, 20, 256])
@pytest.mark.parametrize("c", [1, 3])
@SMOOTH
def test_no_entry_is_further_off_than_the_error_says(kernel, c, n_features, rng):
    Y = rng.normal(size=(400, c))
    features = nystrom_features(Y, kernel, n_features)
    assert largest_error(features, kernel, Y) <= features.error * (1 + 1e-6) + 1e-12


@SMOOTH
def test_the_error_is_the_largest_on_the_diagonal(kernel, rng):
    Y = rng.normal(size=(200, 3))
    features = nystrom_features(Y, kernel, 15)
    assert features.error == pytest.approx((1.0 - (features(Y) ** 2).sum(axis=1)).max(), rel=1e-9)


@pytest.mark.parametrize(("kernel", "enough"), [(RBF(1.0), 20), (RBF(0.1), 120), (RationalQuadratic(), 40)], ids=str)
def test_few_features_are_enough_in_one_dimension(kernel, enough, rng):
    """Standardised targets, to the residual where the choice of landmarks ends."""
    features = nystrom_features(rng.normal(size=(5000, 1)), kernel)
    assert features.error <= RESIDUAL and len(features.landmarks) <= enough


def test_targets_outside_the_sample_are_approximated_as_well(rng):
    features = nystrom_features(rng.normal(size=(3000, 1)), RBF(0.7))
    assert largest_error(features, RBF(0.7), rng.uniform(-2, 2, (100, 1))) <= 10 * RESIDUAL


def test_one_length_scale_a_target(rng):
    Y, kernel = rng.normal(size=(300, 2)), RBF((0.5, 2.0))
    features = nystrom_features(Y, kernel)
    assert largest_error(features, kernel, Y) <= features.error + 1e-12


@pytest.mark.parametrize("kernel", [Delta(), Linear()], ids=str)
def test_class_weights_are_their_own_features(kernel, rng):
    Y = np.eye(4)[rng.integers(4, size=30)]
    np.testing.assert_array_equal(nystrom_features(Y, kernel)(Y), Y)


def test_unknown_and_repeated_targets_add_no_landmark(rng):
    values = np.array([[0.0], [1.0], [np.nan], [1.0], [3.0]])
    np.testing.assert_array_equal(np.sort(nystrom_features(values, RBF()).landmarks.ravel()), [0.0, 1.0, 3.0])


def test_the_transported_kernel_needs_the_features_only(rng):
    """Tᵀ K_Y T = (Tᵀ Φ)(Tᵀ Φ)ᵀ, which is what the features are for."""
    Y, T = rng.normal(size=(200, 1)), rng.dirichlet(np.ones(5), 200)
    features = nystrom_features(Y, RBF())
    sums = T.T @ features(Y)
    np.testing.assert_allclose(sums @ sums.T, T.T @ RBF()(Y) @ T, rtol=1e-5)
