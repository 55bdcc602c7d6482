"""The plain, the fused and the PyTorch objective agree, and their gradient is the gradient of their value."""

from __future__ import annotations

import numpy as np
import pytest
from embedding.embedding_problems import random_problem
from scipy.optimize import approx_fprime

from distreduce._utils.threads import UNCOMPILED_ROWS, Workers
from distreduce.embedding import plain
from distreduce.embedding.fused import SMALL, FusedObjective, supports
from distreduce.embedding.optimize import make_objective
from distreduce.embedding.torch import TorchObjective
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Linear, RationalQuadratic

KERNELS = [
    RationalQuadratic(),
    RationalQuadratic(0.5, 2.0),
    RationalQuadratic(3.0, 0.3),
    RBF(1.0),
    RBF(0.4),
    Linear(),
]
LOSSES = pytest.mark.parametrize("loss", ["kl", "square"])
DEPENDENCES = pytest.mark.parametrize("dependence", ["cka", "cka_uncentered", "hsic"])


def numbers(problem, objective, Z):
    """F, its terms and its gradient in one vector, each part divided by its size."""
    terms, gradient = objective(Z)
    parts = [terms.gromov_wasserstein, terms.dependence, terms.projection, terms.total(problem)]
    return np.r_[parts, gradient.ravel() / (np.abs(gradient).max() or 1.0)]


def assert_all_agree(problem, Z, rtol=1e-9):
    expected = numbers(problem, lambda Z: plain.value_and_gradient(problem, Z), Z)
    objectives = [TorchObjective(problem, "cpu")] + ([FusedObjective(problem)] if supports(problem) else [])
    for objective in objectives:
        np.testing.assert_allclose(numbers(problem, objective, Z), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@DEPENDENCES
@LOSSES
def test_backends_agree_for_every_loss_dependence_and_kernel(loss, dependence, kernel, rng):
    problem = random_problem(rng, 23, loss=loss, dependence=dependence, kernel=kernel, with_map=True)
    assert_all_agree(problem, rng.normal(size=(23, 2)))


@pytest.mark.parametrize("p", [1, 2, 3, 10])
@pytest.mark.parametrize("m", [2, 3, SMALL - 1, SMALL, 300])
@LOSSES
def test_backends_agree_for_every_size(loss, m, p, rng):
    assert_all_agree(random_problem(rng, m, loss=loss), rng.normal(size=(m, p)))


@DEPENDENCES
@LOSSES
def test_backends_agree_with_empty_prototypes(loss, dependence, rng):
    problem = random_problem(rng, 40, n_empty=7, loss=loss, dependence=dependence, with_map=True)
    assert_all_agree(problem, rng.normal(size=(40, 2)))


@pytest.mark.parametrize("options", [{"eta": 0.0}, {"target": None, "target_weights": None}], ids=["eta=0", "no y"])
@LOSSES
def test_backends_agree_without_dependence(loss, options, rng):
    problem = random_problem(rng, 30, loss=loss, with_map=True, **options)
    Z = rng.normal(size=(30, 2))
    assert_all_agree(problem, Z)
    assert plain.value_and_gradient(problem, Z)[0].dependence == 0.0


def test_an_empty_prototype_feels_no_force(rng):
    problem = random_problem(rng, 20, n_empty=3)
    _, gradient = FusedObjective(problem)(rng.normal(size=(20, 2)))
    assert np.abs(gradient[:17]).min() > 0 and (gradient[17:] == 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@DEPENDENCES
@LOSSES
def test_gradient_is_that_of_the_value(loss, dependence, kernel, rng):
    problem = random_problem(rng, 6, loss=loss, dependence=dependence, kernel=kernel, with_map=True)
    objective = make_objective(problem, "auto")
    Z = rng.normal(size=(6, 2))

    def centred_difference(step, at):
        low, high = (objective((Z.ravel() + s * step * at).reshape(6, 2))[0].total(problem) for s in (-1, 1))
        return (high - low) / (2 * step)

    slopes = [centred_difference(1e-5, unit) for unit in np.eye(12)]
    np.testing.assert_allclose(objective(Z)[1].ravel(), slopes, rtol=1e-6, atol=1e-6)


def test_gradient_at_coinciding_prototypes(rng):
    """Two prototypes in one place: distances are not differentiable there, their squares are."""
    problem, Z = random_problem(rng, 8), rng.normal(size=(8, 2))
    Z[3] = Z[5]
    slopes = approx_fprime(Z.ravel(), lambda z: FusedObjective(problem)(z.reshape(8, 2))[0].total(problem), 1e-7)
    np.testing.assert_allclose(FusedObjective(problem)(Z)[1].ravel(), slopes, atol=1e-4)


@pytest.mark.parametrize("m", [50, 300])
@LOSSES
def test_one_and_two_threads_give_the_same_bits(loss, m, rng):
    problem, Z = random_problem(rng, m, loss=loss), rng.normal(size=(m, 2))
    pool = Workers(2)
    one, two = FusedObjective(problem)(Z), FusedObjective(problem, pool)(Z)
    pool.close()
    assert one[0] == two[0] and np.array_equal(one[1], two[1])


@pytest.mark.parametrize("m", [9, SMALL + 1])
def test_memory_layout_of_z_does_not_matter(m, rng):
    problem, Z = random_problem(rng, m), rng.normal(size=(m, 3))
    np.testing.assert_array_equal(FusedObjective(problem)(np.asfortranarray(Z))[1], FusedObjective(problem)(Z)[1])


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-6])
def test_cka_of_a_nearly_collapsed_embedding_keeps_its_digits(spread, rng):
    """K is one to 12 digits and centring cancels them; the oracle is in long double, on 1 − K = d²/(2 + d²)."""
    m, Y = 12, rng.normal(size=12)
    B = np.outer(Y - Y.mean(), Y - Y.mean())
    problem = random_problem(rng, m, target=B / np.linalg.norm(B), target_weights=np.ones(m))
    Z = spread * rng.normal(size=(m, 2))
    wide = Z.astype(np.longdouble)
    d2 = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    u = d2 / (2 + d2)
    H = np.eye(m, dtype=np.longdouble) - np.longdouble(1) / m
    centred = -(H @ u @ H)
    expected = float((centred * problem.target).sum() / np.sqrt((centred**2).sum()))
    assert FusedObjective(problem)(Z)[0].dependence == pytest.approx(expected, rel=1e-9)
    assert plain.value_and_gradient(problem, Z)[0].dependence == pytest.approx(expected, rel=1e-9)


