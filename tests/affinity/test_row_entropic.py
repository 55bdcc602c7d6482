"""Row-entropic bandwidths: perplexity reached, slack rows, weights, any scale."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.manifold._utils import _binary_search_perplexity

from distreduce._utils.threads import Workers
from distreduce.affinity import squared_distances
from distreduce.affinity.symmetric import row_bandwidths
from distreduce.exceptions import InvalidInputError


def affinity(D: np.ndarray, perplexity: float, weights: np.ndarray | None = None) -> np.ndarray:
    """P from the bandwidths and partition sums of the rows."""
    rows = row_bandwidths(D, perplexity, np.ones(len(D)) if weights is None else weights)
    return np.exp(-D / rows.gamma[:, None] - rows.log_partition[:, None])


@pytest.fixture
def distances(loops: None, rng: np.random.Generator) -> np.ndarray:
    return squared_distances(rng.normal(size=(120, 4)))


def test_agrees_with_formula(distances: np.ndarray, rng: np.random.Generator) -> None:
    w = rng.uniform(0.5, 3.0, size=120)
    expected = reference.entropic_affinity(distances, row_bandwidths(distances, 12.0, w).gamma, w)
    np.testing.assert_allclose(affinity(distances, 12.0, w), expected, rtol=1e-10, atol=1e-300)


def test_bandwidth_agrees_with_a_root_finder(distances: np.ndarray) -> None:
    row, w = distances[:1], np.ones(120)

    def excess(log_gamma: float) -> float:
        P = reference.entropic_affinity(row, np.exp([log_gamma]), w)
        return float(reference.row_entropy(P, w)[0] - np.log(10.0))

    root = np.exp(brentq(excess, -5.0, 5.0, xtol=1e-14))
    assert row_bandwidths(distances, 10.0, w).gamma[0] == pytest.approx(root, rel=1e-9)


def test_agrees_with_scikit_learn(rng: np.random.Generator) -> None:
    # scikit-learn leaves the diagonal out: its row is ours given j ≠ i, at the perplexity of that conditional law.
    D = squared_distances(rng.normal(size=(80, 3)))
    others = affinity(D, 10.0) * (1.0 - np.eye(80))
    others /= others.sum(axis=1, keepdims=True)
    perplexity = np.exp(reference.row_entropy(others, np.ones(80)))
    theirs = _binary_search_perplexity(D[:1].astype(np.float32), float(perplexity[0]), 0)
    np.testing.assert_allclose(others[0], theirs[0], atol=1e-5)


@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 60),
    share=st.floats(0.0, 1.0),
    spread=st.floats(0.0, 6.0),
)
def test_every_row_has_the_perplexity(seed: int, n: int, share: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(0.0, spread, size=(n, 1))
    w = rng.uniform(1.0, 4.0, size=n)
    # A slack row exists when a sample alone outweighs the perplexity.
    perplexity = w.max() + share * (w.sum() - w.max())
    P = affinity(squared_distances(X), perplexity, w)
    np.testing.assert_allclose(reference.row_entropy(P, w), np.log(perplexity), atol=1e-9)


def test_slack_rows_are_uniform_over_duplicates(loops: None, rng: np.random.Generator) -> None:
    X = np.vstack([np.zeros((40, 2)), rng.normal(size=(60, 2))])
    P = affinity(squared_distances(X), 20.0)
    np.testing.assert_allclose(P[:40], np.repeat([[1 / 40, 0.0]], [40, 60], axis=1).repeat(40, axis=0), atol=1e-15)


def test_weight_two_is_a_sample_repeated(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 3))
    weighted = affinity(squared_distances(X), 8.0, np.r_[2.0, np.ones(49)])
    repeated = affinity(squared_distances(np.vstack([X[:1], X])), 8.0)
    np.testing.assert_allclose(weighted, repeated[1:, 1:], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
def test_scale_of_the_distances_is_immaterial(distances: np.ndarray, scale: float) -> None:
    scaled = affinity(distances / distances.max() * scale, 15.0)
    np.testing.assert_allclose(scaled, affinity(distances, 15.0), atol=1e-9)


def test_float32_is_close(distances: np.ndarray) -> None:
    np.testing.assert_allclose(affinity(distances.astype(np.float32), 15.0), affinity(distances, 15.0), atol=1e-6)


def test_threads_do_not_change_a_bit(rng: np.random.Generator) -> None:
    D, w = squared_distances(rng.normal(size=(600, 3))), np.ones(600)
    pool = Workers(2)
    assert np.array_equal(row_bandwidths(D, 30.0, w).gamma, row_bandwidths(D, 30.0, w, workers=pool).gamma)
    pool.close()


@pytest.mark.parametrize("perplexity", [0.5, 121.0, np.nan])
def test_impossible_perplexities_are_refused(distances: np.ndarray, perplexity: float) -> None:
    with pytest.raises(InvalidInputError, match="perplexity"):
        row_bandwidths(distances, perplexity, np.ones(120))
