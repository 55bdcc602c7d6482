"""Fingerprints: equal values have equal ones, and whatever matters changes them."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from distreduce._utils.hashing import file_sha256, fingerprint, fingerprint_of_rows
from distreduce.kernels import RBF, RationalQuadratic
from distreduce.losses import LOSSES

TABLE = np.arange(12.0).reshape(4, 3)


class Kernel:
    def __init__(self, scale):
        self.scale = scale


EQUAL = {
    "numbers": lambda: 1.5,
    "tables": lambda: TABLE.copy(),
    "sparse": lambda: sparse.csr_array(TABLE),
    "kernels": lambda: RBF((1.0, 2.0)),
    "own kernels": lambda: Kernel(2.0),
    "losses": lambda: LOSSES["squared"],
    "generators": lambda: np.random.RandomState(3),
    "labels": lambda: np.array(["a", None, 3], dtype=object),
    "series": lambda: pd.Series([1, 2]),
}
PAIRS = {
    "type": (1, 1.0),
    "text": ("1", 1),
    "shape": (TABLE, TABLE.reshape(3, 4)),
    "bits": (TABLE, np.nextafter(TABLE, 9.0)),
    "precision": (TABLE, TABLE.astype(np.float32)),
    "order": ((1, 2), (2, 1)),
    "nesting": (((1,), 2), (1, (2,))),
    "kernel": (RBF(1.0), RationalQuadratic(1.0)),
    "own kernel": (Kernel(1.0), Kernel(2.0)),
    "sparse": (sparse.csr_array(TABLE), sparse.csr_array(TABLE.T)),
    "seed": (np.random.RandomState(0), np.random.RandomState(1)),
    "none": (None, ()),
}


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_equal_values_are_equal(make):
    assert fingerprint(make()) == fingerprint(make())


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_different_values_differ(pair):
    assert fingerprint(pair[0]) != fingerprint(pair[1])


def test_memory_order_does_not_matter():
    assert fingerprint(np.asfortranarray(TABLE)) == fingerprint(TABLE)


def test_a_generator_that_was_used_is_another():
    used = np.random.RandomState(0)
    used.random_sample()
    assert fingerprint(used) != fingerprint(np.random.RandomState(0))


def test_every_row_counts():
    rows = np.random.default_rng(0).normal(size=(9000, 2))
    other = rows.copy()
    other[8999, 1] += 1
    assert fingerprint_of_rows(rows, None) != fingerprint_of_rows(other, None)


def test_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc" * 2**20)
    assert file_sha256(tmp_path / "file") == hashlib.sha256(b"abc" * 2**20).hexdigest()
