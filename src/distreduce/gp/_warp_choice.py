"""Whether the targets are warped before the experts learn them, and how: left-out samples decide."""

from __future__ import annotations

import numpy as np

from distreduce._utils.threads import SERIAL
from distreduce._utils.typing import Array
from distreduce.gp._crossfit import assign_folds, cross_fit
from distreduce.gp._exact import evenly_spaced
from distreduce.gp._experts import EXPERTS, Lesson
from distreduce.gp._hyperparameters import Training
from distreduce.gp._stack import Stack
from distreduce.gp._warp import Warp, propose_warps

LEAST_SAMPLES, CHOICE_SAMPLES = 30, 400
CLEARLY = 0.05  # gain in mean log density


def choose_warp(inputs: Array, y: Array, weights: Array) -> Warp | None:
    """The warp under which left-out targets are most probable, if their squared error does not grow; else None."""
    candidates: list[Warp | None] = [None, *propose_warps(y[weights > 0])]
    if len(candidates) == 1 or len(y) < LEAST_SAMPLES:
        return None
    rows = np.flatnonzero(weights > 0)
    rows = rows[evenly_spaced(len(rows), CHOICE_SAMPLES)]
    scores = [_try_warp(inputs[rows], y[rows], weights[rows], warp) for warp in candidates]
    plain = scores[0]
    # A gain must be clear, because a warp costs simplicity and may bend what extrapolates.
    able = [(density, warp) for (density, error), warp in zip(scores, candidates, strict=True)
            if warp is not None and density > plain[0] + CLEARLY and error <= plain[1] * 1.02]  # fmt: skip
    return max(able, key=lambda pair: pair[0])[1] if able else None


def _try_warp(inputs: Array, y: Array, weights: Array, warp: Warp | None) -> tuple[float, float]:
    """Mean log density and squared error of left-out targets, predicted by a smooth and a linear expert."""
    learned = y if warp is None else warp(y)
    experts = {name: EXPERTS[name] for name in ("isotropic", "linear")}
    lesson = Lesson(inputs, learned[:, None], weights, False, Training("lbfgs", 20, tolerance=1e-4), CHOICE_SAMPLES)
    groups = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    found = cross_fit(experts, dict.fromkeys(experts, lesson), assign_folds(groups), SERIAL)
    stack = Stack.of(found, learned, weights, warp)
    mean, variance = stack.mix(found.left_out)
    h = weights / weights.sum()
    predicted, _ = stack.unwarp(mean, variance)
    return float(h @ stack.log_density(mean, np.sqrt(variance), y)), float(h @ (predicted - y) ** 2)
