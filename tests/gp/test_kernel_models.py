"""SDRKernel against the checks that GPyTorch has for its own kernels, and in models."""

from __future__ import annotations

import unittest
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from gp.kernel_cases import TOLERANCE, both_dtypes, numpy_map, rows, two_kernels
from gpytorch.kernels import (
    InducingPointKernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sklearn_kernels

from distreduce.gp.kernel import SDRKernel
from distreduce.mapping import KernelMap

# --- GPyTorch's contract


class Contract(BaseKernelTestCase):
    """GPyTorch's checks. The map fixes the number of features, so it is made for the data of the test at hand."""

    seed = 0
    dtype = torch.float32

    def setUp(self) -> None:
        super().setUp()
        self.default_dtype = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        name = self._testMethodName
        self.map = numpy_map({"test_active_dims_list": 4, "test_active_dims_range": 6}.get(name, 2))

    def tearDown(self) -> None:
        torch.set_default_dtype(self.default_dtype)
        super().tearDown()


class WithDefaultBase(Contract):
    def create_kernel_no_ard(self, **kwargs: Any) -> SDRKernel:
        return SDRKernel(self.map, **kwargs)


class WithBatchedBase(Contract):
    def create_kernel_no_ard(self, **kwargs: Any) -> SDRKernel:
        base = MaternKernel(batch_shape=kwargs.pop("batch_shape", torch.Size()))
        return SDRKernel(self.map, base, **kwargs)

    def create_kernel_ard(self, num_dims: int, **kwargs: Any) -> SDRKernel:
        return SDRKernel(self.map, RBFKernel(ard_num_dims=num_dims, **kwargs))


class WithOneBaseForAllBatches(Contract):
    def create_kernel_no_ard(self, **kwargs: Any) -> SDRKernel:
        return SDRKernel(self.map, ScaleKernel(RBFKernel()), **kwargs)


class WithSumOfBases(Contract):
    def create_kernel_no_ard(self, **kwargs: Any) -> SDRKernel:
        shape = kwargs.pop("batch_shape", torch.Size())
        return SDRKernel(self.map, RBFKernel(batch_shape=shape) + MaternKernel(batch_shape=shape), **kwargs)


class TestContractDefaultBase(WithDefaultBase, unittest.TestCase):
    pass


class TestContractDefaultBaseDouble(WithDefaultBase, unittest.TestCase):
    dtype = torch.float64


class TestContractBatchedBase(WithBatchedBase, unittest.TestCase):
    pass


class TestContractBatchedBaseDouble(WithBatchedBase, unittest.TestCase):
    dtype = torch.float64


class TestContractOneBase(WithOneBaseForAllBatches, unittest.TestCase):
    pass


class TestContractOneBaseDouble(WithOneBaseForAllBatches, unittest.TestCase):
    dtype = torch.float64


class TestContractSumOfBases(WithSumOfBases, unittest.TestCase):
    pass


class TestContractSumOfBasesDouble(WithSumOfBases, unittest.TestCase):
    dtype = torch.float64


# --- models


class ExactModel(gpytorch.models.ExactGP):
    def __init__(self, x: torch.Tensor, y: torch.Tensor, kernel: gpytorch.kernels.Kernel, noise: float = 0.1) -> None:
        super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel
        self.likelihood.noise = noise

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def targets(fitted: KernelMap, x: torch.Tensor) -> torch.Tensor:
    """A smooth function of the embedding."""
    places = fitted(x.numpy().astype(float).reshape(-1, x.shape[-1]))
    return torch.tensor(np.sin(places.sum(axis=1)), dtype=x.dtype).reshape(x.shape[:-1])


@both_dtypes
def test_an_exact_gp_is_that_of_scikit_learn_on_the_embedding(dtype: torch.dtype) -> None:
    fitted, x, new = numpy_map(), rows(25, 3, dtype=dtype), rows(7, 3, dtype=dtype, seed=3)
    model = ExactModel(x, targets(fitted, x), SDRKernel(fitted, RBFKernel())).to(dtype).eval()
    model.covar_module.base_kernel.lengthscale = 0.8
    oracle = GaussianProcessRegressor(sklearn_kernels.RBF(0.8), alpha=0.1, optimizer=None)
    oracle.fit(fitted(x.numpy().astype(float)), targets(fitted, x).numpy())
    mean, std = oracle.predict(fitted(new.numpy().astype(float)), return_std=True)
    with torch.no_grad():
        posterior = model(new)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e3 * TOLERANCE[dtype])
    np.testing.assert_allclose(posterior.stddev, std, atol=1e3 * TOLERANCE[dtype])


