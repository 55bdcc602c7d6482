"""The Dirichlet-likelihood GP with one kernel for all classes: against GPyTorch, dense algebra and quadrature."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import DirichletClassificationLikelihood
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize_scalar
from scipy.special import expit
from scipy.stats import multivariate_normal, norm, qmc

from distreduce.gp._dirichlet import (
    DirichletPosterior,
    DirichletTargets,
    NegativeLogLikelihood,
    condition,
    expected_probabilities,
    fit_means,
)
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import RBF

Array = NDArray[np.float64]
N_CLASSES = 4
FOUND = Hyperparameters(np.array([0.7, 1.3, 2.0]), 2.5, 0.15)


@pytest.fixture
def inputs(rng: np.random.Generator) -> Array:
    return rng.normal(size=(45, 3))


@pytest.fixture
def labels() -> NDArray[np.intp]:
    """Classes of 24, 14, 6 and 1 samples."""
    return np.random.default_rng(1).permutation(np.repeat([0, 1, 2, 3], [24, 14, 6, 1]))


@pytest.fixture
def targets(labels: NDArray[np.intp]) -> DirichletTargets:
    return DirichletTargets.of(labels, N_CLASSES, 0.01)


def covariance(A: Array, B: Array | None = None) -> Array:
    return np.asarray(FOUND.signal * RBF(FOUND.length_scales)(A, B))


def noise_of(targets: DirichletTargets, c: int) -> Array:
    noise = np.full(len(targets.values), targets.other_noise)
    noise[targets.members[c]] = targets.own_noise
    return noise


def dense_log_density(inputs: Array, targets: DirichletTargets, c: int, mean: float) -> float:
    """log N(ỹ_c; m, K + diag(s_c) + σ²I) by SciPy."""
    matrix = covariance(inputs) + np.diag(noise_of(targets, c) + FOUND.noise)
    return float(multivariate_normal(np.full(len(inputs), mean), matrix).logpdf(targets.values[:, c]))


class BatchOfGPs(gpytorch.models.ExactGP):
    """GPyTorch's example of Dirichlet classification, with our hyperparameters and given prior means."""

    def __init__(self, inputs: Array, labels: NDArray[np.intp], means: Array, alpha_epsilon: float) -> None:
        likelihood = DirichletClassificationLikelihood(
            torch.from_numpy(labels), alpha_epsilon, learn_additional_noise=True, dtype=torch.float64
        )
        likelihood = likelihood.double()
        likelihood.second_noise = torch.tensor(FOUND.noise, dtype=torch.float64)
        self.inputs = torch.from_numpy(inputs)
        super().__init__(self.inputs, likelihood.transformed_targets, likelihood)
        batch = torch.Size([len(means)])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch).double()
        self.mean_module.constant.data = torch.from_numpy(means)
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=inputs.shape[1], batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch).double()
        self.covar_module.outputscale = torch.tensor(FOUND.signal, dtype=torch.float64)
        kernel.lengthscale = torch.from_numpy(FOUND.length_scales)

    def forward(self, Z: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(Z), self.covar_module(Z))


@pytest.mark.parametrize("alpha_epsilon", [1e-4, 0.01, 0.5])
def test_value_equals_gpytorchs(inputs: Array, labels: NDArray[np.intp], alpha_epsilon: float) -> None:
    targets = DirichletTargets.of(labels, N_CLASSES, alpha_epsilon)
    _, means = fit_means(covariance(inputs), FOUND.noise, targets)
    model = BatchOfGPs(inputs, labels, means, alpha_epsilon)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    total = evidence(model(model.inputs), model.train_targets).sum().item() * len(inputs)
    ours, _ = NegativeLogLikelihood(inputs, targets)(FOUND.logarithms())
    assert -ours - 0.5 * targets.values.size * np.log(2 * np.pi) == pytest.approx(total, abs=1e-8)


@pytest.mark.parametrize("quantity", ["mean", "variance"])
def test_posterior_equals_gpytorchs(
    inputs: Array, labels: NDArray[np.intp], targets: DirichletTargets, rng: np.random.Generator, quantity: str
) -> None:
    new = rng.normal(size=(20, 3))
    posterior, means = fit_means(covariance(inputs), FOUND.noise, targets)
    deviation, variance = posterior.moments(covariance(new, inputs), FOUND.signal)
    model = BatchOfGPs(inputs, labels, means, 0.01).eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var(False):
        expected = getattr(model(torch.from_numpy(new)), quantity).T.numpy()
    np.testing.assert_allclose({"mean": means + deviation, "variance": variance}[quantity], expected, rtol=0, atol=1e-8)


def test_gradient_equals_finite_differences(inputs: Array, targets: DirichletTargets) -> None:
    objective, point = NegativeLogLikelihood(inputs, targets), FOUND.logarithms()
    forward = approx_fprime(point, lambda p: objective(p)[0], 1e-5)
    backward = approx_fprime(point, lambda p: objective(p)[0], -1e-5)
    np.testing.assert_allclose(objective(point)[1], (forward + backward) / 2, rtol=1e-6, atol=1e-6)


def test_gradient_far_from_the_origin(inputs: Array, targets: DirichletTargets) -> None:
    """Inputs such as dates: the kernel knows differences only, and so must the gradient."""
    near, far = (NegativeLogLikelihood(inputs + offset, targets)(FOUND.logarithms())[1] for offset in (0.0, 2.0**24))
    np.testing.assert_allclose(far, near, rtol=1e-5, atol=1e-5)


