"""Noise that depends on x: how large the errors are in one place, relative to the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from distreduce._utils.typing import Array
from distreduce.gp._crossfit import ENOUGH_TO_JUDGE, Arranged, CrossFit, number_folds
from distreduce.gp._experts import Expert, Forest, Lesson, Linear, learn_forest, learn_linear
from distreduce.gp._stack import CLEARLY, Stack
from distreduce.gp._tails import FEW

POWER = 2 / 3  # of an error's size, which is then nearly Gaussian (Wilson and Hilferty, 1931)
LEAST = 0.1  # relative to the mean: no place is free of noise because a line crosses zero there
MODELS: tuple[Expert, ...] = (learn_linear, partial(learn_forest, least_leaf=5))


@dataclass(frozen=True)
class Noise:
    r"""Variance of the noise at x, relative to its mean over the samples.

    .. math:: n(x) = \max(f(x), l)^3 / u

    with f learned from the errors of left-out samples, :math:`|y_i - m(x_i)|^{2/3}`.
    """

    expert: Linear | Forest
    least: float
    unit: float

    def __call__(self, inputs: Array) -> Array:
        """n(x) of each row (t,)."""
        return cube(self.expert.moments(inputs)[0], self.least) / self.unit


def cube(sizes: Array, least: float) -> Array:
    return np.asarray(np.maximum(sizes, least) ** (2 / POWER))


Learn = Callable[[CrossFit, Array], Stack]  # from left-out predictions and the target


def follow_noise(stack: Stack, learn: Learn, found: CrossFit, lesson: Lesson, own: Arranged) -> Stack:
    """The stack, or the one whose noise depends on x if left-out targets are clearly more probable under it."""
    y, target, evidence = lesson.targets[found.rows, 0], lesson.targets[:, 0], own.evidence[found.rows]
    constant, best = stack, 0.0
    sizes = np.abs(y - stack.mix(found.left_out)[0]) ** POWER
    least = LEAST * float(evidence @ sizes / evidence.sum())
    lesson = replace(lesson.take(found.rows), targets=sizes[:, None])
    folds = number_folds(np.unique(own.groups[found.rows], return_inverse=True)[1])
    # Few errors tell their scale alone; where there are none, cubes of them would underflow. One group cannot tell the
    # noise of others.
    enough = evidence.sum() >= FEW and least ** (2 / POWER) > 0.0 and np.ptp(folds) > 0
    for model in MODELS if enough else ():
        variances = np.empty(len(y))
        for fold in np.unique(folds):  # a second cross-fit, so that these are left-out samples too
            part = folds == fold
            without = model(lesson.take(np.flatnonzero(~part)))
            variances[part] = cube(without.moments(lesson.inputs[part])[0], least)
            if fold == 0 and part.sum() >= ENOUGH_TO_JUDGE:
                some = found.take(part)
                gain, error, _ = _judge(learn, some, target, evidence[part], variances[part], learn(some, target))
                if gain + CLEARLY * error < best:  # given up, as experts are that will get no weight
                    break
        else:
            gain, error, other = _judge(learn, found, target, evidence, variances, constant)
            # By two standard errors: where the noise is constant, guesses of it only cost.
            if gain > max(best, CLEARLY * error):
                unit = float(evidence @ variances / evidence.sum())
                best, stack = gain, replace(other, noise=Noise(model(lesson), least, unit))
    return stack


def _judge(
    learn: Learn, found: CrossFit, target: Array, evidence: Array, variances: Array, constant: Stack
) -> tuple[float, float, Stack]:
    """Gain in mean log density if the noise has these variances, its standard error, and the stack that knows them."""
    h, y = evidence / evidence.sum(), target[found.rows]
    known = replace(found, noise=variances / float(h @ variances))
    other = learn(known, target)
    gain = other.log_density_left_out(known, y) - constant.log_density_left_out(found, y)
    mean = float(h @ gain)
    return mean, float(np.sqrt(h**2 @ (gain - mean) ** 2)), other
