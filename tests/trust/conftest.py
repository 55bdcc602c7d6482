"""Predictors of few trees: what these tests promise holds however many there are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def predictors_of_few_trees(few_trees: None) -> None:
    """For every test of this folder."""
