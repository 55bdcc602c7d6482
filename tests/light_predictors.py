"""Pictures and predictors of few folds and few trees: for what must hold however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def light_predictors() -> Iterator[None]:
    """Fit ten trees and steps of boosting, and leave three or two folds out in turn instead of ten or five.

    A picture takes half the time with two folds, a predictor less than half with all of this.
    """
    from distreduce.estimators import _auto
    from distreduce.gp import _crossfit, _experts
    from distreduce.mapping import folds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_experts, "FOREST_TREES", 10)
        patch.setattr(_experts, "BOOSTING_STEPS", 10)
        patch.setattr(_crossfit, "FOLDS_OF_FEW", 3)
        for module in (_crossfit, _auto, folds):
            patch.setattr(module, "FOLDS", 2)
        yield
