"""A predictor of most samples learns from the others, in the stack that left-out samples taught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distreduce import SDRGPClassifier, SDRGPRegressor
from distreduce.gp._refit import refit
from distreduce.persistence import load

pytestmark = pytest.mark.usefixtures("light")


def waves(rng, n=120):
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


def test_experts_learn_from_more_samples_in_the_stack_of_before(rng):
    X, y = waves(rng)
    model = SDRGPRegressor(experts=["linear"], random_state=0).fit(X[:40], 50.0 + y[:40])
    before, (stack,) = model.predict(X), model.stacks_
    (again,) = refit(model, X, 50.0 + y).stacks_
    assert again.weights == stack.weights and again.calibration == stack.calibration and again.tails == stack.tails
    errors = [np.mean((predicted - 50.0 - y)[40:] ** 2) for predicted in (before, model.predict(X))]
    assert errors[1] < 0.5 * errors[0]  # these samples are known now


def test_several_warped_targets_keep_their_scale(rng):
    X, y = waves(rng)
    Y = np.c_[np.exp(2 * y), y]
    model = SDRGPRegressor(experts=["linear"], random_state=0).fit(X, Y)
    expected, scale = model.predict(X), model.target_scale_
    Y[0, 0] = -1e-3  # negative for the first time
    found = refit(model, X, Y).target_scale_
    assert (found.mean == scale.mean).all() and (found.std == scale.std).all()
    assert (scale.ranges == [1, 0]).all() and (found.ranges == 0).all()
    np.testing.assert_allclose(model.predict(X), expected, rtol=0.1, atol=0.3)  # of numbers up to 400


@pytest.mark.parametrize(("expert", "fitted"), [("inputs", 90), ("embedding", 120)])
def test_the_reduction_is_fitted_again_if_its_expert_takes_part(rng, expert, fitted):
    X = rng.normal(size=(120, 2))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "a", "b")
    model = SDRGPClassifier(2, experts=[], gp_steps=3, random_state=0).fit(X[:90], labels[:90])
    model.stack_ = replace(model.stack_, weights={expert: 1.0})
    refit(model, X, labels)
    assert len(model.reduction_.embedding_left_out_) == fitted and len(model.predict_proba(X)) == 120


def test_a_loaded_model_learns_from_more_samples(rng, tmp_path):
    X, y = waves(rng)
    SDRGPRegressor(experts=["linear"], random_state=0).fit(X[:40], y[:40]).save(tmp_path / "m.safetensors")
    model = refit(load(tmp_path / "m.safetensors"), X, y)
    assert len(model.reduction_.embedding_left_out_) == 120 and np.corrcoef(model.predict(X), y)[0, 1] > 0.95
