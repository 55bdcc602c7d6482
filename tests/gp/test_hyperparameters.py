"""Training: Adam against GPyTorch's, L-BFGS against scikit-learn's, and what happens when the likelihood fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from distreduce.exceptions import NumericalError
from distreduce.gp._exact import MergedRows
from distreduce.gp._experts import Lesson, learn_process
from distreduce.gp._hyperparameters import NOISE_FLOOR, Hyperparameters, Training
from distreduce.mapping.relevance import negative_log_likelihood

START = Hyperparameters(np.ones(2), 1.0, 0.1)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=40)
    return X, (y - y.mean()) / y.std()


def train(X, y, training, scales):
    return training(MergedRows.of(X, y[:, None], np.ones(len(X))).likelihood, Hyperparameters.start(scales))


def gpytorchs(X, y, steps, learning_rate):
    """Length scales, signal and noise of GPyTorch's exact GP after some steps of torch's Adam."""
    torch, gpytorch = pytest.importorskip("torch"), pytest.importorskip("gpytorch")

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(torch.tensor(X), torch.tensor(y), gpytorch.likelihoods.GaussianLikelihood())
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().double()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -likelihood(model(model.train_inputs[0]), model.train_targets)
        loss.backward()
        optimizer.step()
    scales = model.kernel.base_kernel.lengthscale.detach().numpy()[0]
    return np.r_[scales, model.kernel.outputscale.item(), model.likelihood.noise.item()]


def test_adam_finds_gpytorchs_hyperparameters(problem):
    found = train(*problem, Training("adam", 20, 0.1), np.ones(2))
    # Their loss is divided by n: all but Adam's 1e-8 is free of that.
    np.testing.assert_allclose(np.exp(found.logarithms()), gpytorchs(*problem, 20, 0.1), rtol=1e-5)


def test_lbfgs_ends_no_higher_than_scikit_learns(problem):
    X, y = problem
    scales, at = np.ones(2), lambda found: negative_log_likelihood(found.logarithms(), X, y[:, None], np.ones(40))[0]
    kernel = ConstantKernel(1.0) * RBF(scales) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y).kernel_
    reference = Hyperparameters(theirs.k1.k2.length_scale, theirs.k1.k1.constant_value, theirs.k2.noise_level)
    assert at(train(X, y, Training(), scales)) <= at(reference) + 1e-4


def test_a_noise_free_target_presses_the_noise_to_its_floor(rng):
    X = np.sort(rng.uniform(size=(30, 1)), axis=0)
    found = train(X, np.sin(3 * X[:, 0]), Training(), np.ones(1))
    assert found.noise == pytest.approx(NOISE_FLOOR, rel=1e-6)


def test_logarithms_lead_back():
    found = Hyperparameters(np.array([0.5, 2.0]), 3.0, 0.1)
    back = Hyperparameters.from_logarithms(found.logarithms())
    np.testing.assert_allclose([*back.length_scales, back.signal, back.noise], [0.5, 2.0, 3.0, 0.1])


class Bowl:
    """½|x − 1|², which becomes NaN for some evaluations; remembers where it was a number."""

    def __init__(self, fails, broken="value"):
        self.fails, self.broken, self.n_calls, self.good = fails, broken, 0, []

    def __call__(self, x):
        self.n_calls += 1
        value, gradient = 0.5 * float(((x - 1) ** 2).sum()), x - 1
        if not self.fails(self.n_calls):
            self.good.append((value, x.copy()))
            return value, gradient
        return (np.nan, gradient) if self.broken == "value" else (value, gradient * np.nan)


@pytest.mark.parametrize("broken", ["value", "gradient"])
def test_lbfgs_keeps_the_best_point_when_the_likelihood_fails(broken):
    bowl = Bowl(lambda call: call > 2, broken)
    found = Training(steps=50)(bowl, START)
    best = min(bowl.good, key=lambda pair: pair[0])[1]
    np.testing.assert_allclose(found.logarithms(), best, atol=1e-12)


def test_lbfgs_steps_back_from_one_failure():
    found = Training(steps=50)(Bowl(lambda call: call == 2), START)
    np.testing.assert_allclose(found.logarithms(), 1.0, atol=1e-4)


def test_lbfgs_ends_with_the_first_step_that_gains_little(problem):
    X, y = problem
    values = []

    def objective(x):
        values.append(negative_log_likelihood(x, X, y[:, None], np.ones(40)))
        return values[-1]

    best = []
    for least_gain in (0.0, 0.5):
        values.clear()
        Training(steps=50, least_gain=least_gain)(objective, START)
        best.append((len(values), min(value for value, _ in values)))
    (whole, lowest), (short, reached) = best
    assert short < whole and lowest <= reached < lowest + 1.0


@pytest.mark.parametrize("broken", ["value", "gradient"])
def test_adam_rolls_back_to_the_last_point_where_the_likelihood_was_a_number(broken):
    bowl = Bowl(lambda call: call > 7, broken)
    found = Training("adam", 20)(bowl, START)
    np.testing.assert_allclose(found.logarithms(), bowl.good[-1][1], atol=1e-12)


@pytest.mark.parametrize("training", [Training(), Training("adam", 20)])
def test_a_likelihood_that_is_no_number_at_the_start_is_a_named_error(training):
    with pytest.raises(NumericalError, match="scale X and y"):
        training(Bowl(lambda call: True), START)


def test_adam_takes_the_number_of_steps_asked_for():
    bowl = Bowl(lambda call: False)
    Training("adam", 13)(bowl, START)
    assert bowl.n_calls == 13


def test_a_start_that_does_not_fit_the_samples_is_not_taken(rng):
    """Hyperparameters of a fold can be far off on all samples; the first step from there ends in a corner."""
    X = rng.normal(size=(60, 3))
    lesson = Lesson(X, np.sin(X[:, :1]) + 0.1 * rng.normal(size=(60, 1)), np.ones(60), is_class=False)
    far_off = Hyperparameters(np.full(3, 1e3), 1.0, 1e-6)
    found, plain = (learn_process(each).hyperparameters for each in (replace(lesson, known=far_off), lesson))
    np.testing.assert_array_equal(found.logarithms(), plain.logarithms())
