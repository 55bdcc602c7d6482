"""The dual, compiled and in NumPy, against its formulas, and its derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference

from distreduce._utils.threads import SERIAL, Workers, bounded_exp
from distreduce.affinity.dual import Dual
from distreduce.affinity.newton import NewtonSystem, conjugate_gradient, gradient

XI = 7.0
SCALE = 2.5


class Problem:
    """A random dual problem at a random point, in the units of the solver."""

    def __init__(self, rng: np.random.Generator, n: int = 40) -> None:
        self.distances = reference.squared_distances(rng.normal(size=(n, 3)))
        self.weights = rng.uniform(0.5, 3.0, size=n)
        self.gamma = rng.uniform(0.5, 2.0, size=n)
        self.mu = -rng.uniform(0.5, 4.0, size=n)
        self.dual = Dual(self.weights, float(np.log(XI)), SCALE, self.distances, SERIAL)
        self.point = self.dual.evaluate(self.gamma, self.mu)
        self.formula = (self.distances / SCALE, self.gamma, self.mu, self.weights)


@pytest.fixture
def problem(loops: None, rng: np.random.Generator) -> Problem:
    return Problem(rng)


def test_exponential_is_accurate() -> None:
    x = np.linspace(-700.0, 300.0, 20_001)
    np.testing.assert_allclose([bounded_exp(v) for v in x], np.exp(x), rtol=5e-16)


def test_value(problem: Problem) -> None:
    assert problem.point.value == pytest.approx(-reference.dual_value(*problem.formula, XI), rel=1e-12)


def test_gradient(problem: Problem) -> None:
    np.testing.assert_allclose(
        gradient(problem.dual, problem.point), -reference.dual_gradient(*problem.formula, XI), atol=1e-11
    )


def test_gradient_is_the_slope_of_the_value(problem: Problem, rng: np.random.Generator) -> None:
    d_mu, d_gamma = rng.normal(size=(2, 40))
    D, gamma, mu, w = problem.formula
    h = 1e-5
    ahead, behind = (reference.dual_value(D, gamma + s * d_gamma, mu + s * d_mu, w, XI) for s in (h, -h))
    slope = np.vdot(reference.dual_gradient(*problem.formula, XI), [d_mu, d_gamma])
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)


def test_hessian_is_the_slope_of_the_gradient(problem: Problem, rng: np.random.Generator) -> None:
    d_mu, d_gamma = rng.normal(size=(2, 40))
    D, gamma, mu, w = problem.formula
    h = 1e-5
    ahead, behind = (reference.dual_gradient(D, gamma + s * d_gamma, mu + s * d_mu, w, XI) for s in (h, -h))
    product = reference.dual_hessian(*problem.formula) @ np.r_[d_mu, d_gamma]
    np.testing.assert_allclose(product, (behind - ahead).ravel() / (2 * h), rtol=1e-6, atol=1e-6)


def test_hessian_product(problem: Problem, rng: np.random.Generator) -> None:
    direction = rng.normal(size=(2, 40))
    expected = reference.dual_hessian(*problem.formula) @ direction.ravel()
    np.testing.assert_allclose(problem.dual.hessian_product(problem.point, direction).ravel(), expected, rtol=1e-10)


def test_curvature_is_the_block_diagonal(problem: Problem) -> None:
    H = reference.dual_hessian(*problem.formula)
    n = len(problem.mu)
    blocks = [np.diag(H[:n, :n]), np.diag(H[:n, n:]), np.diag(H[n:, n:])]
    np.testing.assert_allclose(problem.point.curvature, blocks, rtol=1e-11)


def test_conjugate_gradient_solves_the_free_system(problem: Problem, rng: np.random.Generator) -> None:
    free = rng.random(40) < 0.7
    target = rng.normal(size=(2, 40))
    keep = np.r_[np.ones(40, dtype=bool), free]
    expected = np.zeros(80)
    expected[keep] = np.linalg.solve(reference.dual_hessian(*problem.formula)[np.ix_(keep, keep)], target.ravel()[keep])
    solution = conjugate_gradient(NewtonSystem(problem.dual, problem.point, 0.0), target, free, 1e-9)
    np.testing.assert_allclose(solution.ravel(), expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill_is_the_formula_symmetric_bit_for_bit(problem: Problem, dtype: type) -> None:
    out = np.empty((40, 40), dtype=dtype)
    problem.dual.fill(problem.point, out)
    assert np.array_equal(out, out.T)
    np.testing.assert_allclose(out, reference.symmetric_affinity(*problem.formula[:3]), rtol=1e-6, atol=1e-37)


def test_threads_do_not_change_a_bit(rng: np.random.Generator) -> None:
    problem = Problem(rng, n=600)
    pool = Workers(2)
    threaded = Dual(problem.weights, float(np.log(XI)), SCALE, problem.distances, pool)
    again = threaded.evaluate(problem.gamma, problem.mu)
    pool.close()
    assert again.value == problem.point.value and np.array_equal(again.curvature, problem.point.curvature)