def test_dependence_of_a_collapsed_embedding_is_zero(rng):
    problem = random_problem(rng, 10)
    for objective in (FusedObjective(problem), TorchObjective(problem, "cpu")):
        terms, gradient = objective(np.zeros((10, 2)))
        assert terms.dependence == 0.0 and np.isfinite(gradient).all()


def test_backends_by_name(rng):
    problem = random_problem(rng, 5)
    assert not isinstance(make_objective(problem, "auto"), FusedObjective)  # too few prototypes to compile for
    assert isinstance(make_objective(random_problem(rng, UNCOMPILED_ROWS + 1), "auto"), FusedObjective)
    assert isinstance(make_objective(problem, "torch"), TorchObjective)
    linear = random_problem(rng, 5, kernel=Linear())
    Z = rng.normal(size=(5, 2))
    np.testing.assert_array_equal(make_objective(linear, "auto")(Z)[1], plain.value_and_gradient(linear, Z)[1])


def test_fused_loops_refuse_a_kernel_they_do_not_know(rng):
    with pytest.raises(InvalidInputError, match="embedding_kernel=Linear"):
        make_objective(random_problem(rng, 5, kernel=Linear()), "numba")


@pytest.mark.parametrize("device", ["cuda:99", "no such device"])
def test_a_device_that_is_not_there_is_refused(device, rng):
    with pytest.raises(InvalidInputError, match="cannot be used"):
        TorchObjective(random_problem(rng, 5), device)
