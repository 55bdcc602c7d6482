"""A sample's place does not depend on the samples it comes with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

from distreduce import SDR, DistR

WAYS = ["narrow", "wide", "sparse", "wide sparse", "precomputed", "rq", "ard", "linear"]


@pytest.fixture(scope="module", params=WAYS)
def model_and_batch(request: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    d = 100 if "wide" in request.param else 6
    train, batch = rng.normal(size=(50, d)), rng.normal(size=(3000, d))
    options: dict[str, Any] = {"random_state": 0}
    if request.param == "precomputed":
        train, batch, options["metric"] = cdist(train, train), cdist(batch, train), "precomputed"
    if "sparse" in request.param:
        train, batch = sparse.csr_matrix(train * (train > 0.5)), sparse.csr_matrix(batch * (batch > 0.5))
    if request.param in ("rq", "linear"):
        options["input_kernel"] = request.param
    if request.param == "ard":
        options["length_scale"] = np.linspace(1, 3, d)
    return DistR(**options).fit(train), batch


def test_one_row_equals_its_row_of_a_batch(model_and_batch: Any) -> None:
    model, batch = model_and_batch
    whole = model.transform(batch)
    alone = np.vstack([model.transform(batch[i : i + 1]) for i in range(0, 3000, 250)])
    assert_allclose(alone, whole[::250], rtol=0, atol=1e-12)


def test_reversed_batch_gives_the_reversed_result(model_and_batch: Any) -> None:
    model, batch = model_and_batch
    assert_allclose(model.transform(batch[::-1]), model.transform(batch)[::-1], rtol=0, atol=1e-12)


def test_samples_of_the_fit_keep_their_place_among_others(classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=9, random_state=0).fit(X, y)
    mixed = model.transform(np.vstack([X + 5, X]))
    assert_allclose(mixed[len(X) :], model.embedding_, rtol=0, atol=1e-12)


def test_batches_larger_than_the_block_are_whole(monkeypatch: pytest.MonkeyPatch, classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=9, random_state=0).fit(X, y)
    expected = model.transform(X)
    monkeypatch.setattr("distreduce.mapping.kernel_map.BATCH_NUMBERS", 7 * len(X))
    assert_allclose(model.transform(X), expected, rtol=0, atol=1e-12)


@given(st.lists(st.integers(0, 79), min_size=1, max_size=20))
def test_any_selection_of_rows(rows: list[int]) -> None:
    model, X = _fitted_once()
    assert_allclose(model.transform(X[rows]), model.embedding_[rows], rtol=0, atol=1e-12)


def _fitted_once(cache: dict[str, Any] = {}) -> tuple[Any, np.ndarray]:  # noqa: B006 (hypothesis takes no fixtures)
    if not cache:
        X = np.random.default_rng(4).normal(size=(80, 70))
        cache["fitted"] = SDR(random_state=0).fit(X, X[:, 0]), X
    return cache["fitted"]


def test_far_away_samples_stay_finite(classification: Any) -> None:
    X, y = classification
    assert np.isfinite(SDR(random_state=0).fit(X, y).transform(1e6 * X)).all()
