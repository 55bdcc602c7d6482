"""Rows in a temporary file against the array they came from."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distreduce.exceptions import InvalidInputError
from distreduce.sharding.row_file import RowFile, StoredRows


def stored(rows: np.ndarray, seed: int = 0) -> RowFile:
    """Written in two parts and in a random order."""
    file, order = RowFile(rows.shape[1], rows.dtype), np.random.default_rng(seed).permutation(len(rows))
    for part in np.array_split(order, 2):
        file.write(part, rows[part])
    return file


@given(
    n=st.integers(1, 40), d=st.integers(1, 5), seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float64"])
)
def test_slices_and_row_numbers_are_those_of_the_array(n, d, seed, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)).astype(dtype)
    start, stop = sorted(rng.integers(0, n + 1, 2))
    part, wanted = StoredRows(stored(rows, seed), start, stop), rows[start:stop]
    numbers = rng.integers(0, stop - start, 7) if stop > start else np.empty(0, dtype=int)
    mask = rng.random(stop - start) < 0.5
    assert part.shape == wanted.shape and part.dtype == wanted.dtype
    assert all(np.array_equal(part[key], wanted[key]) for key in (slice(None), slice(1, 9), slice(None, None, 2)))
    assert np.array_equal(part[numbers], wanted[numbers]) and np.array_equal(part[mask], wanted[mask])


def test_matrix_products_work_on_stored_rows():
    rows = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(np.ones((2, 4)) @ np.asarray(StoredRows(stored(rows), 0, 4)), np.ones((2, 4)) @ rows)


def test_nothing_is_left_behind(tmp_path):
    file = RowFile(2, np.float64, folder=tmp_path)
    file.write(np.arange(3), np.ones((3, 2)))
    del file
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(InvalidInputError, match="TMPDIR"):
        RowFile(2, np.float64).write(np.arange(1), np.ones((1, 2)))
