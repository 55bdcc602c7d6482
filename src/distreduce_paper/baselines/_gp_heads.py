"""Exact Gaussian processes on the features of a network."""

from __future__ import annotations

import math
from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import MultitaskKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood, MultitaskGaussianLikelihood
from gpytorch.means import ConstantMean, MultitaskMean
from torch import Tensor

from distreduce.gp._dirichlet import DirichletTargets, condition, covariance_gradient, expected_probabilities
from distreduce_paper.baselines._torch_training import exact_algebra
from distreduce_paper.problems import Array


def gaussian_likelihood(n_targets: int | None) -> gpytorch.likelihoods.Likelihood:
    """Gaussian noise with one variance per target, without GPyTorch's additional noise common to all targets."""
    if n_targets is None:
        return GaussianLikelihood()
    # With both, the pretrained result on Energy cannot be reached (decision 13).
    return MultitaskGaussianLikelihood(num_tasks=n_targets, has_global_noise=False)


class RegressionHead(gpytorch.models.ExactGP):
    """GP with an RBF-ARD kernel and Gaussian noise; with several targets, a multi-task GP [1]_.

        y = f(z) + ε,   cov(f_s(z), f_t(z')) = B_st k(z, z'),   B = b bᵀ + diag(v)

    The features (n, p) are z of the training inputs; :meth:`condition_on` replaces them once the network is trained.
    The targets, (n,) or (n, t), are standardised.

    References
    ----------
    .. [1] Bonilla, Chai, Williams (2007). Multi-task Gaussian process prediction. NIPS.
    """

    def __init__(self, features: Tensor, targets: Tensor) -> None:
        n_targets = targets.shape[1] if targets.ndim == 2 else None
        # One kernel for all targets; with several, B mixes them.
        kernel = RBFKernel(ard_num_dims=features.shape[1])
        super().__init__(features, targets, gaussian_likelihood(n_targets))
        if n_targets is None:
            self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(kernel)
        else:
            self.mean_module = MultitaskMean(ConstantMean(), num_tasks=n_targets)
            # Rank 1 for B, the smallest that lets targets share information.
            self.covar_module = MultitaskKernel(kernel, num_tasks=n_targets, rank=1)
        self.double()

    def forward(self, features: Tensor) -> MultivariateNormal:
        """Prior at some features."""
        family = MultivariateNormal if self.train_targets.ndim == 1 else MultitaskMultivariateNormal
        return family(self.mean_module(features), self.covar_module(features))

    def loss(self, features: Tensor) -> Tensor:
        """Negative log marginal likelihood per sample of the training targets at the current features."""
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)
        with exact_algebra():
            # In training a call of the GP accepts only the stored inputs, but features change at every step.
            value: Tensor = -evidence(self.forward(features), self.train_targets)
        return value

    def condition_on(self, features: Tensor) -> None:
        """Use the features of the trained network as training inputs."""
        self.set_train_data(features, strict=False)
        self.eval().requires_grad_(False)

    def mean_and_std(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, noise included, of the targets at new features."""
        # In debug mode GPyTorch warns if new inputs equal the training inputs, which is allowed here.
        with exact_algebra(), gpytorch.settings.debug(False):
            predicted = self.likelihood(self(features))
            return predicted.mean, predicted.stddev


class ClassificationHead(gpytorch.Module):
    """Dirichlet-likelihood GP [1]_ with one latent function per class and one RBF-ARD kernel for all of them.

    A constant mean per class and a noise in addition to the likelihood's are learned, as in GPyTorch's example.

    References
    ----------
    .. [1] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.
    """

    def __init__(self, n_components: int, targets: DirichletTargets) -> None:
        super().__init__()
        self.targets = targets
        self.mean_module = ConstantMean(batch_shape=torch.Size([targets.values.shape[1]]))
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=n_components))
        self.extra_noise = gpytorch.likelihoods.noise_models.HomoskedasticNoise()
        self.double()

    def loss(self, features: Tensor) -> Tensor:
        """Negative log marginal likelihood per sample, summed over classes."""
        evidence = log_marginal_likelihood(self._covariance(features), self._residuals(), self.targets)
        return -evidence / len(features)

    def condition_on(self, features: Tensor) -> None:
        """Use the features of the trained network as training inputs."""
        self.eval().requires_grad_(False)
        self.train_features = features
        # The posterior is conditioned once; predictions then need products only.
        self.posterior = condition(self._covariance(features).numpy(), self._residuals().numpy(), self.targets)

    def probabilities(self, features: Tensor, draws: Array) -> Tensor:
        """Class probabilities at new features, from standard normal draws (S, C)."""
        cross = self.covar_module(features, self.train_features).to_dense().numpy()
        deviation, variance = self.posterior.moments(cross, self.covar_module.outputscale.item())
        means = self.mean_module.constant.numpy()
        return torch.from_numpy(expected_probabilities(means + deviation, variance, draws))

    def _residuals(self) -> Tensor:
        return torch.from_numpy(self.targets.values) - self.mean_module.constant

    def _covariance(self, features: Tensor) -> Tensor:
        covariance: Tensor = self.covar_module(features).to_dense()
        # The learned noise goes onto the diagonal of K, so autograd sees it as a part of the covariance.
        noise = self.extra_noise.noise * torch.ones(len(features), dtype=torch.float64)
        return covariance + torch.diag(noise)


def log_marginal_likelihood(covariance: Tensor, residuals: Tensor, targets: DirichletTargets) -> Tensor:
    """Log marginal likelihood of all classes, r_c = ỹ_c − m_c; differentiable in both tensors.

        Σ_c log N(r_c; 0, Σ_c) = −½ Σ_c [ r_cᵀ Σ_c⁻¹ r_c + log|Σ_c| + n log 2π ],    Σ_c = K + diag(s_c)

    The covariance K (n, n) has any noise in addition to the Dirichlet likelihood's s_c on its diagonal; the residuals
    (n, C) are targets minus prior means.
    """
    value: Tensor = _LogMarginalLikelihood.apply(covariance, residuals, targets)  # type: ignore[no-untyped-call]
    return value


class _LogMarginalLikelihood(torch.autograd.Function):
    """The value with its gradient in closed form, several times cheaper than through the factorisation.

    ∂/∂K is that of :func:`distreduce.gp._dirichlet.covariance_gradient`, ∂/∂r_c = −Σ_c⁻¹ r_c.
    """

    @staticmethod
    def forward(ctx: Any, covariance: Tensor, residuals: Tensor, targets: DirichletTargets) -> Tensor:
        # Outside of autograd: the gradient has a closed form from the same factors.
        r = residuals.detach().numpy()
        ctx.posterior = condition(covariance.detach().numpy(), r, targets)
        quadratic = float((r * ctx.posterior.weights).sum())
        value = -0.5 * (quadratic + ctx.posterior.log_determinant + r.size * math.log(2 * math.pi))
        return covariance.new_tensor(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (outer,) = gradients
        # That gradient is of the negative log likelihood.
        by_covariance = -torch.from_numpy(covariance_gradient(ctx.posterior))
        return outer * by_covariance, -outer * torch.from_numpy(ctx.posterior.weights), None
