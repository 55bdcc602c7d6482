"""Deep Gaussian process by doubly stochastic variational inference."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.mlls import DeepApproximateMLL, VariationalELBO
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from sklearn.utils._param_validation import Interval
from torch import Tensor

from distreduce_paper.baselines._gp_heads import gaussian_likelihood
from distreduce_paper.baselines._torch_training import TorchRegressor, adam, exact_algebra


class DeepGPRegressor(TorchRegressor):
    """Deep GP [1]_ with one hidden layer, trained on the evidence lower bound [2]_ by Adam.

    The hidden layer maps the features to `n_components` latent functions with linear means. The output layer maps these
    to the targets, with one independent function per target. Kernels are RBF-ARD. Features are used on the scale they
    have: standardise them.

    Parameters
    ----------
    n_components : int, default=2
        Number p of latent functions of the hidden layer.
    n_inducing : int, default=128
        Number of inducing points of each layer, at most the number of samples. Those of the hidden layer start at
        samples drawn without replacement: the paper does not say where (decision 13).
    n_likelihood_samples : int, default=16
        Number of draws of the hidden layer that training and prediction average over.
    n_epochs : int, default=20
        Number of steps of Adam; each uses all samples.
    learning_rate : float, default=0.1
        Learning rate of Adam.
    random_state : int, RandomState or None, default=None
        Seed of the initial inducing points and of the draws.

    Attributes
    ----------
    model_ : DeepGP
        The trained model (GPyTorch).
    loss_curve_ : list of float
        Negative evidence lower bound per sample at each epoch.
    n_features_in_ : int
        Number of features.

    References
    ----------
    .. [1] Damianou, Lawrence (2013). Deep Gaussian processes. AISTATS.
    .. [2] Salimbeni, Deisenroth (2017). Doubly stochastic variational inference for deep Gaussian processes. NIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from distreduce_paper.baselines.deep_gp import DeepGPRegressor
    >>> X, y = make_friedman1(60, random_state=0)
    >>> mean, std = DeepGPRegressor(n_epochs=5, random_state=0).fit(X, y).predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_inducing": [Interval(Integral, 1, None, closed="left")],
        "n_likelihood_samples": [Interval(Integral, 1, None, closed="left")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_inducing: int = 128,
        n_likelihood_samples: int = 16,
        n_epochs: int = 20,
        learning_rate: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_inducing = n_inducing
        self.n_likelihood_samples = n_likelihood_samples
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _train_model(self, X: Tensor, targets: Tensor) -> None:
        # Start at samples: from random numbers, the result on Concrete is worse than the paper's.
        inducing = X[torch.randperm(len(X))[: self.n_inducing]]
        model = _TwoLayers(inducing, self.n_components, targets.shape[1] if targets.ndim == 2 else None)
        bound = DeepApproximateMLL(VariationalELBO(model.likelihood, model, num_data=len(X)))
        with gpytorch.settings.num_likelihood_samples(self.n_likelihood_samples), exact_algebra():
            self.loss_curve_ = adam(lambda: -bound(model(X), targets), {model: self.learning_rate}, self.n_epochs)
        # Draws for predictions, the same for every sample, so that none depends on its batch.
        self._draws = torch.randn(self.n_likelihood_samples, 1, self.n_components, dtype=torch.float64)
        self.model_ = model.eval().requires_grad_(False)

    def _mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Moments of the mixture over the draws s: mean E_s[m_s], variance E_s[v_s] + Var_s[m_s]."""
        with exact_algebra():
            predicted = self.model_.likelihood(self.model_.at_draws(X, self._draws))
            means, variances = predicted.mean, predicted.variance
        return means.mean(0), (variances.mean(0) + means.var(0, correction=0)).sqrt()


class _TwoLayers(DeepGP):
    """Hidden layer with linear means, output layer with constant means."""

    def __init__(self, inducing: Tensor, n_components: int, n_targets: int | None) -> None:
        super().__init__()
        n_features = inducing.shape[1]
        hidden_batch = torch.Size([n_components])
        # Every latent function has its own inducing points, which training moves.
        self.hidden = _Layer(inducing.repeat(n_components, 1, 1), n_components, LinearMean(n_features, hidden_batch))
        batch = torch.Size([] if n_targets is None else [n_targets])
        # Inputs of this layer are latent: there are no samples to start at.
        start = torch.randn(*batch, len(inducing), n_components, dtype=torch.float64)
        self.output = _Layer(start, n_targets, ConstantMean(batch_shape=batch))
        self.likelihood = gaussian_likelihood(n_targets)
        self.double()

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The output layer at random draws of the hidden layer."""
        return self.output(self.hidden(X))

    def at_draws(self, X: Tensor, draws: Tensor) -> MultivariateNormal:
        """The output layer at the hidden layer's mean + std · draws (S, 1, p): the same draws for every sample."""
        # GPyTorch repeats the layer for each likelihood sample; the copies are equal, so [0] is enough.
        hidden: MultitaskMultivariateNormal = self.hidden(X)
        return self.output(hidden.mean[0] + hidden.stddev[0] * draws, are_samples=True)


class _Layer(DeepGPLayer):
    """GPs with one kernel each, at inducing points of their own."""

    def __init__(self, inducing: Tensor, n_outputs: int | None, mean: gpytorch.means.Mean) -> None:
        *batch, n_inducing, n_inputs = inducing.shape
        batch_shape = torch.Size(batch)
        # The batch dimensions are the functions of the layer.
        distribution = CholeskyVariationalDistribution(n_inducing, batch_shape=batch_shape)
        super().__init__(VariationalStrategy(self, inducing, distribution), n_inputs, n_outputs)
        self.mean_module = mean
        kernel = RBFKernel(batch_shape=batch_shape, ard_num_dims=n_inputs)
        self.covar_module = ScaleKernel(kernel, batch_shape=batch_shape)

    def forward(self, inputs: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))
