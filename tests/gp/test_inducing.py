"""The sparse GP against Titsias' formulas written out, GPyTorch's, and the exact GP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.datasets import load_diabetes

from distreduce.gp import _inducing as module
from distreduce.gp._exact import ExactGP
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.gp._inducing import NegativeBound, SparseGP, train_sparse
from distreduce.kernels import RBF

torch = pytest.importorskip("torch")
FOUND = Hyperparameters(np.array([0.8, 1.6]), 1.3, 0.2)
CONSTANT = 0.5 * np.log(2 * np.pi)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40)
    return X, y, rng.normal(size=(7, 2)), rng.normal(size=(9, 2))


def covariance(A, B):
    return FOUND.signal * RBF(1.0)(A / FOUND.length_scales, B / FOUND.length_scales)


def test_bound_is_titsias_formula(problem):
    X, y, Z, _ = problem
    Q = covariance(X, Z) @ np.linalg.solve(covariance(Z, Z), covariance(Z, X))
    slack = (40 * FOUND.signal - np.trace(Q)) / (2 * FOUND.noise)
    expected = -multivariate_normal(cov=Q + FOUND.noise * np.eye(40)).logpdf(y) + slack
    value, _ = NegativeBound(X, y, Z)(FOUND.logarithms())
    assert value + 40 * CONSTANT == pytest.approx(expected, rel=1e-6)


def test_bound_and_mean_are_gpytorchs(problem):
    gpytorch = pytest.importorskip("gpytorch")
    X, y, Z, new = problem

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
            super().__init__(torch.tensor(X), torch.tensor(y), likelihood)
            self.base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))
            self.kernel = gpytorch.kernels.InducingPointKernel(self.base, torch.tensor(Z), likelihood)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))

    model = Model().double()
    model.base.base_kernel.lengthscale = torch.tensor(FOUND.length_scales)
    model.base.outputscale, model.likelihood.noise = FOUND.signal, FOUND.noise
    # Their correction makes predictions those of another approximation, FITC.
    plain = gpytorch.settings.sgpr_diagonal_correction(False)
    with torch.no_grad(), gpytorch.settings.cholesky_jitter(double_value=1e-8), plain:
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        bound = -40 * mll(model(model.train_inputs[0]), model.train_targets).item()
        mean = model.eval()(torch.tensor(new)).mean.numpy()
    value, _ = NegativeBound(X, y, Z)(FOUND.logarithms())
    ours = np.r_[value + 40 * CONSTANT, SparseGP.of(X, y, Z, FOUND).moments(new)[0]]
    np.testing.assert_allclose(ours, np.r_[bound, mean], rtol=1e-4, atol=1e-4)


def test_gradient_is_that_of_the_bound(problem):
    X, y, Z, _ = problem
    objective, at = NegativeBound(X, y, Z), FOUND.logarithms()
    slopes = approx_fprime(at, lambda x: objective(x)[0], 1e-7)
    np.testing.assert_allclose(objective(at)[1], slopes, rtol=1e-4, atol=1e-4)


def test_prediction_is_titsias_formula(problem):
    X, y, Z, new = problem
    Kzz, Kzx, Kzn = covariance(Z, Z), covariance(Z, X), covariance(Z, new)
    S = np.linalg.inv(Kzz + Kzx @ Kzx.T / FOUND.noise)
    expected = covariance(new, new) - Kzn.T @ (np.linalg.inv(Kzz) - S) @ Kzn + FOUND.noise * np.eye(9)
    gp = SparseGP.of(X, y, Z, FOUND)
    np.testing.assert_allclose(gp.moments(new)[0], Kzn.T @ S @ Kzx @ y / FOUND.noise, atol=1e-6)
    np.testing.assert_allclose(gp.covariance(new), expected, atol=1e-6)


def test_the_diagonal_of_the_covariance_is_the_variance(problem):
    X, y, Z, new = problem
    gp = SparseGP.of(X, y, Z, FOUND)
    np.testing.assert_allclose(gp.covariance(new).diagonal(), gp.moments(new)[1], rtol=1e-9)


def test_with_all_inputs_as_inducing_points_it_is_the_exact_gp(problem):
    X, y, _, new = problem
    ours, exact = SparseGP.of(X, y, X, FOUND), ExactGP(X, y, FOUND)
    np.testing.assert_allclose(ours.moments(new), exact.moments(new), rtol=1e-4)
    np.testing.assert_allclose(ours.leave_one_out(), exact.leave_one_out(), rtol=1e-4)


def test_leave_one_out_is_that_of_models_conditioned_without_the_sample(problem):
    X, y, Z, _ = problem
    others = [np.delete(np.arange(40), i) for i in range(40)]
    refits = [SparseGP.of(X[rows], y[rows], Z, FOUND).moments(X[[i]]) for i, rows in enumerate(others)]
    np.testing.assert_allclose(SparseGP.of(X, y, Z, FOUND).leave_one_out(), np.array(refits)[:, :, 0].T, rtol=1e-7)


def test_leave_one_out_stays_finite_where_each_sample_is_an_inducing_point_without_noise(rng):
    X = rng.uniform(size=(50, 1))
    found = Hyperparameters(np.full(1, 1e-4), 50.0, 1e-6)
    mean, variance = SparseGP.of(X, np.sin(9 * X[:, 0]), X, found).leave_one_out()
    assert np.isfinite(mean).all() and (variance > 0).all()


def test_batches_change_nothing(problem, monkeypatch):
    X, y, Z, new = problem
    whole = SparseGP.of(X, y, Z, FOUND)
    monkeypatch.setattr(module, "BATCH_NUMBERS", 21)  # three rows at a time
    pieces = SparseGP.of(X, y, Z, FOUND)
    np.testing.assert_allclose(pieces.moments(new), whole.moments(new), rtol=1e-9)


def test_training_lowers_the_bound(problem):
    X, y, Z, _ = problem
    found = train_sparse(X, y, Z, Training(), np.ones(2)).hyperparameters
    objective = NegativeBound(X, y, Z)
    assert objective(found.logarithms())[0] < objective(Hyperparameters(np.ones(2), 1.0, 0.1).logarithms())[0] - 1


@pytest.mark.parametrize("m", [10, 50])
def test_training_with_much_noise_does_not_end_without_a_signal(m):
    """Where it begins with little noise alone, the bound ends at that of no signal at all."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200] / X.std(axis=0), (y[:200] - y[:200].mean()) / y[:200].std()
    found = train_sparse(X, y, X[:m], Training(), np.ones(10)).hyperparameters
    nothing = Hyperparameters(np.ones(10), np.exp(-12.0), 1.0)
    objective = NegativeBound(X, y, X[:m])
    assert objective(found.logarithms())[0] < objective(nothing.logarithms())[0] - 10


