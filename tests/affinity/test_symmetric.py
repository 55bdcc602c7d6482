"""Symmetric entropic affinity: optimal, robust, and free of the accidents of scale, order, weights and threads."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from affinity import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from distreduce._utils import threads
from distreduce._utils.threads import Workers
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.affinity.symmetric import row_bandwidths
from distreduce.exceptions import AffinityConvergenceWarning, InvalidInputError


def kkt(D: np.ndarray, perplexity: float, weights: np.ndarray | None = None) -> float:
    """Residual of the solver's matrix, measured apart from the solver."""
    w = np.ones(len(D)) if weights is None else weights
    solved = symmetric_entropic_affinity(D, perplexity, weights)
    rows = row_bandwidths(D, perplexity, w)
    nearest = np.where(D > 0.0, D, np.inf).min(axis=1)
    scale = np.where(rows.slack, np.where(np.isfinite(nearest), nearest, 1.0), rows.gamma)
    return reference.kkt_residual(solved.matrix, solved.gamma, w, perplexity, scale)


@pytest.fixture
def points(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(150, 4))


@pytest.mark.parametrize("perplexity", [2.0, 5.0, 30.0, 100.0, 149.0, 150.0])
def test_optimal_at_any_perplexity(points: np.ndarray, perplexity: float) -> None:
    assert kkt(squared_distances(points), perplexity) <= 2e-5


@pytest.mark.parametrize("far", [1e3, 1e6])
@pytest.mark.parametrize("outliers", [1, 5])
def test_optimal_next_to_far_outliers(points: np.ndarray, far: float, outliers: int) -> None:
    points[:outliers] *= far
    assert kkt(squared_distances(points), 30.0) <= 2e-5


@pytest.mark.parametrize("copies", [5, 30, 31, 200])
def test_optimal_next_to_duplicates(points: np.ndarray, copies: int) -> None:
    assert kkt(squared_distances(np.vstack([points, points[:1].repeat(copies, axis=0)])), 30.0) <= 2e-5


def test_uniform_over_duplicates_when_there_is_nothing_else(points: np.ndarray) -> None:
    P = symmetric_entropic_affinity(squared_distances(points[:4].repeat(40, axis=0)), 30.0).matrix
    np.testing.assert_allclose(P, np.kron(np.eye(4), np.full((40, 40), 1 / 40)), atol=1e-12)


def test_identical_samples_have_a_uniform_affinity() -> None:
    np.testing.assert_allclose(symmetric_entropic_affinity(np.zeros((6, 6)), 3.0).matrix, 1 / 6)


