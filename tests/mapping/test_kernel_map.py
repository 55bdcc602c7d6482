"""The out-of-sample map: the printed objective minimised numerically, kernel ridge regression, and hopeless kernels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge

from distreduce.exceptions import IllConditionedWarning, NumericalError
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import KernelMap, MapRegression, barycentres
from distreduce.mapping.kernel_map import kernel_matrix, ridge_for_steps

CONSTANTS = pytest.mark.parametrize(("mu", "lam"), [(1.0, 1e-2), (3.0, 0.5), (0.2, 1e-3)])


def sample(rng, n=12, p=2):
    """Inputs, their kernel, weights and an embedding of the samples."""
    X = rng.normal(size=(n, 3))
    return X, RBF(1.5)(X), rng.uniform(0.5, 3.0, n), rng.normal(size=(n, p))


def printed_objective(L, K, h, F, mu, lam):
    """(μ/2) Σ_i h_i |f_i − (KL)_i|² + (λ/2) Tr(LᵀKL)."""
    return 0.5 * mu * (h[:, None] * (F - K @ L) ** 2).sum() + 0.5 * lam * np.trace(L.T @ K @ L)


def of_inverse(R, Z):
    return 0.5 * np.trace(Z.T @ R @ Z)


@CONSTANTS
def test_coefficients_minimise_the_printed_objective(mu, lam, rng):
    _, K, h, F = sample(rng, n=6)
    L = MapRegression(K.copy(), h, mu, lam).coefficients(F)

    def flat(values):
        M = values.reshape(F.shape)
        return printed_objective(M, K, h, F, mu, lam), (mu * K @ (h[:, None] * (K @ M - F)) + lam * K @ M).ravel()

    found = minimize(flat, np.zeros(F.size), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    assert printed_objective(L, K, h, F, mu, lam) <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(flat(L.ravel())[1], 0.0, atol=1e-10)


@CONSTANTS
def test_elimination_is_the_minimum(mu, lam, rng):
    """½ Tr(ZᵀRZ), with R from the plan, is the printed objective at its minimiser for F = T̂ Z."""
    _, K, h, _ = sample(rng)
    plan = sparse.csr_array(h[:, None] * rng.dirichlet(np.ones(5), len(h)))
    Z = rng.normal(size=(5, 2))
    projection = MapRegression(K.copy(), h, mu, lam)
    F = (plan.toarray() / h[:, None]) @ Z
    minimum = printed_objective(projection.coefficients(F), K, h, F, mu, lam)
    assert of_inverse(projection.quadratic(plan), Z) == pytest.approx(minimum, rel=1e-10)


def test_quadratic_is_the_hessian_of_the_minimum(rng):
    _, K, h, _ = sample(rng)
    plan = sparse.csr_array(h[:, None] * rng.dirichlet(np.ones(4), len(h)))
    projection = MapRegression(K.copy(), h, 2.0, 0.1)

    def minimum(z):
        F = (plan.toarray() / h[:, None]) @ z[:, None]
        return printed_objective(projection.coefficients(F), K, h, F, 2.0, 0.1)

    E = np.eye(4)
    # A quadratic form: second differences are exact for any step.
    hessian = [[minimum(a + b) - minimum(a) - minimum(b) for b in E] for a in E]
    np.testing.assert_allclose(projection.quadratic(plan), hessian, rtol=1e-9, atol=1e-10)


@CONSTANTS
def test_fitted_values_are_the_kernel_times_the_coefficients(mu, lam, rng):
    _, K, h, F = sample(rng)
    projection = MapRegression(K.copy(), h, mu, lam)
    L = projection.coefficients(F)
    np.testing.assert_allclose(projection.values(F, L), K @ L, rtol=1e-9, atol=1e-10)


def test_weighted_map_is_kernel_ridge_regression(rng):
    X, K, h, F = sample(rng)
    L = MapRegression(K.copy(), h, 1.0, 0.05).coefficients(F)
    ridge = KernelRidge(alpha=0.05, kernel="rbf", gamma=0.5 / 1.5**2).fit(X, F, sample_weight=h)
    new = rng.normal(size=(7, 3))
    np.testing.assert_allclose(KernelMap(RBF(1.5), X, L)(new), ridge.predict(new), rtol=1e-9, atol=1e-11)


def test_a_weight_of_two_is_a_sample_twice(rng):
    X, K, _, F = sample(rng)
    twice = np.r_[0, np.arange(len(X))]
    weights = np.r_[2.0, np.ones(len(X) - 1)]
    once = KernelMap(RBF(1.5), X, MapRegression(K.copy(), weights, 1.0, 0.1).coefficients(F))
    repeated = MapRegression(K[np.ix_(twice, twice)], np.ones(len(twice)), 1.0, 0.1).coefficients(F[twice])
    new = rng.normal(size=(5, 3))
    np.testing.assert_allclose(once(new), KernelMap(RBF(1.5), X[twice], repeated)(new), rtol=1e-10, atol=1e-12)


def test_barycentres_are_shares(rng):
    h = rng.uniform(0.5, 2.0, 6)
    shares = rng.dirichlet(np.ones(3), 6)
    np.testing.assert_allclose(barycentres(sparse.csr_array(h[:, None] * shares), h).toarray(), shares, rtol=1e-14)


@pytest.mark.parametrize("kernel", [RBF(9.0), RBF(np.full(80, 9.0)), RationalQuadratic(), Linear()], ids=str)
def test_a_row_does_not_depend_on_its_batch(kernel, rng, monkeypatch):
    X, new = rng.normal(size=(50, 80)), rng.normal(size=(33, 80))
    mapping = KernelMap(kernel, X, rng.normal(size=(50, 2)))
    whole = mapping(new)
    alone = np.vstack([mapping(new[i : i + 1]) for i in range(33)])
    np.testing.assert_array_equal(alone, whole)
    monkeypatch.setattr("distreduce.mapping.kernel_map.BATCH_NUMBERS", 200)
    np.testing.assert_array_equal(mapping(new), whole)


def test_unit_divides_new_inputs(rng):
    X, new = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    L = rng.normal(size=(9, 2))
    np.testing.assert_allclose(KernelMap(RBF(), X, L, unit=5.0)(5 * new), KernelMap(RBF(), X, L)(new), rtol=1e-12)


def test_distances_to_the_training_samples_are_enough(rng):
    X, new, L = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), rng.normal(size=(9, 2))
    distances = np.linalg.norm(new[:, None] - X[None], axis=2)
    np.testing.assert_allclose(KernelMap(RBF(), None, L)(distances), KernelMap(RBF(), X, L)(new), rtol=1e-12)


def indefinite(rng, n=30, lowest=-1e-6):
    """Unit-diagonal-sized symmetric matrix with one slightly negative eigenvalue."""
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.r_[lowest, np.linspace(0.5, 1.5, n - 1)]) @ Q.T


def test_an_indefinite_kernel_is_repaired_with_a_warning(rng):
    """The factor is that of the given matrix with its diagonal raised, so K came back unharmed after the failure."""
    K, h, F = indefinite(rng), np.ones(30), rng.normal(size=(30, 2))
    given = 0.5 * (K + K.T)
    with pytest.warns(IllConditionedWarning, match="raised by a factor 1 [+] 1e-05") as caught:
        L = MapRegression(given.copy(), h, 1.0, 1e-9).coefficients(F)
    assert len(caught) == 1
    repaired = given + 1e-9 * np.eye(30)
    repaired[np.diag_indices(30)] *= 1 + 1e-5
    np.testing.assert_allclose(repaired @ L, F, rtol=1e-8, atol=1e-8 * np.abs(L).max())


def test_a_definite_kernel_is_not_touched(rng):
    K = indefinite(rng, lowest=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L = MapRegression(K.copy(), np.ones(30), 1.0, 1e-9).coefficients(np.eye(30))
    np.testing.assert_allclose(K @ L, np.eye(30), atol=1e-7)


@pytest.mark.parametrize("broken", [-np.eye(3), np.full((3, 3), np.nan), np.full((3, 3), np.inf)])
def test_a_hopeless_kernel_is_an_error(broken):
    with pytest.raises(NumericalError, match="input kernel"):
        MapRegression(broken.copy(), np.ones(3), 1.0, 1e-3)


def test_a_kernel_with_one_entry_that_is_no_number_is_an_error(rng):
    K = np.eye(5)
    K[1, 3] = K[3, 1] = np.nan
    with pytest.raises(NumericalError, match="input kernel"):
        MapRegression(K, np.ones(5), 1.0, 1e-3)


def test_left_out_is_the_map_fitted_without_each_sample(rng, monkeypatch):
    monkeypatch.setattr("distreduce.mapping.kernel_map.PROBES", 100_000)
    X, F, h = rng.normal(size=(30, 3)), rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    found = MapRegression(RBF(1.5)(X), h, 2.0, 0.6).left_out(F)
    for i in (0, 13, 29):
        rest = np.arange(30) != i
        ridge = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / 1.5**2).fit(X[rest], F[rest], h[rest])
        np.testing.assert_allclose(found[i], ridge.predict(X[[i]])[0], atol=0.03)


@pytest.mark.parametrize(("n_steps", "ridge"), [(4, 1e-4), (12, 1e-3), (60, 1e-4)])
def test_the_ridge_for_steps_is_the_best_for_smooth_values(rng, n_steps, ridge):
    x, h = np.sort(rng.uniform(-2, 2, size=60))[:, None], rng.choice([1.0, 3.0], size=60)
    smooth, K = np.hstack([np.sin(x), x]), RBF(0.7)(x)
    part = np.arange(60) * n_steps // 60
    steps = np.array([np.average(smooth[part == k], axis=0, weights=h[part == k]) for k in part])
    mean = h @ smooth / h.sum()

    def error(ridge):  # scikit-learn's weighted ridge without each sample
        misses = []
        for i in range(60):
            rest = np.arange(60) != i
            model = KernelRidge(alpha=ridge, kernel="precomputed").fit(
                K[np.ix_(rest, rest)], steps[rest] - mean, h[rest]
            )
            misses.append(h[i] * ((model.predict(K[i : i + 1, rest])[0] + mean - smooth[i]) ** 2).sum())
        return sum(misses)

    found = ridge_for_steps(K, h, ridge, steps, smooth)
    assert error(found) < error(found * 10**0.5)
    assert found == ridge or error(found) < error(found / 10**0.5)
    assert (found > ridge) == (n_steps < 60)


@pytest.mark.parametrize("n", [3, 255, 600])
@pytest.mark.parametrize("kernel", [RBF(2.0), Linear()], ids=["one half, mirrored", "by matrix products"])
def test_the_kernel_matrix_by_blocks_is_that_of_all_pairs(rng, kernel, n):
    X = rng.normal(size=(n, 4))
    K = kernel_matrix(X, kernel)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-13, atol=1e-13)
    assert isinstance(kernel, Linear) or (K == K.T).all()