def train(model: Any, loss: Any, steps: int = 15) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    return values


@both_dtypes
def test_training_an_exact_gp_leaves_the_map_as_it_was(dtype: torch.dtype) -> None:
    fitted, x = numpy_map(), rows(25, 3, dtype=dtype)
    y = targets(fitted, x)
    model = ExactModel(x, y, SDRKernel(fitted)).to(dtype)
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    values = train(model, lambda: -likelihood(model(x), y))
    assert values[-1] < values[0]
    np.testing.assert_allclose(model.covar_module.map.coefficients, fitted.coefficients, rtol=1e-6)


@both_dtypes
def test_a_batch_of_exact_gps_is_each_of_them(dtype: torch.dtype) -> None:
    fitted, x, new = numpy_map(), rows(2, 25, 3, dtype=dtype), rows(7, 3, dtype=dtype, seed=3)
    y, kernel = targets(fitted, x), two_kernels(dtype)
    batch = ExactModel(x, y, kernel).to(dtype).eval()
    single = [ExactModel(x[i], y[i], kernel[i]).to(dtype).eval() for i in range(2)]
    with torch.no_grad():
        expected = torch.stack([model(new).mean for model in single])
        torch.testing.assert_close(batch(new).mean, expected, atol=1e3 * TOLERANCE[dtype], rtol=0.0)


class VariationalModel(gpytorch.models.ApproximateGP):
    def __init__(self, inducing: torch.Tensor, kernel: gpytorch.kernels.Kernel) -> None:
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@both_dtypes
def test_a_variational_gp_moves_inducing_points_in_the_space_of_x(dtype: torch.dtype) -> None:
    fitted, x = numpy_map(), rows(40, 3, dtype=dtype)
    y, start = targets(fitted, x), rows(8, 3, dtype=dtype, seed=4)
    model = VariationalModel(start.clone(), SDRKernel(fitted)).to(dtype)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(dtype)
    elbo = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    values = train(model, lambda: -elbo(model(x), y), steps=30)
    assert values[-1] < values[0] - 0.01
    assert (model.variational_strategy.inducing_points - start).abs().amin() > 1e-4


@pytest.mark.parametrize("inside", [False, True], ids=["around_it", "as_its_base"])
def test_inducing_points_at_all_inputs_give_the_exact_gp(inside: bool) -> None:
    """Subset of regressors, with the inducing points in the space of x, or in the embedding as the base kernel."""
    fitted, x, new = numpy_map(), rows(20, 3), rows(7, 3, seed=3)
    y, base = targets(fitted, x), RBFKernel().double()
    exact = ExactModel(x, y, SDRKernel(fitted, base)).double().eval()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    if inside:
        kernel: Any = SDRKernel(fitted, InducingPointKernel(base, torch.from_numpy(fitted(x.numpy())), likelihood))
    else:
        kernel = InducingPointKernel(SDRKernel(fitted, base), x.clone(), likelihood)
    sparse_model = ExactModel(x, y, kernel).double().eval()
    with torch.no_grad():
        torch.testing.assert_close(sparse_model(new).mean, exact(new).mean, atol=1e-3, rtol=0.0)


def test_a_low_rank_base_kernel_predicts_in_its_own_way() -> None:
    """GPyTorch chooses the O(n m²) prediction by the kernel; the default one would form n × n matrices."""
    fitted, x = numpy_map(), rows(20, 3)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    base = InducingPointKernel(RBFKernel(), torch.from_numpy(fitted(x.numpy()))[:5], likelihood)
    model = ExactModel(x, targets(fitted, x), SDRKernel(fitted, base)).double().eval()
    model(rows(7, 3, seed=3))
    assert type(model.prediction_strategy).__name__ == "SGPRPredictionStrategy"
