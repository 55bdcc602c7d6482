"""Origin and axes of X and names of classes do not matter: before the loop to rounding, after it to a tolerance.

The loop descends a non-convex objective: a last bit that differs can end in another minimum of about the same value.
Besides, the starting plan of fewer prototypes than samples is a clustering, which ties and the order of the classes
decide; and the alternating solver does not descend the objective it reports. So affinity and kernel are compared to
rounding, and the objective of the joint solver, from a starting plan that is given, to a tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from trust.problems import CLASSES, Problem, fitted, holds_for, problems

from distreduce._utils.threads import single_threaded_blas
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.estimators._validate import effective_perplexity
from distreduce.kernels import RBF
from distreduce.mapping.relevance import median_length_scale

# Of max(1, max |J|), of the embedding for the starting plan and after the iterations; nearly all are below 1e-7.
CLOSE, AFTER = 0.05, 0.2
EVEN = problems(scale=1.0, uneven=False)


def before_the_loop(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Affinity C_X and kernel K of the map."""
    weights = np.ones(len(X))
    with single_threaded_blas():
        D = squared_distances(X)
        kernel = RBF(median_length_scale(X, weights))(X)
        return symmetric_entropic_affinity(D, effective_perplexity(30.0, weights)).matrix if len(X) > 1 else D, kernel


def on_a_grid(X: np.ndarray) -> np.ndarray:
    """X rounded to multiples of 2⁻²⁰ of its size, which sums of the same size do not round any more."""
    unit = 2.0 ** (np.ceil(np.log2(np.abs(X).max())) - 20)
    return unit * np.round(X / unit)


def rotated(X: np.ndarray, seed: int) -> np.ndarray:
    """X Q, with no product of matrices: BLAS could round equal rows differently."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1],) * 2))[0]
    return (X[:, :, None] * Q).sum(axis=1)


def with_start(problem: Problem) -> Problem:
    """The problem for the joint solver with a starting plan that is given: slabs, as equal rows must stay together.

    Rows dealt in turn would give all prototypes the same place, a saddle that roundings decide how to leave.
    """
    problem, m = problem.with_model(solver="joint"), problem.model["n_prototypes"]
    if m is None:
        return problem
    rows = np.unique(problem.X, axis=0, return_inverse=True)[1].ravel()
    return problem.with_model(init=rows * m // (rows.max() + 1), affinity="dense")


def assert_same_objective(problem: Problem, X: np.ndarray, y: np.ndarray | None) -> None:
    one = fitted(problem).history_["objective"].to_numpy()
    other = fitted(problem, X, y).history_["objective"].to_numpy()
    size = max(1.0, np.abs(one).max())  # terms may cancel at the start
    assert (abs(one[0] - other[0]) <= CLOSE * size, abs(one[-1] - other[-1]) <= AFTER * size) == (True, True)


@holds_for(EVEN, examples=8)
def test_an_exact_shift_leaves_affinity_and_kernel_bit_for_bit(problem: Problem) -> None:
    X = on_a_grid(problem.X)
    shift = 2.0 ** np.ceil(np.log2(np.abs(X).max())) * np.random.default_rng(problem.seed).integers(-8, 9, problem.d)
    for one, other in zip(before_the_loop(X), before_the_loop(X + shift), strict=True):
        assert_array_equal(other, one)


@holds_for(EVEN, examples=8)
def test_a_rotation_leaves_affinity_and_kernel(problem: Problem) -> None:
    """To rounding, but for rows of the affinity that its solver left at its tolerance of 1e-5."""
    X = problem.X
    for one, other in zip(before_the_loop(X), before_the_loop(rotated(X, problem.seed)), strict=True):
        assert_allclose(other, one, rtol=0, atol=1e-4)


@holds_for(EVEN, examples=6)
def test_a_shift_leaves_the_objective(problem: Problem) -> None:
    given = with_start(problem)
    assert_same_objective(given, given.X + 3.0 * np.abs(given.X).max(), given.y)


@holds_for(EVEN, examples=6)
def test_a_rotation_leaves_the_objective(problem: Problem) -> None:
    """Not where left-out samples choose: length scales belong to the features, folds to the order of the samples."""
    given = with_start(problem).with_model(length_scale="median", map_reg=0.01)
    if problem.target is not None:
        given = given.with_model(eta=float(problem.n))
    assert_same_objective(given, rotated(given.X, given.seed), given.y)


def renamed(problem: Problem) -> np.ndarray:
    """The labels with their names exchanged."""
    names, codes = np.unique(problem.y, return_inverse=True)  # type: ignore[arg-type]
    return np.random.default_rng(problem.seed).permutation(names)[codes]


@holds_for(problems(CLASSES), examples=6)
def test_names_of_classes_leave_the_objective(problem: Problem) -> None:
    given = with_start(problem)
    assert_same_objective(given, given.X, renamed(given))
