"""Fixtures of the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.quick_predictor import quick_predictor


@pytest.fixture
def quick() -> Iterator[None]:
    """A predictor of a fraction of the time, where any predictor will do."""
    with quick_predictor():
        yield
