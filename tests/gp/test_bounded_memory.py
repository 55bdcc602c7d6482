"""Predictions of any number of samples take memory for a part of them, also from a file of single precision."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from distreduce import SDRGPClassifier, SDRGPRegressor
from distreduce.gp import _estimator, _exact

pytestmark = pytest.mark.usefixtures("light")
METHODS = {
    SDRGPRegressor: ("predict", "predict_quantiles", "transform", "novelty"),
    SDRGPClassifier: ("predict_proba", "transform"),
}


@pytest.mark.parametrize("kind", METHODS)
def test_a_memory_map_of_single_precision_is_never_copied_as_a_whole(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_estimator, "CHUNK", 2000)  # so that fewer rows are many parts
    monkeypatch.setattr(_exact, "BATCH_NUMBERS", 100_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 20))
    model = kind(2, experts=[], gp_steps=1, random_state=0).fit(X, X[:, 0] if kind is SDRGPRegressor else X[:, 0] > 0)
    new = np.lib.format.open_memmap(tmp_path / "new.npy", "w+", np.float32, (100_000, 20))
    new[:] = np.resize(rng.normal(size=(1000, 20)), new.shape)
    for name in METHODS[kind]:
        getattr(model, name)(new[:10])  # imports what it needs
        tracemalloc.start()
        found = getattr(model, name)(new)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - 3 * found.nbytes < 0.6 * 8 * new.size, name
        np.testing.assert_allclose(found[-100:], getattr(model, name)(new[-100:].astype(np.float64)), rtol=1e-10)
