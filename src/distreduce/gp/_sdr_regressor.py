"""SDRGPRegressor: reduce, then predict numbers with a stack of experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from distreduce._utils.numerics import evenly_spaced
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError
from distreduce.gp._crossfit import CrossFitter, number_folds
from distreduce.gp._exact import ExactGP, MergedRows, check_exact_size
from distreduce.gp._experts import EXPERTS, Lesson
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.gp._reduce import PAPER, ReducingGP
from distreduce.gp._regression import BaseGPRegressor
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import Warp, number_groups, propose_warps

LEAST_SAMPLES, CHOICE_SAMPLES = 30, 400
# A warp is taken for this gain in mean log density, if it multiplies the squared error by no more than that.
WARP_GAIN, WARP_LOSS = 0.05, 1.02


class SDRGPRegressor(ReducingGP, BaseGPRegressor):
    """Regression with honest uncertainty on a supervised distributional reduction [1]_.

    SDR reduces the samples, and a stack of experts predicts the targets: a Gaussian process on the embedding, three on
    the features (smooth, rough, and with one length scale for all features), a linear model, a random forest and
    gradient boosting. Everything the stack knows of its experts, their weights [2]_, the size of their errors and the
    shape of their tails, it learns from samples that were left out of them (cross-fitting). Copies of a sample are left
    out together. Skewed and heavy-tailed targets are warped if left-out samples gain by it.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    [shared]

    Attributes
    ----------
    reduction_ : SDR
        The reduction, fitted to ``X / input_scale_``.
    input_scale_ : (d,) array
        What each feature is divided by.
    embedding_scale_ : (p,) array
        What the embedding is divided by before its GP sees it.
    target_scale_ : TargetScale
        Mean and standard deviation of each target.
    stacks_ : tuple
        One predictor per target: its experts (`processes`) and their `weights`.
    novelty_ : Novelty
        Training samples and their distances, which :meth:`novelty` compares with.

    References
    ----------
    .. [1] Ramesh et al. (2026). Supervised Distributional Reduction via Optimal Transport and Dependence Maximization.
       arXiv:2605.27619.
    .. [2] Yao, Vehtari, Simpson, Gelman (2018). Using stacking to average Bayesian predictive distributions. Bayesian
       Analysis 13(3).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from distreduce import SDRGPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SDRGPRegressor(random_state=0).fit(X[:100], y[:100])
    >>> mean, std = model.predict(X[100:103], return_std=True)
    >>> mean.shape, model.transform(X[100:103]).shape
    ((3,), (3, 2))
    """

    _parameter_constraints = {**BaseGPRegressor._parameter_constraints, **ReducingGP._reduction_constraints}

    @classmethod
    def paper(cls, n_components: int = 2, **parameters: Any) -> SDRGPRegressor:
        """The paper's SDR-GP: fixed length scales, lambda 0.01, eta 1000, a GP of 20 Adam steps on the embedding."""
        return cls(n_components, **{**PAPER, "feature_scaling": "standard", "gp_steps": 20, **parameters})

    def _fit_read(
        self, X: Array, Y: Array, weights: Array, groups: Index | None, random_state: Any, fitting: Any, pool: Workers
    ) -> None:
        """Choose the warps of the targets, reduce, and learn one stack per target."""
        if (np.ptp(Y, axis=0) == 0).all():
            constant = self.target_scale_.mean[0]
            raise InvalidInputError(f"y is constant ({constant:g}): no reduction can follow it; use GPRegressor.")
        once, together = self._scale_features(X, Y, weights, groups)
        inputs, given = X[once.rows] / self.input_scale_, Y[once.rows].T
        warps = [None if self._follows_paper else choose_warp(inputs, y, once.weights, together) for y in given]
        learned = np.stack([y if w is None else w(y) for y, w in zip(Y.T, warps, strict=True)], axis=1)
        arranged, embedded = self._reduce(X, learned, learned, weights, random_state, groups, fitting)
        if self._follows_paper:
            self.stacks_ = self._fit_paper(embedded, Y, weights)
            return
        seed = int(random_state.randint(2**31 - 1))
        nearest = self._find_nearest(embedded[arranged.order] * self.embedding_scale_)
        of = [partial(Stack.of, weights=arranged.evidence, groups=nearest, warp=warp) for warp in warps]
        self.stacks_ = tuple(
            self._cross_fit(X, arranged, embedded, y[:, None], learn, pool, seed)
            for y, learn in zip(learned.T, of, strict=True)
        )

    def _fit_paper(self, embedded: Array, Y: Array, weights: Array) -> tuple[Stack, ...]:
        """The paper's GP on the embedding, for each target."""
        check_exact_size(len(embedded), "the paper's recipe has no other; use the defaults")
        training = self._training(lbfgs_steps=200, adam_steps=20)
        start = Hyperparameters.start(np.ones(embedded.shape[1]))
        stacks = []
        for y in Y.T:
            rows = MergedRows(embedded, y[:, None], weights, np.zeros(1))
            found = training(rows.likelihood, start)
            gp = ExactGP(embedded, y, found, weights=None if (weights == 1.0).all() else weights)
            stacks.append(Stack.of_exact("embedding", gp, rescaled=False))
        return tuple(stacks)


def choose_warp(inputs: Array, y: Array, weights: Array, groups: Index | None = None) -> Warp | None:
    """The warp under which left-out targets are most probable, if their squared error does not grow; else None."""
    candidates: list[Warp | None] = [None, *propose_warps(y[weights > 0])]
    if len(candidates) == 1 or len(y) < LEAST_SAMPLES:
        return None
    rows = np.flatnonzero(weights > 0)
    rows = rows[evenly_spaced(len(rows), CHOICE_SAMPLES)]
    together = number_groups(inputs[rows], None if groups is None else groups[rows])
    scores = [_try_warp(inputs[rows], y[rows], weights[rows], together, warp) for warp in candidates]
    plain = scores[0]
    # A gain must be clear, because a warp costs simplicity and may bend what extrapolates.
    able = [(density, warp) for (density, error), warp in zip(scores, candidates, strict=True)
            if warp is not None and density > plain[0] + WARP_GAIN and error <= WARP_LOSS * plain[1]]  # fmt: skip
    return max(able, key=lambda pair: pair[0])[1] if able else None


def _try_warp(inputs: Array, y: Array, weights: Array, groups: Index, warp: Warp | None) -> tuple[float, float]:
    """Mean log density and squared error of left-out targets, predicted by a smooth and a linear expert."""
    learned = y if warp is None else warp(y)
    experts = {name: EXPERTS[name] for name in ("isotropic", "linear")}
    lesson = Lesson(inputs, learned[:, None], weights, False, Training("lbfgs", 20, tolerance=1e-4), CHOICE_SAMPLES)
    found = CrossFitter(experts, dict.fromkeys(experts, lesson), number_folds(groups), SERIAL).leave_out()
    stack = Stack.of(found, learned, weights, groups, warp)
    mean, variance = stack.mix(found.left_out)
    h = weights / weights.sum()
    predicted, _ = stack.unwarp(mean, variance)
    return float(h @ stack.log_density(mean, np.sqrt(variance), y)), float(h @ (predicted - y) ** 2)
