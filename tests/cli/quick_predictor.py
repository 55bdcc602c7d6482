"""A predictor for tests of what `distreduce fit` writes, not of how well it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from light_predictors import light_predictors

from distreduce import SDRGPClassifier, SDRGPRegressor
from distreduce.cli import _models


@contextmanager
def quick_predictor() -> Iterator[None]:
    """Let `distreduce fit` mix Gaussian processes of few steps and a linear model, without trees."""
    with light_predictors(), pytest.MonkeyPatch.context() as patch:
        for kind in (SDRGPClassifier, SDRGPRegressor):
            patch.setattr(_models, kind.__name__, partial(kind, experts=["linear"], gp_steps=3))
        yield
