"""The predictor of classes: experts on several views of the samples, calibrated and mixed by left-out probabilities."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from distreduce._utils.typing import Array, Index
from distreduce.gp._crossfit import CrossFit, Said
from distreduce.gp._experts import KERNELS, LEAST_PROBABILITY
from distreduce.gp._stack import REFERENCE, Views, find_rank, rank_within, select_used, thin_reference, weigh

LEAST_INDICATOR = 0.01


@dataclass(frozen=True)
class ClassStack:
    r"""Experts by name, and how their scores become probabilities.

    .. math:: p(x) \propto \Big(\sum_k w_k\, \mathrm{softmax}(t_k g_k(s_k(x)))\Big)^t

    with g the identity or, where left-out samples prefer it, the logarithm: GPs predict indicators, which end at 1.
    """

    processes: Mapping[str, Any]  # fitted experts with scores s_k
    temperatures: Mapping[str, float]  # t_k, which make each expert as sure as its left-out predictions were right
    weights: Mapping[str, float]  # w_k, which sum to one
    sharpness: float  # t of the mixture, whose parts may be unsure at different places
    confidences: Array = field(default_factory=lambda: np.empty(0))  # sorted left-out probabilities of true classes
    groups: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # these classes
    logarithmic: Collection[str] = ()  # experts whose g_k is the logarithm

    @classmethod
    def of(cls, found: CrossFit, labels: Index, weights: Array) -> ClassStack:
        """Learn temperatures and weights from left-out scores."""
        y, h = labels[found.rows], weights[found.rows]
        temperatures = {name: fit_temperature(scores, y, h) for name, (scores,) in found.left_out.items()}
        own = cls({}, temperatures, {}, 1.0).choose_logarithms(found.left_out, y, h)
        own = replace(own, weights=weigh(own.log_densities(found.left_out, y), h, thrifty=len(y) < len(labels)))
        mixture = np.log(own.mix({name: scores for name, (scores,) in found.left_out.items()}))
        sharpness = fit_temperature(mixture, y, h)
        confidence = soften(sharpness * mixture)[np.arange(len(y)), y]
        kept, groups = thin_reference(confidence, y, REFERENCE, h)
        return replace(own, sharpness=sharpness, confidences=kept, groups=groups)

    def choose_logarithms(self, said: Said, y: Index, weights: Array) -> ClassStack:
        """Take the logarithm of the indicators that GPs predict, where left-out labels are more probable so."""
        said = {name: scores for name, scores in said.items() if name in KERNELS}
        sure = {name: fit_temperature(take_logarithm(scores), y, weights) for name, (scores,) in said.items()}
        other = replace(self, temperatures=sure, logarithmic=set(sure))
        before, after = self.log_densities(said, y), other.log_densities(said, y)
        better = {name: sure[name] for name in sure if weights @ after[name] > weights @ before[name]}
        return replace(self, temperatures={**self.temperatures, **better}, logarithmic=set(better))

    def log_densities(self, scores: Said, y: Index) -> dict[str, Array]:
        """Log probabilities of labels under each expert by itself."""
        rows = np.arange(len(y))
        return {name: np.log(self.soften(name, own)[rows, y]) for name, (own,) in scores.items()}

    def probabilities(self, views: Views) -> Array:
        """Probability of each class (t, c)."""
        mixture = self.mix({name: self.processes[name].scores(views[name]) for name in self.used()})
        return soften(self.sharpness * np.log(mixture))

    def mix(self, scores: Mapping[str, Array]) -> Array:
        """Weighted mean of the experts' probabilities (t, c)."""
        parts = (weight * self.soften(name, scores[name]) for name, weight in self.used().items())
        return np.asarray(sum(parts))

    def soften(self, name: str, scores: Array) -> Array:
        """Probabilities (t, c) of one expert."""
        return soften(self.temperatures[name] * (take_logarithm(scores) if name in self.logarithmic else scores))

    def used(self) -> dict[str, float]:
        """Experts and their weights, without those of negligible weight."""
        return select_used(self.weights)

    def threshold(self, coverage: float, n_classes: int | None = None) -> Any:
        """Least probability of a class in a set: an order statistic of the confidences, or one within each class."""

        def rank(confidences: Array) -> float:
            low = find_rank(len(confidences), 1 - coverage)
            return float(confidences[low - 1]) if low >= 1 else -np.inf

        if n_classes is None:
            return max(0.0, rank(self.confidences))
        return rank_within(rank, self.confidences, self.groups, np.arange(n_classes))


def take_logarithm(indicators: Array) -> Array:
    """Logarithm of predicted indicators, which may be below zero."""
    return np.asarray(np.log(np.maximum(indicators, LEAST_INDICATOR)))


def soften(logits: Array) -> Array:
    """Softmax, with a least probability for every class."""
    least = min(LEAST_PROBABILITY, 0.1 / logits.shape[1])
    return np.asarray(least + (1 - logits.shape[1] * least) * softmax(logits, axis=1))


def fit_temperature(scores: Array, labels: Index, weights: Array) -> float:
    r"""The factor t of the scores under which the labels are most probable [1]_.

    .. math:: \max_t \sum_i h_i \Big((1 - \epsilon) \log p_{i y_i} + \frac{\epsilon}{C} \sum_c \log p_{ic}\Big), \qquad
        p_i = \mathrm{softmax}(t s_i), \quad \epsilon = 1 / (n + 2)

    The second term is Platt's: n samples without an error do not prove that there are none [2]_.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017). On calibration of modern neural networks. ICML.
    .. [2] Platt (1999). Probabilistic outputs for support vector machines. Advances in large margin classifiers.
    """
    rows, doubt = np.arange(len(labels)), 1.0 / (weights.sum() + 2.0)

    def loss(log_factor: float) -> float:
        logs = log_softmax(np.exp(log_factor) * scores, axis=1)
        return -float(weights @ ((1.0 - doubt) * logs[rows, labels] + doubt * logs.mean(axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 6.0), method="bounded", options={"xatol": 1e-3}).x))
