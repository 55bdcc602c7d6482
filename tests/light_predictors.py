"""Predictors of few trees and few folds: for what must hold however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def light_predictors() -> Iterator[None]:
    """Fit ten trees and steps of boosting, and leave three or two folds out in turn instead of ten or five."""
    from distreduce.gp import _crossfit, _experts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_experts, "FOREST_TREES", 10)
        patch.setattr(_experts, "BOOSTING_STEPS", 10)
        patch.setattr(_crossfit, "FOLDS_OF_FEW", 3)
        patch.setattr(_crossfit, "FOLDS", 2)
        yield
