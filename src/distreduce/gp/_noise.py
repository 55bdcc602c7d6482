"""Noise that depends on x: how large the errors are in one place, relative to the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from distreduce._utils.typing import Array
from distreduce.gp._crossfit import Arranged, CrossFit, assign_folds
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
        return self.relate(self.expert.moments(inputs)[0])

    def relate(self, sizes: Array) -> Array:
        """n from values of f."""
        return np.asarray(np.maximum(sizes, self.least) ** (2 / POWER) / self.unit)


def follow_noise(
    stack: Stack, learn: Callable[[CrossFit, Array], Stack], found: CrossFit, lesson: Lesson, own: Arranged
) -> Stack:
    """The stack, or the one whose noise depends on x if left-out targets are clearly more probable under it."""
    y, target, evidence = lesson.targets[found.rows, 0], lesson.targets[:, 0], own.evidence[found.rows]
    h, constant, best = evidence / evidence.sum(), stack.log_density_left_out(found, y), 0.0
    sizes = np.abs(y - stack.mix(found.left_out)[0]) ** POWER
    least = LEAST * float(h @ sizes)
    lesson = replace(lesson.take(found.rows), targets=sizes[:, None])
    folds = assign_folds(np.unique(own.groups[found.rows], return_inverse=True)[1])
    # Few errors tell their scale alone; where there are none, cubes of them would underflow.
    for model in MODELS if evidence.sum() >= FEW and least ** (2 / POWER) > 0.0 else ():
        guesses = np.empty(len(y))
        for fold in np.unique(folds):  # a second cross-fit, so that these are left-out samples too
            part = folds == fold
            guesses[part] = model(lesson.take(np.flatnonzero(~part))).moments(lesson.inputs[part])[0]
        noise = Noise(model(lesson), least, 1.0)
        noise = replace(noise, unit=float(h @ noise.relate(guesses)))
        known = replace(found, noise=noise.relate(guesses))
        other = learn(known, target)
        gain = other.log_density_left_out(known, y) - constant
        mean = float(h @ gain)
        # By two standard errors: where the noise is constant, guesses of it only cost.
        if mean > max(best, CLEARLY * float(np.sqrt(h**2 @ (gain - mean) ** 2))):
            best, stack = mean, replace(other, noise=noise)
    return stack
