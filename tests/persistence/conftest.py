"""A model and the file it was saved to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from persistence.cases import full_model


@pytest.fixture(autouse=True)
def light_predictors_everywhere(light: None) -> None:
    """In every test of this folder: files hold trees alike, however many."""


@pytest.fixture
def model() -> Any:
    """A fitted model with most of what a file can hold."""
    return full_model()


@pytest.fixture
def saved(model: Any, tmp_path: Path) -> Path:
    """That model in a file."""
    path = tmp_path / "model.safetensors"
    model.save(path)
    return path
