"""Cells: centres, which is nearest, and which samples those of a cell are compared with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from distreduce.sharding import cells
from distreduce.sharding.cells import (
    Probes,
    cell_blocks,
    centre_distances,
    centre_scores,
    choose_candidates,
    find_centres,
    find_radii,
    n_cells,
    nearest_centre,
    sample_size,
)


@pytest.fixture
def points(rng):
    return rng.normal(size=(700, 4)) + 3.0 * rng.integers(3, size=(700, 1))


@pytest.fixture
def middle(points):
    return find_centres(points, 12, np.random.RandomState(0))


def test_few_samples_are_one_cell():
    assert n_cells(20_000) == 1


def test_a_million_samples_are_cells_of_the_stated_size():
    assert n_cells(1_000_000) == 1_000_000 // cells.ROWS_PER_CELL


def test_the_number_of_cells_is_bounded():
    assert n_cells(10**9) == cells.MAX_CELLS


@pytest.mark.parametrize(("n_features", "rows"), [(50, 128_000), (40_000, 3355), (10**7, 2000)])
def test_the_sample_for_centres_is_bounded_by_its_size_in_memory(n_features, rows):
    assert sample_size(2000, n_features) == rows


def test_centres_are_better_than_random_samples(points, middle):
    spread = [cdist(points, other).min(axis=1).sum() for other in (middle, points[:12])]
    assert spread[0] < 0.9 * spread[1]


def test_near_centres_have_near_numbers(middle):
    """Neighbours in the order lie closer than centres do on average."""
    steps = np.linalg.norm(np.diff(middle, axis=0), axis=1)
    assert steps.mean() < 0.7 * cdist(middle, middle).mean()


def test_a_single_centre_is_the_mean(points):
    np.testing.assert_allclose(find_centres(points, 1, np.random.RandomState(0)), [points.mean(axis=0)])


def test_fewer_different_rows_than_centres():
    assert np.unique(find_centres(np.repeat([[0.0], [1.0]], 30, axis=0), 5, np.random.RandomState(0))).tolist() == [
        0.0,
        1.0,
    ]


def test_fewer_rows_than_centres(points):
    assert len(find_centres(points[:3], 5, np.random.RandomState(0))) == 3


def test_the_nearest_centre_is_that_of_brute_force(points, middle):
    np.testing.assert_array_equal(nearest_centre(points, middle), cdist(points, middle).argmin(axis=1))


def test_the_nearest_centre_of_data_far_from_the_origin(points, middle):
    np.testing.assert_array_equal(nearest_centre(points + 1e8, middle + 1e8), nearest_centre(points, middle))


def test_scores_do_not_depend_on_the_place_in_the_block(points, middle):
    some = [5, 17, 3, 600]
    assert centre_scores(points[some], middle).tobytes() == centre_scores(points, middle)[some].tobytes()


def test_sparse_rows_have_the_scores_of_dense_ones(rng, middle):
    table = sparse.csr_array(rng.uniform(-1, 1, (50, 4)).clip(0))
    assert centre_scores(table, middle).tobytes() == centre_scores(table.toarray(), middle).tobytes()


def test_no_rows_have_no_nearest_centre(points, middle):
    assert nearest_centre(points[:0], middle).shape == (0,)


def test_distances_to_centres_are_those_of_brute_force(points, middle):
    expected = 0.5 * cdist(points, middle, "sqeuclidean")
    np.testing.assert_allclose(centre_distances(points, middle), expected, rtol=1e-12)
    np.testing.assert_allclose(centre_distances(points + 1e6, middle + 1e6), expected, rtol=1e-6)


def test_as_many_samples_as_searched_are_within_the_radius(points, middle, monkeypatch):
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 100)
    monkeypatch.setattr(cells, "_CENTRES", 5)
    radii = find_radii(points, middle, len(points))
    assert (0.5 * cdist(points, middle, "sqeuclidean") < radii - 1e-12).sum(axis=0).tolist() == [100] * 12


def test_the_radius_of_a_sample_holds_its_share(points, middle, monkeypatch):
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 100)
    some = find_radii(points[:200], middle, len(points))
    within = (0.5 * cdist(points[:200], middle, "sqeuclidean") < some - 1e-12).sum(axis=0)
    assert set(within) == {200 * 100 // len(points)}


def test_a_single_cell_and_few_samples_have_no_limit(points, middle):
    assert np.isinf(find_radii(points, middle[:1], 10**6)).all() and np.isinf(find_radii(points, middle, 10)).all()


def test_candidates_are_the_cell_and_all_that_are_near_its_centre(points, middle, monkeypatch):
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 100)
    nearest = nearest_centre(points, middle)
    radii = find_radii(points, middle, len(points))
    indptr, rows = choose_candidates(points, nearest, Probes(middle, radii))
    wanted = (0.5 * cdist(points, middle, "sqeuclidean") < radii - 1e-12) | (nearest[:, None] == np.arange(12))
    for cell in range(12):
        np.testing.assert_array_equal(rows[indptr[cell] : indptr[cell + 1]], np.flatnonzero(wanted[:, cell]))


def test_equal_samples_are_compared_with_their_cell_only(monkeypatch):
    """Else all pairs of a million equal rows would be compared."""
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 100)
    points, own = np.ones((900, 2)), np.repeat(np.arange(3, dtype=np.int32), 300)
    centres = np.ones((3, 2))
    found = choose_candidates(points, own, Probes(centres, find_radii(points, centres, 900)))
    assert np.diff(found.indptr).tolist() == [300] * 3


def test_blocks_lie_in_one_cell():
    assert list(cell_blocks(np.array([0, 0, 0, 2, 5, 5]), 2)) == [(0, 2), (2, 3), (3, 4), (4, 6)]
