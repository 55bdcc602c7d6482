"""The package of baselines: its names."""

from __future__ import annotations

import pytest
import sklearn.decomposition

from distreduce import baselines


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_name_is_there(name: str) -> None:
    assert isinstance(getattr(baselines, name), type)


def test_pca_is_that_of_scikit_learn() -> None:
    assert baselines.PCA is sklearn.decomposition.PCA


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="TSNE"):
        _ = baselines.TSNE


def test_names_are_listed() -> None:
    assert set(baselines.__all__) <= set(dir(baselines))
