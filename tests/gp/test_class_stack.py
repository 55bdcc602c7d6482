"""Probabilities of a stack: temperatures against a grid, mixtures, thresholds of prediction sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from distreduce.gp._class_stack import ClassStack, fit_temperature, soften
from distreduce.gp._crossfit import CrossFit


class Scores:
    """A predictor with the scores that it is given as inputs."""

    def scores(self, inputs):
        return inputs


@pytest.fixture
def problem(rng):
    """Logits of three classes, and labels drawn from them."""
    logits = rng.normal(scale=1.5, size=(2000, 3))
    labels = (logits + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    return logits, labels


@pytest.mark.parametrize("factor", [0.2, 1.0, 7.0])
def test_temperature_undoes_a_factor_of_the_scores(problem, factor):
    logits, labels = problem
    grid = np.exp(np.linspace(-3, 3, 1201))
    losses = [-log_softmax(t * logits, axis=1)[np.arange(2000), labels].mean() for t in grid]
    found = fit_temperature(logits / factor, labels, np.ones(2000))
    assert found == pytest.approx(factor * grid[np.argmin(losses)], rel=0.01)
    assert found == pytest.approx(factor, rel=0.1)


def test_weights_are_copies_for_the_temperature(problem):
    logits, labels = problem
    counts = np.arange(2000) % 3
    copied = fit_temperature(np.repeat(logits, counts, axis=0), np.repeat(labels, counts), np.ones(counts.sum()))
    assert fit_temperature(logits, labels, counts.astype(float)) == pytest.approx(copied, rel=1e-6)


def stack_of(views, labels):
    left_out = {name: (scores,) for name, scores in views.items()}
    stack = ClassStack.of(CrossFit(left_out, np.arange(len(labels))), labels, np.ones(len(labels)))
    return replace(stack, processes=dict.fromkeys(views, Scores()))


@pytest.fixture
def stack(problem, rng):
    logits, labels = problem
    views = {"sure": 5 * logits, "noise": rng.normal(size=logits.shape)}
    return stack_of(views, labels), views


def test_probabilities_are_positive_and_sum_to_one(stack):
    found = stack[0].probabilities({name: 1e6 * scores for name, scores in stack[1].items()})
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found.min() > 1e-5  # never sure of everything


def test_a_sure_expert_is_calibrated_and_one_that_knows_nothing_left_out(stack, problem):
    logits, labels = problem
    found = stack[0].probabilities(stack[1])
    assert stack[0].weights["sure"] > 0.9
    assert log_loss(labels, found) < -log_softmax(logits, axis=1)[np.arange(2000), labels].mean() + 0.005


def test_confidences_are_those_of_the_true_classes(stack, problem):
    found = stack[0].probabilities(stack[1])[np.arange(2000), problem[1]]
    np.testing.assert_allclose(stack[0].confidences, np.sort(found), rtol=1e-9)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_thresholds_are_order_statistics(stack, coverage):
    inside = np.mean(stack[0].confidences >= stack[0].threshold(coverage))
    assert coverage <= inside + 1e-9 < coverage + 2 / 2000
    assert ClassStack({}, {}, {}, 1.0, np.array([0.3, 0.8])).threshold(coverage) == (0.3 if coverage < 0.6 else 0.0)


@pytest.mark.parametrize("n_classes", [2, 3000])
def test_softened_probabilities_sum_to_one_with_any_number_of_classes(n_classes):
    found = soften(np.eye(n_classes)[:2] * 1e3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found[0, 0] > 0.89 and found.min() > 0


@pytest.mark.parametrize("is_logarithmic", [True, False])
def test_gps_whose_indicators_are_probabilities_get_their_logarithm(rng, is_logarithmic):
    indicators = rng.dirichlet([0.3, 0.3, 0.3], size=1000)
    p = indicators if is_logarithmic else soften(3 * indicators)
    labels = (rng.random((1000, 1)) > np.cumsum(p, axis=1)[:, :2]).sum(axis=1)
    found = CrossFit({"inputs": (indicators,), "linear": (indicators,)}, np.arange(1000))
    stack = ClassStack.of(found, labels, np.ones(1000))
    assert ("inputs" in stack.logarithmic, "linear" in stack.logarithmic) == (is_logarithmic, False)
    assert stack.temperatures["inputs"] == pytest.approx(1.0 if is_logarithmic else 3.0, rel=0.15)
