"""The Dirichlet-likelihood GP with one kernel for all classes, against GPyTorch's batch of GPs."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import DirichletClassificationLikelihood
from hypothesis import given
from hypothesis import strategies as st

from distreduce.gp._dirichlet import DirichletTargets
from distreduce_paper.baselines._gp_heads import ClassificationHead, log_marginal_likelihood

N_CLASSES = 3


class BatchOfGPs(gpytorch.models.ExactGP):
    """GPyTorch's example: a GP a class; here all with one kernel and zero mean."""

    def __init__(self, Z: torch.Tensor, likelihood: DirichletClassificationLikelihood) -> None:
        super().__init__(Z, likelihood.transformed_targets, likelihood)
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=Z.shape[1]))

    def forward(self, Z: torch.Tensor) -> MultivariateNormal:
        batch = torch.Size([self.likelihood.num_classes])
        return MultivariateNormal(Z.new_zeros(len(Z)), self.covar_module(Z)).expand(batch)


@pytest.fixture
def inputs() -> torch.Tensor:
    return torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).permutation(np.arange(40) ** 2 % 7 % N_CLASSES))


@pytest.fixture
def reference(inputs: torch.Tensor, labels: torch.Tensor) -> BatchOfGPs:
    likelihood = DirichletClassificationLikelihood(labels, alpha_epsilon=0.01, dtype=torch.float64)
    return BatchOfGPs(inputs, likelihood).double()


def kernel_matrix(inputs: torch.Tensor) -> torch.Tensor:
    """GPyTorch's kernel at its initial hyperparameters: both softplus(0) = log 2."""
    return np.log(2) * torch.exp(-0.5 * torch.cdist(inputs, inputs).square() / np.log(2) ** 2)


def noise_of(labels: torch.Tensor, c: int, targets: DirichletTargets) -> torch.Tensor:
    own, other = torch.tensor([targets.own_noise, targets.other_noise], dtype=torch.float64)
    return torch.where(labels == c, own, other)


def test_marginal_likelihood_equals_gpytorchs_batch(
    reference: BatchOfGPs, inputs: torch.Tensor, labels: torch.Tensor
) -> None:
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(reference.likelihood, reference)
    expected = mll(reference(inputs), reference.train_targets).sum() * len(inputs)
    targets = DirichletTargets.of(labels.numpy(), N_CLASSES, 0.01)
    ours = log_marginal_likelihood(kernel_matrix(inputs), torch.from_numpy(targets.values), targets)
    assert ours.item() == pytest.approx(expected.item(), abs=1e-8)


@given(alpha=st.floats(1e-4, 1.0), seed=st.integers(0, 100))
def test_marginal_likelihood_equals_dense_normal_densities(alpha: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    Z = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (12,), generator=generator)
    targets = DirichletTargets.of(labels.numpy(), 4, alpha)
    dense = 0.0
    for c in range(4):
        covariance = kernel_matrix(Z) + torch.diag(noise_of(labels, c, targets))
        normal = torch.distributions.MultivariateNormal(Z.new_zeros(12), covariance)
        dense += normal.log_prob(torch.from_numpy(targets.values[:, c])).item()
    ours = log_marginal_likelihood(kernel_matrix(Z), torch.from_numpy(targets.values), targets)
    assert ours.item() == pytest.approx(dense, abs=1e-8)


def test_gradient_equals_finite_differences(inputs: torch.Tensor, labels: torch.Tensor) -> None:
    rows = slice(0, 8)
    targets = DirichletTargets.of(labels[rows].numpy(), N_CLASSES, 0.01)

    def value(root: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return log_marginal_likelihood(root @ root.mT, torch.from_numpy(targets.values) - shift, targets)

    root = torch.linalg.cholesky(kernel_matrix(inputs[rows])).requires_grad_()
    shift = torch.zeros(8, N_CLASSES, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, (root, shift), rtol=1e-5)


def test_head_predicts_as_gpytorchs_batch(reference: BatchOfGPs, inputs: torch.Tensor, labels: torch.Tensor) -> None:
    head = ClassificationHead(2, DirichletTargets.of(labels.numpy(), N_CLASSES, 0.01))
    head.extra_noise.noise = 1e-4  # the least GPyTorch allows; the reference has none
    head.condition_on(inputs)
    new, draws = 0.5 * inputs[:10] + 0.1, np.random.default_rng(1).normal(size=(64, N_CLASSES))
    reference.eval()
    with torch.no_grad():
        latent = reference(new)
        softmax = torch.softmax(latent.mean.mT + latent.stddev.mT * torch.from_numpy(draws)[:, None], -1).mean(0)
        torch.testing.assert_close(head.probabilities(new, draws), softmax, rtol=0, atol=1e-4)
