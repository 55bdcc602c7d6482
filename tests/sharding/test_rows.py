"""An array in a temporary file."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import pytest

from distreduce.exceptions import InvalidInputError
from distreduce.sharding.rows import array_in_file


@pytest.mark.parametrize("reserved", [True, False], ids=["by the system", "by writing zeros"])
@pytest.mark.parametrize("shape", [(0, 3), (5, 3)])
def test_rows_are_kept_and_nothing_is_left_behind(shape, reserved, tmp_path, monkeypatch, rng):
    if not reserved:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows, order = rng.standard_normal(shape), rng.permutation(shape[0])
    stored = array_in_file(shape, np.float64)
    stored[order] = rows[order]
    np.testing.assert_array_equal(stored, rows)
    assert type(stored) is np.ndarray and os.listdir(tmp_path) == []


def test_a_full_disk_is_said(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(InvalidInputError, match="TMPDIR"):
        array_in_file((1, 2), np.float64)
