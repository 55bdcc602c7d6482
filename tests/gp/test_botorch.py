"""SDRKernel inside BoTorch: fitting a SingleTaskGP, and optimising acquisition functions through the map."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from distreduce import SDR
from distreduce.gp.kernel import SDRKernel

botorch = pytest.importorskip("botorch", reason="BoTorch is not installed")
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement  # noqa: E402
from botorch.fit import fit_gpytorch_mll  # noqa: E402
from botorch.models import ModelListGP, SingleTaskGP  # noqa: E402
from botorch.models.transforms import Normalize  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402
from botorch.sampling import SobolQMCNormalSampler  # noqa: E402

# BoTorch 0.10 warns of targets in their own units, which these tests leave them in, and of its own fantasies.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Input data is not standardized"),
    pytest.mark.filterwarnings("ignore:Non-strict enforcement of botorch tensor conventions"),
]

BOUNDS = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)


def objective(X: torch.Tensor) -> torch.Tensor:
    """A bump in two directions of the unit cube; the other two say nothing."""
    return torch.exp(-3.0 * (X[..., :1] + X[..., 1:2] - 1.2) ** 2 - (X[..., 2:3] - 0.3) ** 2)


@cache
def samples() -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.from_numpy(np.random.default_rng(0).uniform(size=(30, 4)))
    return X, objective(X)


@cache
def reduction() -> SDR:
    X, y = samples()
    return SDR(random_state=0, map_reg=0.1).fit(X.numpy(), y.numpy().ravel())


def model() -> SingleTaskGP:
    return SingleTaskGP(*samples(), covar_module=SDRKernel(reduction()))


@cache
def fitted_state() -> dict[str, torch.Tensor]:
    untrained = model()
    return fit_gpytorch_mll(ExactMarginalLogLikelihood(untrained.likelihood, untrained)).model.state_dict()


def trained() -> SingleTaskGP:
    """A trained model, by loading its state into a new one: what a user does with a saved state."""
    new = model()
    new.load_state_dict(fitted_state())
    return new.eval()


@pytest.fixture(autouse=True)
def torch_seed() -> None:
    """BoTorch draws its starting points from torch's global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def log_likelihood(gp: SingleTaskGP) -> float:
    gp = copy.deepcopy(gp).train()
    with torch.no_grad():
        return float(ExactMarginalLogLikelihood(gp.likelihood, gp)(gp(*gp.train_inputs), gp.train_targets))


def test_fitting_raises_the_marginal_likelihood() -> None:
    assert log_likelihood(trained()) > log_likelihood(model()) + 0.1


def test_fitting_leaves_the_map_as_it_was() -> None:
    np.testing.assert_array_equal(fitted_state()["covar_module.map.coefficients"], reduction().map_.coefficients)


def test_a_fitted_model_predicts_new_points() -> None:
    X = torch.from_numpy(np.random.default_rng(1).uniform(size=(200, 4)))
    with torch.no_grad():
        error = trained().posterior(X).mean - objective(X)
    assert error.square().mean() < 0.4 * objective(X).var()


def test_the_gradient_of_an_acquisition_function_is_its_slope() -> None:
    acquisition = LogExpectedImprovement(trained(), best_f=samples()[1].max())
    X = torch.full((2, 1, 4), 0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(acquisition, X, atol=0.05)  # of slopes of the order of 10,000


def test_the_gradient_is_finite_at_the_samples() -> None:
    acquisition = LogExpectedImprovement(trained(), best_f=samples()[1].max())
    X = samples()[0][:, None, :].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(acquisition(X).sum(), X)
    assert gradient.isfinite().all()


def test_optimising_an_acquisition_function_beats_a_dense_random_search() -> None:
    acquisition = LogExpectedImprovement(trained(), best_f=samples()[1].max())
    candidate, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=4, raw_samples=64)
    with torch.no_grad():
        searched = acquisition(torch.rand(5000, 1, 4, dtype=torch.float64)).max()
    assert float(value) > float(searched)


def test_several_candidates_at_once() -> None:
    sampler = SobolQMCNormalSampler(torch.Size([32]), seed=0)
    acquisition = qLogExpectedImprovement(trained(), best_f=samples()[1].max(), sampler=sampler)
    _, value = optimize_acqf(acquisition, BOUNDS, q=2, num_restarts=2, raw_samples=16, options={"maxiter": 20})
    with torch.no_grad():
        searched = acquisition(torch.rand(300, 2, 4, dtype=torch.float64)).max()
    assert float(value) > float(searched)


def test_conditioning_on_an_observation_is_a_model_of_all_observations() -> None:
    (X, y), points = samples(), torch.rand(6, 4, dtype=torch.float64)

    def raw(n: int) -> SingleTaskGP:
        # Standardised, the two models would see the targets on different scales.
        return SingleTaskGP(X[:n], y[:n], covar_module=SDRKernel(reduction()), outcome_transform=None)

    with torch.no_grad():
        part = raw(25)
        part.posterior(points)  # fills the caches that conditioning extends
        found = part.condition_on_observations(X[25:], y[25:]).posterior(points).mean
        torch.testing.assert_close(found, raw(30).posterior(points).mean, atol=1e-8, rtol=1e-8)


def test_fantasies_have_a_batch_dimension() -> None:
    X = torch.rand(2, 1, 4, dtype=torch.float64)
    fantasies = trained().fantasize(X, SobolQMCNormalSampler(torch.Size([3]), seed=0))
    assert fantasies.posterior(torch.rand(5, 4, dtype=torch.float64)).mean.shape == (3, 2, 5, 1)


def test_two_outputs_with_a_batch_of_kernels_are_two_models() -> None:
    X, y = samples()
    both = SingleTaskGP(
        X, torch.cat([y, X[:, :1]], dim=1), covar_module=SDRKernel(reduction(), batch_shape=torch.Size([2]))
    )
    singles = ModelListGP(*(SingleTaskGP(X, target, covar_module=SDRKernel(reduction())) for target in (y, X[:, :1])))
    points = torch.rand(6, 4, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(both.posterior(points).mean, singles.posterior(points).mean)


def test_an_input_transform_comes_before_the_map() -> None:
    """The reduction is fitted to the unit cube, the model is given points of another box."""
    X, y = samples()
    low, high = torch.tensor([[-5.0] * 4, [15.0] * 4], dtype=torch.float64)
    moved = SingleTaskGP(
        low + (high - low) * X,
        y,
        covar_module=SDRKernel(reduction()),
        input_transform=Normalize(4, bounds=torch.stack([low, high])),
    )
    points = torch.rand(6, 4, dtype=torch.float64)
    with torch.no_grad():
        found = moved.posterior(low + (high - low) * points).mean
        torch.testing.assert_close(found, model().posterior(points).mean)


def test_a_sum_with_a_kernel_on_x_is_fitted() -> None:
    kernel = SDRKernel(reduction()) + RBFKernel(ard_num_dims=4)
    gp = SingleTaskGP(*samples(), covar_module=kernel)
    before = log_likelihood(gp)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    assert log_likelihood(gp) > before + 0.1


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_single_precision() -> None:
    X, y = (tensor.float() for tensor in samples())
    gp = SingleTaskGP(X, y, covar_module=SDRKernel(reduction()))
    acquisition = LogExpectedImprovement(gp, best_f=y.max())
    points = torch.rand(5, 1, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(acquisition(points).sum(), points)
    assert gradient.dtype == torch.float32 and gradient.isfinite().all()
