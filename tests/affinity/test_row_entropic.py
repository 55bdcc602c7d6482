"""Row-entropic affinity: perplexity reached, slack rows, weights, any scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.manifold._utils import _binary_search_perplexity

from distreduce._utils.threads import Workers
from distreduce.affinity import entropic_affinity, reference, squared_distances
from distreduce.exceptions import InvalidInputError


@pytest.fixture
def distances(rng: np.random.Generator) -> np.ndarray:
    return squared_distances(rng.normal(size=(120, 4)))


def test_agrees_with_formula(distances: np.ndarray, rng: np.random.Generator) -> None:
    w = rng.uniform(0.5, 3.0, size=120)
    affinity = entropic_affinity(distances, 12.0, w)
    np.testing.assert_allclose(
        affinity.matrix, reference.entropic_affinity(distances, affinity.gamma, w), rtol=1e-10, atol=1e-300
    )


def test_bandwidth_agrees_with_a_root_finder(distances: np.ndarray) -> None:
    row, w = distances[:1], np.ones(120)

    def excess(log_gamma: float) -> float:
        P = reference.entropic_affinity(row, np.exp([log_gamma]), w)
        return float(reference.row_entropy(P, w)[0] - np.log(10.0))

    root = np.exp(brentq(excess, -5.0, 5.0, xtol=1e-14))
    assert entropic_affinity(distances, 10.0).gamma[0] == pytest.approx(root, rel=1e-9)


def test_agrees_with_scikit_learn(rng: np.random.Generator) -> None:
    # scikit-learn leaves the diagonal out: its row is ours given j ≠ i, at the perplexity of that conditional law.
    D = squared_distances(rng.normal(size=(80, 3)))
    ours = entropic_affinity(D, 10.0)
    others = ours.matrix * (1.0 - np.eye(80))
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
    P = entropic_affinity(squared_distances(X), perplexity, w).matrix
    np.testing.assert_allclose(reference.row_entropy(P, w), np.log(perplexity), atol=1e-9)


def test_slack_rows_are_uniform_over_duplicates(rng: np.random.Generator) -> None:
    X = np.vstack([np.zeros((40, 2)), rng.normal(size=(60, 2))])
    P = entropic_affinity(squared_distances(X), 20.0).matrix
    np.testing.assert_allclose(P[:40], np.repeat([[1 / 40, 0.0]], [40, 60], axis=1).repeat(40, axis=0), atol=1e-15)


def test_weight_two_is_a_sample_repeated(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 3))
    weighted = entropic_affinity(squared_distances(X), 8.0, np.r_[2.0, np.ones(49)])
    repeated = entropic_affinity(squared_distances(np.vstack([X[:1], X])), 8.0)
    np.testing.assert_allclose(weighted.matrix, repeated.matrix[1:, 1:], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
def test_scale_of_the_distances_is_immaterial(distances: np.ndarray, scale: float) -> None:
    scaled = entropic_affinity(distances / distances.max() * scale, 15.0)
    np.testing.assert_allclose(scaled.matrix, entropic_affinity(distances, 15.0).matrix, atol=1e-9)


def test_float32_stays_float32_and_close(distances: np.ndarray) -> None:
    P = entropic_affinity(distances.astype(np.float32), 15.0).matrix
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, entropic_affinity(distances, 15.0).matrix, atol=1e-6)


def test_threads_do_not_change_a_bit(rng: np.random.Generator) -> None:
    D = squared_distances(rng.normal(size=(600, 3)))
    pool = Workers(2)
    assert np.array_equal(entropic_affinity(D, 30.0).matrix, entropic_affinity(D, 30.0, workers=pool).matrix)
    pool.close()


@pytest.mark.parametrize("perplexity", [0.5, 121.0, np.nan])
def test_impossible_perplexities_are_refused(distances: np.ndarray, perplexity: float) -> None:
    with pytest.raises(InvalidInputError, match="perplexity"):
        entropic_affinity(distances, perplexity)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_unusable_distances_are_refused(distances: np.ndarray, bad: float) -> None:
    distances[3, 4] = bad
    with pytest.raises(InvalidInputError, match="sq_distances"):
        entropic_affinity(distances, 10.0)


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(120), np.full(120, np.nan)])
def test_unusable_weights_are_refused(distances: np.ndarray, weights: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="weights"):
        entropic_affinity(distances, 10.0, weights)