def test_training_does_not_mind_an_offset(problem):
    X, y, Z, _ = problem
    there = train_sparse(X + 1e6, y, Z + 1e6, Training(), np.ones(2)).hyperparameters
    here = train_sparse(X, y, Z, Training(), np.ones(2)).hyperparameters
    np.testing.assert_allclose(there.logarithms(), here.logarithms(), atol=0.05)


def test_of_many_samples_some_train_and_all_condition(problem, monkeypatch):
    X, y, Z, _ = problem
    monkeypatch.setattr(module, "TRAINING_SAMPLES", 20)
    gp = train_sparse(X, y, Z, Training(), np.ones(2))
    rows = np.linspace(0, 39, 20).astype(int)
    trained = train_sparse(X[rows], y[rows], Z, Training(), np.ones(2)).hyperparameters
    np.testing.assert_allclose(gp.moments(X), SparseGP.of(X, y, Z, trained).moments(X), rtol=1e-10)


def test_torch_keeps_its_defaults(problem):
    X, y, Z, _ = problem
    before = torch.get_default_dtype(), torch.get_num_threads(), torch.initial_seed()
    train_sparse(X, y, Z, Training(steps=3), np.ones(2))
    assert (torch.get_default_dtype(), torch.get_num_threads(), torch.initial_seed()) == before
