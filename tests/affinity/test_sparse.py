"""Symmetric entropic affinity on a sparse graph: the dense one on all pairs, optimal on some, in any shards."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import kneighbors_graph

from distreduce._utils.threads import SERIAL, Workers
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.affinity.dual import Dual
from distreduce.affinity.neighbours import whole_graph
from distreduce.affinity.sparse import SparseDual, keep_sparse_affinity, sparse_row_bandwidths
from distreduce.affinity.symmetric import row_bandwidths
from distreduce.coupling.problem import structure_constant
from distreduce.coupling.sharded import structure_constant_on_shards
from distreduce.exceptions import AffinityConvergenceWarning, InvalidInputError
from distreduce.sharding.shards import GraphRows, LocalShards


class Graph:
    """Squared distances on a symmetric pattern: dense for the oracles, in shards for what is tested."""

    def __init__(self, X: np.ndarray, k: int | None = None) -> None:
        self.D = squared_distances(X, np.float32)
        near = np.ones_like(self.D) if k is None else kneighbors_graph(X, k, include_self=False).toarray()
        self.pattern = (near + near.T + np.eye(len(X))) > 0

    def shards(self, cuts: tuple[int, ...] = (), workers: Workers = SERIAL) -> LocalShards:
        """The graph cut before the rows `cuts`."""
        bounds = np.array([0, *cuts, len(self.D)])
        return LocalShards([self.part(*ends) for ends in zip(bounds[:-1], bounds[1:], strict=True)], bounds, workers)

    def part(self, start: int, stop: int) -> dict[str, GraphRows]:
        here = self.pattern[start:stop]
        indptr = np.r_[0, here.sum(axis=1).cumsum()]
        return {"graph": GraphRows(indptr, np.nonzero(here)[1].astype(np.int32), self.D[start:stop][here])}

    @property
    def far_outside(self) -> np.ndarray:
        """D with pairs outside the pattern so far apart that no affinity reaches there: the same problem, dense."""
        return np.where(self.pattern, self.D.astype(np.float64), 1e6 * self.D.max())

    def kkt(self, shards: LocalShards, gamma: np.ndarray, perplexity: float, weights: np.ndarray) -> float:
        """Residual of the affinity that the shards keep, measured apart from the solver."""
        rows = row_bandwidths(self.far_outside, perplexity, weights)
        nearest = np.where(self.pattern & (self.D > 0.0), self.D, np.inf).min(axis=1)
        scale = np.where(rows.slack, np.where(np.isfinite(nearest), nearest, 1.0), rows.gamma)
        return reference.kkt_residual(matrix(shards), gamma, weights, perplexity, scale)


def matrix(shards: LocalShards) -> np.ndarray:
    """The affinity that the shards keep, dense, in float64."""
    return whole_graph(shards, "affinity").toarray().astype(np.float64)


@pytest.fixture
def points(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(150, 4))


@pytest.fixture
def weights(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.5, 3.0, size=150)


@pytest.mark.parametrize("perplexity", [2.0, 30.0, 149.0])
def test_on_all_pairs_it_is_the_dense_affinity(points: np.ndarray, weights: np.ndarray, perplexity: float) -> None:
    graph = Graph(points)
    shards = graph.shards(cuts=(60,))
    keep_sparse_affinity(shards, weights, perplexity, tol=1e-8)
    dense = symmetric_entropic_affinity(graph.D, perplexity, weights, tol=1e-8).matrix
    np.testing.assert_allclose(matrix(shards), dense, atol=1e-6)


def test_on_neighbours_it_is_the_dense_affinity_that_reaches_no_further(
    points: np.ndarray, weights: np.ndarray
) -> None:
    graph = Graph(points, 40)
    shards = graph.shards()
    keep_sparse_affinity(shards, weights, 12.0, tol=1e-8)
    dense = symmetric_entropic_affinity(graph.far_outside, 12.0, weights, tol=1e-8).matrix
    np.testing.assert_allclose(matrix(shards), dense, atol=1e-6)


def test_separate_clusters_smaller_than_the_neighbourhoods_have_their_dense_affinity(rng: np.random.Generator) -> None:
    X = rng.normal(size=(160, 3)) + 1e4 * np.arange(4).repeat(40)[:, None]
    graph = Graph(X, 60)
    shards = graph.shards()
    keep_sparse_affinity(shards, None, 15.0, tol=1e-8)
    np.testing.assert_allclose(matrix(shards), symmetric_entropic_affinity(graph.D, 15.0, tol=1e-8).matrix, atol=1e-6)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(80, 200),
    dimension=st.sampled_from([1, 3, 30]),
    heaviest=st.integers(1, 9),
    rounded=st.booleans(),
)
def test_optimal_on_neighbours_three_times_the_perplexity(
    seed: int, n: int, dimension: int, heaviest: int, rounded: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension))
    w = rng.integers(1, heaviest + 1, size=n).astype(float)
    graph = Graph(np.round(X) if rounded else X, 36)
    shards = graph.shards(cuts=(n // 3,))
    solved = keep_sparse_affinity(shards, w, 12.0)
    assert graph.kkt(shards, solved.gamma, 12.0, w) <= 2e-5


def test_optimal_next_to_samples_that_are_everybodys_neighbours(rng: np.random.Generator) -> None:
    # In 50 dimensions the samples near the middle become neighbours of very many: their entropy is slack, γ_i = 0.
    graph = Graph(rng.normal(size=(1500, 50)) * rng.uniform(0.3, 1.0, size=(1500, 1)), 60)
    shards = graph.shards()
    solved = keep_sparse_affinity(shards, None, 20.0)
    assert graph.kkt(shards, solved.gamma, 20.0, np.ones(1500)) <= 2e-5


def test_few_passes_over_the_entries(rng: np.random.Generator) -> None:
    graph = Graph(rng.normal(size=(1000, 10)), 60)
    assert keep_sparse_affinity(graph.shards(), None, 20.0).n_evaluations <= 40


@pytest.mark.parametrize("copies", [5, 12, 13, 50])
def test_optimal_next_to_duplicates(points: np.ndarray, copies: int) -> None:
    graph = Graph(np.vstack([points, points[:1].repeat(copies, axis=0)]), 60)
    shards = graph.shards()
    solved = keep_sparse_affinity(shards, None, 12.0)
    assert graph.kkt(shards, solved.gamma, 12.0, np.ones(150 + copies)) <= 2e-5


def test_identical_samples_have_a_uniform_affinity() -> None:
    shards = Graph(np.zeros((6, 2))).shards()
    keep_sparse_affinity(shards, None, 3.0)
    np.testing.assert_allclose(matrix(shards), 1 / 6, rtol=1e-6)


def test_symmetric_bit_for_bit(rng: np.random.Generator, weights: np.ndarray) -> None:
    shards = Graph(rng.normal(size=(150, 20)), 36).shards(cuts=(7, 80))
    keep_sparse_affinity(shards, weights, 12.0)
    P = matrix(shards)
    assert np.array_equal(P, P.T)


def test_affinity_is_kept_in_the_pattern_of_the_graph_in_float32(points: np.ndarray) -> None:
    shards = Graph(points, 36).shards(cuts=(70,))
    keep_sparse_affinity(shards, None, 12.0)
    graph, affinity = whole_graph(shards), whole_graph(shards, "affinity")
    assert np.array_equal(affinity.indices, graph.indices) and affinity.dtype == np.float32


@pytest.mark.parametrize("cuts", [(1,), (50, 100), tuple(range(10, 150, 10))])
def test_borders_of_the_shards_do_not_change_a_bit(points: np.ndarray, cuts: tuple[int, ...]) -> None:
    graph = Graph(points, 36)
    whole, cut = graph.shards(), graph.shards(cuts)
    keep_sparse_affinity(whole, None, 12.0)
    keep_sparse_affinity(cut, None, 12.0)
    assert np.array_equal(matrix(cut), matrix(whole))


def test_threads_do_not_change_a_bit(points: np.ndarray) -> None:
    graph, pool = Graph(points, 36), Workers(3)
    serial, threaded = graph.shards(cuts=(40, 90)), graph.shards(cuts=(40, 90), workers=pool)
    keep_sparse_affinity(serial, None, 12.0)
    keep_sparse_affinity(threaded, None, 12.0)
    same = np.array_equal(matrix(threaded), matrix(serial))
    pool.close()
    assert same


def test_weight_two_is_a_sample_repeated(points: np.ndarray) -> None:
    once, twice = Graph(points).shards(), Graph(np.vstack([points[:1], points])).shards()
    keep_sparse_affinity(once, np.r_[2.0, np.ones(149)], 20.0, tol=1e-8)
    keep_sparse_affinity(twice, None, 20.0, tol=1e-8)
    np.testing.assert_allclose(matrix(once), matrix(twice)[1:, 1:], atol=1e-6)


def test_bandwidths_are_those_of_the_dense_rows(points: np.ndarray, weights: np.ndarray) -> None:
    graph = Graph(points, 36)
    rows = sparse_row_bandwidths(graph.shards(cuts=(40,)), weights, 12.0, 1e-12)
    np.testing.assert_allclose(rows.gamma, row_bandwidths(graph.far_outside, 12.0, weights).gamma, rtol=1e-8)


class TestDual:
    """The loops over the entries against the dense loops, whose formulas ``test_dual`` checks."""

    @pytest.fixture
    def duals(self, points: np.ndarray, weights: np.ndarray) -> tuple[SparseDual, Dual]:
        graph = Graph(points, 36)
        sparse_dual = SparseDual(weights, 2.0, 1.7, graph.shards(cuts=(40, 41)))
        return sparse_dual, Dual(weights, 2.0, 1.7, graph.far_outside, SERIAL)

    @pytest.fixture
    def gamma_mu(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.uniform(0.5, 2.0, size=150), -rng.uniform(0.5, 4.0, size=150)

    @pytest.mark.parametrize("name", ["mass", "entropy", "curvature", "value"])
    def test_point(self, duals: tuple[SparseDual, Dual], gamma_mu: tuple[np.ndarray, np.ndarray], name: str) -> None:
        ours, dense = (getattr(dual.evaluate(*gamma_mu), name) for dual in duals)
        np.testing.assert_allclose(ours, dense, rtol=1e-12)

    def test_hessian_product(
        self, duals: tuple[SparseDual, Dual], gamma_mu: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
    ) -> None:
        direction = rng.normal(size=(2, 150))
        ours, dense = (dual.hessian_product(dual.evaluate(*gamma_mu), direction) for dual in duals)
        np.testing.assert_allclose(ours, dense, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", ["kl", "square"])
def test_structure_constant_is_the_dense_one(points: np.ndarray, weights: np.ndarray, loss: str) -> None:
    shards = Graph(points, 36).shards(cuts=(40, 90))
    keep_sparse_affinity(shards, None, 12.0)
    expected = structure_constant(matrix(shards), weights, loss)
    assert structure_constant_on_shards(shards, weights, loss) == pytest.approx(expected, rel=1e-12)


def test_too_few_neighbours_are_refused(points: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="weigh only 11; raise the number of neighbours"):
        keep_sparse_affinity(Graph(points, 10).shards(cuts=(60,)), None, 12.0)


def test_perplexities_below_one_are_refused(points: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="perplexity"):
        keep_sparse_affinity(Graph(points, 10).shards(), None, 0.5)


def test_warns_when_a_graph_has_no_affinity_of_that_perplexity() -> None:
    # A hub and 20 samples that know only it: a row of theirs is half on the hub, which has no mass for ten of them.
    star = Graph(np.eye(21))
    star.pattern = np.eye(21, dtype=bool)
    star.pattern[0], star.pattern[:, 0] = True, True
    with pytest.warns(AffinityConvergenceWarning, match="raise the number of neighbours"):
        assert not keep_sparse_affinity(star.shards(), None, 2.0).converged


def test_bounded_bandwidths_meet_the_conditions_with_hubs(rng: np.random.Generator) -> None:
    """Masses are one, entropies no lower than asked for, and higher only in rows whose bandwidth is at its bound."""
    graph = Graph(rng.normal(size=(1500, 50)) * rng.uniform(0.3, 1.0, size=(1500, 1)), 60)
    shards = graph.shards()
    solved = keep_sparse_affinity(shards, None, 20.0, tol=1e-4, least_bandwidth=0.3)
    P = matrix(shards)
    entropy = -(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1)
    bound = 0.3 * row_bandwidths(graph.far_outside, 20.0, np.ones(len(graph.D))).gamma
    at_bound = solved.gamma <= 1.05 * bound  # the start's bandwidths are known to a few hundredths of a nat
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=2e-4)
    assert at_bound.sum() > 10 and entropy.min() >= np.log(20.0) - 2e-4
    np.testing.assert_allclose(entropy[~at_bound], np.log(20.0), atol=2e-4)


def test_masses_are_balanced_when_the_passes_are_used_up(rng: np.random.Generator) -> None:
    graph = Graph(rng.normal(size=(1500, 50)) * rng.uniform(0.3, 1.0, size=(1500, 1)), 60)
    shards = graph.shards()
    solved = keep_sparse_affinity(shards, None, 20.0, tol=1e-3, least_bandwidth=0.3, most_passes=8)
    assert solved.converged and solved.n_evaluations < 60
    np.testing.assert_allclose(matrix(shards).sum(axis=1), 1.0, atol=1.1e-2)
