"""Predictors of few trees and folds: what these tests promise holds however many there are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def light_predictors_everywhere(light: None) -> None:
    """For every test of this folder."""
