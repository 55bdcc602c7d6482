"""Normalised Student-t affinity."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference

from distreduce.affinity import student_affinity


@pytest.fixture
def points(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(300, 2))


def test_agrees_with_formula(points: np.ndarray, rng: np.random.Generator) -> None:
    r = rng.uniform(0.5, 2.0, size=300)
    np.testing.assert_allclose(student_affinity(points, r), reference.student_affinity(points, r), rtol=1e-12)


def test_weighted_sum_is_one(points: np.ndarray, rng: np.random.Generator) -> None:
    r = rng.uniform(0.5, 2.0, size=300)
    assert r @ student_affinity(points, r) @ r == pytest.approx(1.0, rel=1e-12)


def test_symmetric_bit_for_bit(points: np.ndarray) -> None:
    C = student_affinity(points)
    assert np.array_equal(C, C.T)


def test_weight_two_is_a_point_repeated(points: np.ndarray) -> None:
    weights = np.r_[2.0, np.ones(299)]
    repeated = student_affinity(np.vstack([points[:1], points]))
    np.testing.assert_allclose(student_affinity(points, weights), repeated[1:, 1:], rtol=1e-12)


def test_a_point_of_weight_zero_changes_no_other(points: np.ndarray) -> None:
    weighted = student_affinity(points, np.r_[0.0, np.ones(299)])
    np.testing.assert_allclose(weighted[1:, 1:], student_affinity(points[1:]), rtol=1e-12)