def test_gradient_with_a_class_that_has_no_members(inputs: Array, labels: NDArray[np.intp]) -> None:
    objective = NegativeLogLikelihood(inputs, DirichletTargets.of(labels, N_CLASSES + 1, 0.01))
    point = FOUND.logarithms()
    forward = approx_fprime(point, lambda p: objective(p)[0], 1e-5)
    backward = approx_fprime(point, lambda p: objective(p)[0], -1e-5)
    np.testing.assert_allclose(objective(point)[1], (forward + backward) / 2, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("c", range(N_CLASSES))
def test_prior_mean_is_the_most_likely(inputs: Array, targets: DirichletTargets, c: int) -> None:
    _, means = fit_means(covariance(inputs), FOUND.noise, targets)
    best = minimize_scalar(lambda mean: -dense_log_density(inputs, targets, c, mean), (-10, 0), options={"xtol": 1e-10})
    assert means[c] == pytest.approx(best.x, abs=1e-5)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), alpha=st.floats(1e-6, 10.0))
def test_value_equals_dense_normal_densities(seed: int, n: int, alpha: float) -> None:
    """Classes without members included: labels are drawn from more classes than there may be samples."""
    rng = np.random.default_rng(seed)
    inputs, targets = rng.normal(size=(n, 3)), DirichletTargets.of(rng.integers(0, 4, n), 4, alpha)
    _, means = fit_means(covariance(inputs), FOUND.noise, targets)
    dense = sum(dense_log_density(inputs, targets, c, means[c]) for c in range(4)) + 2 * n * np.log(2 * np.pi)
    assert -NegativeLogLikelihood(inputs, targets)(FOUND.logarithms())[0] == pytest.approx(dense, abs=1e-7)


def test_noise_may_be_given_apart(inputs: Array, targets: DirichletTargets) -> None:
    K = covariance(inputs)
    apart = condition(K, targets.values, targets, 0.3)
    on_diagonal = condition(K + 0.3 * np.eye(len(K)), targets.values, targets)
    np.testing.assert_allclose(apart.weights, on_diagonal.weights, rtol=1e-10, atol=1e-12)


def test_class_without_members_has_the_base_variance(inputs: Array, labels: NDArray[np.intp]) -> None:
    """Its noise is s_other everywhere, so that Σ_c is A itself."""
    targets, K = DirichletTargets.of(labels, N_CLASSES + 1, 0.01), covariance(inputs)
    _, variance = condition(K, targets.values, targets).moments(K, FOUND.signal)
    dense = FOUND.signal - np.einsum("ij,ji->i", K, np.linalg.solve(K + targets.other_noise * np.eye(len(K)), K))
    np.testing.assert_allclose(variance[:, -1], dense, atol=1e-10)


def test_moments_of_one_input_equal_those_in_a_batch(inputs: Array, targets: DirichletTargets) -> None:
    K = covariance(inputs)
    posterior: DirichletPosterior = condition(K, targets.values, targets)
    alone = np.hstack(posterior.moments(K[7:8], FOUND.signal))
    np.testing.assert_allclose(alone, np.hstack(posterior.moments(K, FOUND.signal))[7:8], atol=1e-12)


@pytest.mark.parametrize(
    ("mean", "variance"), [((0.0, 0.0), (1.0, 2.0)), ((-6.0, 1.0), (4.0, 0.5)), ((2.0, -1.0), (0.0, 9.0))]
)
def test_probability_of_two_classes_equals_the_integral(
    mean: tuple[float, float], variance: tuple[float, float]
) -> None:
    """E[softmax(f)]_0 = E[1 / (1 + exp(−g))] with g = f_0 − f_1 normal."""
    gap = norm(mean[0] - mean[1], np.sqrt(sum(variance)))
    expected, _ = quad(lambda g: expit(g) * gap.pdf(g), gap.ppf(1e-12), gap.ppf(1 - 1e-12), limit=200)
    draws = norm.ppf(qmc.Sobol(2, scramble=False).random_base2(14) + 0.5 / 2**14)
    found = expected_probabilities(np.array([mean]), np.array([variance]), draws)
    assert found[0, 0] == pytest.approx(expected, abs=5e-4)


@given(seed=st.integers(0, 10_000), shift=st.floats(-1e3, 1e3), spread=st.floats(0.0, 1e3))
def test_probabilities_sum_to_one(seed: int, shift: float, spread: float) -> None:
    """However extreme the latent functions are."""
    rng = np.random.default_rng(seed)
    mean, variance = shift + spread * rng.normal(size=(5, 3)), spread * rng.uniform(size=(5, 3))
    total = expected_probabilities(mean, variance, rng.normal(size=(32, 3))).sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-12)


@given(seed=st.integers(0, 10_000), shift=st.floats(-100, 100))
def test_a_shift_of_all_classes_changes_no_probability(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    mean, variance, draws = rng.normal(size=(5, 3)), rng.uniform(size=(5, 3)), rng.normal(size=(32, 3))
    shifted = expected_probabilities(mean + shift, variance, draws)
    np.testing.assert_allclose(shifted, expected_probabilities(mean, variance, draws), atol=1e-12)