def test_optimal_on_two_scales(points: np.ndarray) -> None:
    points[:70] = 1e-3 * points[:70] + 10.0
    assert kkt(squared_distances(points), 30.0) <= 2e-5


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(20, 120),
    share=st.floats(0.05, 0.9),
    heaviest=st.integers(1, 20),
    rounded=st.booleans(),
)
def test_optimal_with_weights_and_ties(seed: int, n: int, share: float, heaviest: int, rounded: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    w = rng.integers(1, heaviest + 1, size=n).astype(float)
    perplexity = max(2.0, share * w.sum())
    assert kkt(squared_distances(np.round(X) if rounded else X), perplexity, w) <= 2e-5


def test_few_passes_over_the_pairs(points: np.ndarray) -> None:
    assert symmetric_entropic_affinity(squared_distances(points), 30.0).n_evaluations <= 40


def test_matrix_is_the_formula_of_the_dual_variables(points: np.ndarray) -> None:
    D = squared_distances(points)
    solved = symmetric_entropic_affinity(D, 30.0)
    expected = reference.symmetric_affinity(D, solved.gamma, solved.mu)
    np.testing.assert_allclose(solved.matrix, expected, rtol=1e-8, atol=1e-300)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of older SciPys, from the generic solver
@pytest.mark.parametrize("seed", range(3))
def test_cost_is_that_of_a_generic_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, perplexity, w = 5, 3.0, np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    D = squared_distances(rng.normal(size=(n, 2)))
    upper = np.triu_indices(n)

    def matrix(x: np.ndarray) -> np.ndarray:
        P = np.zeros((n, n))
        P[upper] = x
        return np.maximum(P, P.T)

    constraints = [
        {"type": "eq", "fun": lambda x: matrix(x) @ w - 1.0},
        {"type": "ineq", "fun": lambda x: reference.row_entropy(matrix(x), w) - np.log(perplexity)},
    ]
    start = np.full(len(upper[0]), 1.0 / w.sum())
    generic = minimize(
        lambda x: w @ (matrix(x) * D) @ w,
        start,
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * len(start),
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    solved = symmetric_entropic_affinity(D, perplexity, w, tol=1e-9).matrix
    np.testing.assert_allclose(solved, matrix(generic.x), atol=1e-4)


def test_few_rows_have_the_affinity_of_the_compiled_loops(
    points: np.ndarray, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    D, weights = squared_distances(np.vstack([points[:120], points[:20]])), rng.uniform(0.5, 2.0, size=140)
    few = symmetric_entropic_affinity(D, 15.0, weights)
    monkeypatch.setattr(threads, "UNCOMPILED_ROWS", 0)
    compiled = symmetric_entropic_affinity(D, 15.0, weights)
    assert few.n_evaluations == compiled.n_evaluations
    np.testing.assert_allclose(few.matrix, compiled.matrix, rtol=1e-6, atol=1e-12)


def test_weight_two_is_a_sample_repeated(points: np.ndarray) -> None:
    weighted = symmetric_entropic_affinity(squared_distances(points), 20.0, np.r_[2.0, np.ones(149)], tol=1e-9)
    repeated = symmetric_entropic_affinity(squared_distances(np.vstack([points[:1], points])), 20.0, tol=1e-9)
    np.testing.assert_allclose(weighted.matrix, repeated.matrix[1:, 1:], atol=1e-7)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e6, 1e300])
def test_scale_of_the_distances_is_immaterial(points: np.ndarray, scale: float) -> None:
    D = squared_distances(points)
    scaled = symmetric_entropic_affinity(D / D.max() * scale, 20.0, tol=1e-9).matrix
    np.testing.assert_allclose(scaled, symmetric_entropic_affinity(D, 20.0, tol=1e-9).matrix, atol=1e-7)


def test_order_of_the_samples_is_immaterial(points: np.ndarray, rng: np.random.Generator) -> None:
    order = rng.permutation(150)
    D = squared_distances(points)
    permuted = symmetric_entropic_affinity(D[np.ix_(order, order)], 20.0, tol=1e-9).matrix
    expected = symmetric_entropic_affinity(D, 20.0, tol=1e-9).matrix[np.ix_(order, order)]
    np.testing.assert_allclose(permuted, expected, atol=1e-7)


def test_threads_do_not_change_a_bit(rng: np.random.Generator) -> None:
    D = squared_distances(rng.normal(size=(600, 4)))
    pool = Workers(2)
    threaded = symmetric_entropic_affinity(D, 30.0, workers=pool)
    pool.close()
    assert np.array_equal(threaded.matrix, symmetric_entropic_affinity(D, 30.0).matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_bit_for_bit(points: np.ndarray, dtype: type) -> None:
    P = symmetric_entropic_affinity(squared_distances(points, dtype), 30.0).matrix
    assert P.dtype == dtype and np.array_equal(P, P.T)


def test_float32_distances_are_enough(points: np.ndarray) -> None:
    single = symmetric_entropic_affinity(squared_distances(points, np.float32), 30.0, tol=1e-7).matrix
    double = symmetric_entropic_affinity(squared_distances(points), 30.0, tol=1e-7).matrix
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_overwrites_in_place_when_asked(points: np.ndarray) -> None:
    D = squared_distances(points)
    expected = symmetric_entropic_affinity(D, 30.0).matrix
    assert symmetric_entropic_affinity(D, 30.0, overwrite=True).matrix is D
    assert np.array_equal(D, expected)


def test_leaves_the_distances_alone_by_default(points: np.ndarray) -> None:
    D = squared_distances(points)
    before = D.copy()
    symmetric_entropic_affinity(D, 30.0)
    assert np.array_equal(D, before)


def test_makes_no_second_matrix(rng: np.random.Generator) -> None:
    D = squared_distances(rng.normal(size=(1500, 3)), np.float32)
    symmetric_entropic_affinity(D.copy(), 30.0, overwrite=True)
    tracemalloc.start()
    symmetric_entropic_affinity(D, 30.0, overwrite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * D.nbytes


def test_warns_when_it_does_not_converge(points: np.ndarray) -> None:
    with pytest.warns(AffinityConvergenceWarning, match="residual"):
        assert not symmetric_entropic_affinity(squared_distances(points), 30.0, max_iter=1).converged


@pytest.mark.parametrize("perplexity", [0.0, 151.0])
def test_impossible_perplexities_are_refused(points: np.ndarray, perplexity: float) -> None:
    with pytest.raises(InvalidInputError, match="perplexity"):
        symmetric_entropic_affinity(squared_distances(points), perplexity)


def test_two_samples_far_from_all_others_converge():
    """Only the sum of their γ is determined, so that the Hessian is singular."""
    x = np.array([-0.3693659175414164, -1.081735914471458, -1.2442668346531869, 1.1934668604955738, 1.249470192111536])
    D = (x[:, None] - x) ** 2 * (1.0 + (0.22811817882932187 / x[0]) ** 2)
    affinity = symmetric_entropic_affinity(D, 5 / 3)
    assert affinity.converged


def test_two_near_samples_are_not_thrown_to_and_fro():
    """Copies and weights on a line: two steps that both look like descents were taken in turn until the end."""
    x = np.random.default_rng(766).normal(size=158)
    rng = np.random.default_rng([766, 2])
    copies = rng.random(158) < 0.3
    copies[:2] = False
    x = x[np.where(copies, rng.integers(0, 158, 158), np.arange(158))]
    x, which = np.unique(x, return_inverse=True)
    weights = np.bincount(which, weights=1.0 + np.random.default_rng(766).integers(0, 3, 158))
    assert kkt((x[:, None] - x) ** 2, 30.0, weights) <= 2e-5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_unusable_distances_are_refused(points: np.ndarray, bad: float) -> None:
    D = squared_distances(points)
    D[3, 4] = bad
    with pytest.raises(InvalidInputError, match="sq_distances"):
        symmetric_entropic_affinity(D, 10.0)
