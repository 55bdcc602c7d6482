"""The exact Gaussian processes that stand on the features of a network."""

from __future__ import annotations

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import MultitaskKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood, MultitaskGaussianLikelihood
from gpytorch.means import ConstantMean, MultitaskMean
from torch import Tensor

from distreduce._utils.typing import Array
from distreduce.baselines._dirichlet import log_marginal_likelihood
from distreduce.baselines._torch_training import exact_algebra
from distreduce.gp._dirichlet import DirichletTargets, condition, expected_probabilities


def gaussian_likelihood(n_targets: int | None) -> gpytorch.likelihoods.Likelihood:
    """Gaussian noise, one variance a target; GPyTorch's noise common to all targets would only add to each."""
    if n_targets is None:
        return GaussianLikelihood()
    return MultitaskGaussianLikelihood(num_tasks=n_targets, has_global_noise=False)


class RegressionHead(gpytorch.models.ExactGP):
    """GP with an RBF-ARD kernel and Gaussian noise; several targets make it a multi-task GP (Bonilla et al., 2007).

        y = f(z) + ε,   cov(f_s(z), f_t(z')) = B_st k(z, z'),   B = b bᵀ + diag(v)

    Parameters
    ----------
    features : (n, p) tensor
        z of the training inputs; :meth:`condition_on` replaces them when the network has been trained.
    targets : (n,) or (n, t) tensor
        Standardised targets.
    """

    def __init__(self, features: Tensor, targets: Tensor) -> None:
        n_targets = targets.shape[1] if targets.ndim == 2 else None
        kernel = RBFKernel(ard_num_dims=features.shape[1])
        super().__init__(features, targets, gaussian_likelihood(n_targets))
        if n_targets is None:
            self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(kernel)
        else:
            self.mean_module = MultitaskMean(ConstantMean(), num_tasks=n_targets)
            self.covar_module = MultitaskKernel(kernel, num_tasks=n_targets, rank=1)
        self.double()

    def forward(self, features: Tensor) -> MultivariateNormal:
        """Prior at some features."""
        family = MultivariateNormal if self.train_targets.ndim == 1 else MultitaskMultivariateNormal
        return family(self.mean_module(features), self.covar_module(features))

    def loss(self, features: Tensor) -> Tensor:
        """Minus the log marginal likelihood a sample, of the training targets at the present features."""
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)
        with exact_algebra():
            value: Tensor = -evidence(self.forward(features), self.train_targets)
        return value

    def condition_on(self, features: Tensor) -> None:
        """Take the features of the trained network as training inputs, for good."""
        self.set_train_data(features, strict=False)
        self.eval().requires_grad_(False)

    def mean_and_std(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, noise included, of the targets at new features."""
        with exact_algebra(), gpytorch.settings.debug(False):
            predicted = self.likelihood(self(features))
            return predicted.mean, predicted.stddev


class ClassificationHead(gpytorch.Module):
    """Dirichlet-likelihood GP (Milios et al., 2018): a latent function a class, all with one RBF-ARD kernel.

    Constant means a class and a noise beyond the likelihood's own are learned, as in GPyTorch's example.

    Parameters
    ----------
    n_components : int
        Number of features.
    targets : DirichletTargets
        Labels as regression targets.
    """

    def __init__(self, n_components: int, targets: DirichletTargets) -> None:
        super().__init__()
        self.targets = targets
        self.mean_module = ConstantMean(batch_shape=torch.Size([targets.values.shape[1]]))
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=n_components))
        self.extra_noise = gpytorch.likelihoods.noise_models.HomoskedasticNoise()
        self.double()

    def loss(self, features: Tensor) -> Tensor:
        """Minus the log marginal likelihood a sample, summed over classes."""
        evidence = log_marginal_likelihood(self._covariance(features), self._residuals(), self.targets)
        return -evidence / len(features)

    def condition_on(self, features: Tensor) -> None:
        """Take the features of the trained network as training inputs, for good."""
        self.eval().requires_grad_(False)
        self.train_features = features
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
        noise = self.extra_noise.noise * torch.ones(len(features), dtype=torch.float64)
        return covariance + torch.diag(noise)
