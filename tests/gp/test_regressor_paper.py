"""The paper's recipe: GPyTorch's exact GP on the embedding, trained by 20 steps of Adam, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from distreduce.gp import GPRegressor, SDRGPRegressor

torch, gpytorch = pytest.importorskip("torch"), pytest.importorskip("gpytorch")
X, Y = make_friedman1(90, n_features=5, noise=1.0, random_state=0)
TRAIN, TEST = slice(0, 60), slice(60, None)


def gpytorchs(inputs, target, new):
    """Mean and standard deviation by GPyTorch, in float64, as its tutorials train an exact GP."""

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(torch.tensor(inputs), torch.tensor(target), gpytorch.likelihoods.GaussianLikelihood())
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=inputs.shape[1]))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().double()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        loss = -likelihood(model(model.train_inputs[0]), model.train_targets)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        posterior = model.eval().likelihood.eval()(model(torch.tensor(new)))
    return posterior.mean.numpy(), posterior.stddev.numpy()


def test_on_the_embedding():
    target = (Y - Y[TRAIN].mean()) / Y[TRAIN].std()
    model = SDRGPRegressor.paper(random_state=0).fit(X[TRAIN], target[TRAIN])
    expected = gpytorchs(model.transform(X[TRAIN]), target[TRAIN], model.transform(X[TEST]))
    np.testing.assert_allclose(model.predict(X[TEST], return_std=True), expected, atol=1e-4)


def test_on_the_features():
    target = (Y - Y[TRAIN].mean()) / Y[TRAIN].std()
    model = GPRegressor(gp_optimizer="adam").fit(X[TRAIN], target[TRAIN])
    expected = gpytorchs(X[TRAIN], target[TRAIN], X[TEST])
    np.testing.assert_allclose(model.predict(X[TEST], return_std=True), expected, atol=1e-4)
