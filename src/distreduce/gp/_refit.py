"""From a predictor of most samples, which the others have judged, to one of all samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from distreduce._utils.threads import workers
from distreduce.estimators._fit_context import whole_fit
from distreduce.estimators._validate import own_generator

TAKES_PART = 0.1  # weight of the embedding from which on more samples are worth another reduction


def refit(model: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
    """Fit the experts of an SDR-GP to more samples, and keep everything that left-out samples taught about them.

    The first samples are those of the fit, in their order. Scales and warps, the weights of the experts and the
    distribution of their errors stay; so does the reduction, unless its expert takes part. Classes must be known.
    A file does not keep which rows the reduction saw, so that of a loaded model is always fitted again.
    """
    is_class = hasattr(model, "classes_")
    with whole_fit(model, afresh=False) as fitting, workers(model.n_jobs) as pool:
        known = model.classes_ if is_class else model.target_scale_
        X, y, weights, blocks = model._read(X, y, sample_weight, groups)
        if is_class:
            targets, labels = np.eye(len(known))[y], model.classes_[y]
            stacks, columns = [model.stack_], [targets]
        else:
            # In the scale of the fit, and warped as the experts learned them.
            scale, stacks = model.target_scale_, model.stacks_
            model.target_scale_ = replace(known, ranges=scale.ranges)
            given = (y * scale.std + scale.mean - known.mean) / known.std
            warped = [t if s.warp is None else s.warp(t) for s, t in zip(stacks, given.T, strict=True)]
            targets = labels = np.stack(warped, axis=1)
            columns = [column[:, None] for column in warped]
        # The reduction again, if the predictions rest on it; then the experts.
        arranged, random_state = model._arrange(X, targets, weights, blocks), own_generator(model.random_state)
        rows = getattr(model, "_reduced_rows", None)
        if rows is None or max(stack.weights.get("embedding", 0.0) for stack in stacks) > TAKES_PART:
            rows = model._fit_reduction(arranged.inputs, labels, weights, random_state, blocks)
            fitting.best = model.reduction_
        embedded, seed = model._training_embedding(X, rows, arranged), int(random_state.randint(2**31 - 1))
        found = []
        for stack, own in zip(stacks, columns, strict=True):
            fitter, _ = model._prepare_experts(X, arranged, embedded, own, pool, seed)
            found.append(replace(stack, processes=fitter.fit_all(stack.weights, stack.processes)))
        if is_class:
            (model.stack_,) = found
        else:
            model.stacks_ = tuple(found)
    return model
