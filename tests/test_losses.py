"""Lemma 3.2 and its consequences, for every loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, sparse
from scipy.special import rel_entr

from distreduce.exceptions import InvalidInputError
from distreduce.losses import LOSSES, TARGET_FLOOR, BregmanLoss, Generator, PrimalLoss, get_loss, supervised_rows

ALL = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def inside(rng: np.random.Generator, n: int, c: int) -> np.ndarray:
    """Targets within the domain of every loss."""
    return rng.uniform(0.05, 0.95, (n, c))


def supervision(loss: BregmanLoss, T: np.ndarray, Y: np.ndarray) -> float:
    """S(T) = Σ_ij T_ij L_s(y_i, g_j*(T))."""
    return float((T * loss.cost(Y, loss.prototype_targets(T, Y))).sum())


@ALL
def test_targets_minimise_the_weighted_loss(loss, rng):
    Y, T = inside(rng, 12, 3), rng.random((12, 4))
    G = loss.prototype_targets(T, Y)
    for j in range(T.shape[1]):
        # In log g, so that the numerical minimiser stays inside the domain.
        found = optimize.minimize(lambda u, j=j: T[:, j] @ loss.cost(Y, np.exp(u)[None])[:, 0], np.zeros(3), tol=1e-12)
        np.testing.assert_allclose(np.exp(found.x), G[j], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("squared", lambda Y: Y.mean(axis=0)),
        ("cross_entropy", lambda Y: Y.mean(axis=0)),
        ("poisson", lambda Y: Y.mean(axis=0)),
        ("geometric", lambda Y: np.exp(np.log(Y).mean(axis=0))),
        ("itakura_saito", lambda Y: 1.0 / (1.0 / Y).mean(axis=0)),
    ],
)
def test_targets_are_the_named_means(name, mean, rng):
    Y = inside(rng, 9, 2)
    np.testing.assert_allclose(get_loss(name).prototype_targets(np.ones((9, 1)), Y)[0], mean(Y), rtol=1e-13)


@ALL
def test_gradient_of_supervision_is_the_cost(loss, rng):
    Y, T = inside(rng, 6, 2), rng.uniform(0.1, 1.0, (6, 3))
    cost, step = loss.cost(Y, loss.prototype_targets(T, Y)), 1e-6
    for i, j in np.ndindex(T.shape):
        E = np.zeros_like(T)
        E[i, j] = step
        slope = (supervision(loss, T + E, Y) - supervision(loss, T - E, Y)) / (2 * step)
        assert slope == pytest.approx(cost[i, j], abs=1e-8)


@ALL
def test_supervision_is_concave_in_the_coupling(loss, rng):
    Y = inside(rng, 10, 2)
    for _ in range(20):
        T, U, t = rng.random((10, 4)), rng.random((10, 4)), rng.random()
        chord = t * supervision(loss, T, Y) + (1 - t) * supervision(loss, U, Y)
        assert supervision(loss, t * T + (1 - t) * U, Y) >= chord - 1e-12


@ALL
@given(
    Y=arrays(np.float64, (3, 2), elements=st.floats(0.01, 1.0)),
    G=arrays(np.float64, (4, 2), elements=st.floats(0.01, 1.0)),
)
def test_cost_is_non_negative_and_zero_only_at_equality(loss, Y, G):
    cost = loss.cost(Y, G)
    assert (cost >= 0).all()
    np.testing.assert_allclose(np.diag(loss.cost(Y, Y)), 0.0, atol=1e-12)
    # On this box the curvature of every φ is at least 1, so D_φ is at least ½|y − g|²: zero at equality only.
    gap = ((Y[:, None] - G[None]) ** 2).sum(axis=2)
    assert (cost >= 0.5 * gap - 1e-12).all()


def test_squared_is_half_the_squared_distance_even_far_from_zero():
    Y, G = np.array([[1e8]]), np.array([[1e8 + 2.0]])
    assert get_loss("squared").cost(Y, G) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["cross_entropy", "poisson"])
def test_entropy_losses_against_scipy(name, rng):
    Y, G = inside(rng, 5, 3), inside(rng, 4, 3)
    Y[0] = [0.0, 1.0, 0.0]
    expected = (rel_entr(Y[:, None], G[None]) + G[None] - Y[:, None]).sum(axis=2)
    np.testing.assert_allclose(get_loss(name).cost(Y, G), expected, atol=1e-13)


def test_cross_entropy_of_one_hot_labels_is_the_classic_one(rng):
    G = rng.dirichlet(np.ones(3), size=4)
    np.testing.assert_allclose(get_loss("cross_entropy").cost(np.eye(3), G), -np.log(G.T), atol=1e-13)


def test_absent_class_costs_a_large_finite_value():
    cost = get_loss("cross_entropy").cost(np.eye(2), np.eye(2))
    np.testing.assert_allclose(cost, -np.log(TARGET_FLOOR) * (1 - np.eye(2)), rtol=1e-12)


@ALL
def test_sparse_coupling_equals_dense(loss, rng):
    Y, T = inside(rng, 8, 2), rng.random((8, 3)) * (rng.random((8, 3)) < 0.6)
    for matrix in (sparse.csr_matrix(T), sparse.csc_array(T)):
        np.testing.assert_allclose(loss.prototype_targets(matrix, Y), loss.prototype_targets(T, Y), rtol=1e-14)


@ALL
def test_sums_give_the_same_targets(loss, rng):
    Y, T = inside(rng, 8, 2), rng.random((8, 3))
    G = loss.from_sums(T.T @ loss.embed(Y), T.sum(axis=0))
    np.testing.assert_allclose(G, loss.prototype_targets(T, Y), rtol=1e-14)


@ALL
def test_empty_prototype_takes_the_overall_target(loss, rng):
    Y, T = inside(rng, 8, 2), rng.random((8, 3))
    T[:, 1] = 0.0
    overall = loss.prototype_targets(T.sum(axis=1, keepdims=True), Y)
    np.testing.assert_allclose(loss.prototype_targets(T, Y)[1], overall[0], rtol=1e-14)


@ALL
def test_unsupervised_rows_cost_nothing_and_move_no_target(loss, rng):
    Y, T = inside(rng, 8, 2), rng.random((8, 3))
    Y[[2, 5]] = np.nan
    known = supervised_rows(Y)
    G = loss.prototype_targets(T, Y)
    loss.validate(Y)
    assert known.tolist() == [True, True, False, True, True, False, True, True]
    np.testing.assert_allclose(G, loss.prototype_targets(T[known], Y[known]), rtol=1e-14)
    cost = loss.cost(Y, G)
    assert (cost[~known] == 0).all()
    np.testing.assert_allclose(cost[known], loss.cost(Y[known], G), atol=1e-14)


@ALL
def test_prototype_with_unsupervised_rows_only_takes_the_overall_target(loss):
    Y, T = np.array([[0.2], [0.4], [np.nan]]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    G = loss.prototype_targets(T, Y)
    assert G[1] == pytest.approx(G[0])


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("squared", np.inf),
        ("cross_entropy", -0.1),
        ("cross_entropy", 1.5),
        ("poisson", -1.0),
        ("geometric", 0.0),
        ("itakura_saito", 0.0),
        ("itakura_saito", 1e-310),
        ("squared", np.nan),
    ],
)
def test_values_outside_the_domain_name_y_and_the_place(name, bad):
    Y = np.full((3, 2), 0.5)
    Y[2, 1] = bad
    with pytest.raises(InvalidInputError, match=r"^y must be .* row 2, column 1"):
        get_loss(name).validate(Y)


@ALL
def test_shapes_and_targets_that_are_all_unknown_are_rejected(loss):
    with pytest.raises(InvalidInputError, match="^y must be two-dimensional"):
        loss.validate(np.ones(3))
    with pytest.raises(InvalidInputError, match="^y has no row"):
        loss.validate(np.full((3, 1), np.nan))
    with pytest.raises(InvalidInputError, match="no mass"):
        loss.prototype_targets(np.zeros((3, 2)), np.ones((3, 1)))


def test_get_loss():
    assert all(get_loss(name).name == name for name in LOSSES)
    assert get_loss(LOSSES["poisson"]) is LOSSES["poisson"]
    with pytest.raises(InvalidInputError, match="target_loss='hinge' is not known"):
        get_loss("hinge")


class CoshLoss(PrimalLoss):
    """A loss on all real numbers, written by the three steps of the module's docstring: φ(u) = Σ cosh u."""

    name = "cosh"
    generator = Generator(
        value=lambda U: np.cosh(U).sum(axis=1),
        gradient=np.sinh,
        inverse_gradient=np.arcsinh,
        conjugate=lambda U: (U * np.sinh(U) - np.cosh(U)).sum(axis=1),
    )


def test_a_new_loss_is_right_for_negative_targets_too():
    y, g = -2.0, -1.0
    expected = np.cosh(y) - np.cosh(g) - np.sinh(g) * (y - g)
    np.testing.assert_allclose(CoshLoss().cost(np.array([[y]]), np.array([[g]])), [[expected]])
