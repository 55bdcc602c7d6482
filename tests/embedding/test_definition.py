"""The reduced objective (q, A, B) against the paper's: the quadruple sum of GW, and the CKA of two kernels."""

from __future__ import annotations

import numpy as np
import pytest
from embedding.embedding_problems import centring, direction, random_problem, symmetric

from distreduce.affinity import student_affinity
from distreduce.coupling.problem import structure_constant
from distreduce.dependence import cka, hsic
from distreduce.embedding import plain
from distreduce.kernels import RBF, Linear, RationalQuadratic


def quadruple_sum(C, C_bar, T, loss):
    """Σ_ijkl L_u(C_ij, C̄_kl) T_ik T_jl, term by term."""
    total = 0.0
    for i, j, k, l in np.ndindex(len(C), len(C), len(C_bar), len(C_bar)):
        a, b = C[i, j], C_bar[k, l]
        cost = a * np.log(a / b) - a + b if loss == "kl" else (a - b) ** 2
        total += cost * T[i, k] * T[j, l]
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["kl", "square"])
def test_gromov_wasserstein_is_the_quadruple_sum(loss, weighted, rng):
    n, m = 6, 4
    C, T, Z = symmetric(rng, n) + 0.01, rng.uniform(0, 1, (n, m)), rng.normal(size=(m, 2))
    q = T.sum(axis=0)
    r = q if weighted else np.ones(m)
    w = 1.0 / (1.0 + ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    problem = random_problem(rng, m, mass=q, transported=T.T @ C @ T, reference=r, loss=loss, eta=0.0)
    value = plain.value_and_gradient(problem, Z)[0].gromov_wasserstein + structure_constant(C, T.sum(axis=1), loss)
    assert value == pytest.approx(quadruple_sum(C, w / (r @ w @ r), T, loss), rel=1e-11)


def test_a_zero_affinity_costs_what_the_limit_says(rng):
    """0 log 0 = 0."""
    C = symmetric(rng, 5)
    C[1, 3] = C[3, 1] = 0.0
    near = C + 1e-14 * (C == 0)
    assert structure_constant(C, np.ones(5), "kl") == pytest.approx(structure_constant(near, np.ones(5), "kl"))


@pytest.mark.parametrize("reference", [None, [2.0, 1.0, 0.0, 3.0]])
def test_student_affinity_of_both_half_steps_is_one(reference, rng):
    """The T-step's C̄ gives the Z-step's GW: the two half-steps descend one objective."""
    m, Z = 4, rng.normal(size=(4, 2))
    r = np.ones(m) if reference is None else np.array(reference)
    problem = random_problem(rng, m, reference=r, eta=0.0)
    C_bar = student_affinity(Z, r)
    q, A = problem.mass, problem.transported
    expected = q @ C_bar @ q - (A * np.log(C_bar)).sum()
    assert plain.value_and_gradient(problem, Z)[0].gromov_wasserstein == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", [RationalQuadratic(0.7, 1.3), RBF(0.8), Linear()], ids=str)
@pytest.mark.parametrize("dependence", ["cka", "cka_uncentered", "hsic"])
def test_dependence_is_the_packages_cka(dependence, kernel, rng):
    m, Z, Y = 9, rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    omega, K_Y = rng.uniform(0.5, 2.0, m), RBF(1.5)(Y)
    problem = random_problem(
        rng, m, target=direction(K_Y, omega, dependence), target_weights=omega, dependence=dependence, kernel=kernel
    )
    value = plain.value_and_gradient(problem, Z)[0].dependence
    if dependence == "hsic":
        expected = hsic(kernel(Z), K_Y, omega)
    else:
        expected = cka(kernel(Z), K_Y, omega, centered=dependence == "cka")
    assert value == pytest.approx(expected, rel=1e-10)


def test_cka_by_explicit_centring_matrices(rng):
    m, Z, K_Y = 7, rng.normal(size=(7, 2)), symmetric(rng, 7)
    omega = np.ones(m)
    H = centring(omega)
    K = 1.0 / (1.0 + 0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    expected = np.trace(H @ K @ H @ K_Y) / (np.linalg.norm(H @ K @ H) * np.linalg.norm(H @ K_Y @ H))
    problem = random_problem(rng, m, target=direction(K_Y, omega, "cka"), target_weights=omega)
    assert plain.value_and_gradient(problem, Z)[0].dependence == pytest.approx(expected, rel=1e-11)


def test_a_weight_of_two_is_a_prototype_twice(rng):
    """With all weights equal to masses (m = n), F does not see whether a sample is repeated or weighted."""
    m, Z, w = 6, rng.normal(size=(6, 2)), np.array([2.0, 1, 1, 1, 1, 1])
    twice = np.r_[0, np.arange(m)]
    C, K_Y = symmetric(rng, m), RBF()(rng.normal(size=(m, 1)))

    def total(C, K_Y, w, Z):
        problem = random_problem(
            rng,
            len(w),
            mass=w,
            reference=w,
            transported=np.outer(w, w) * C,
            target=direction(K_Y, w, "cka"),
            target_weights=w,
        )
        return plain.value_and_gradient(problem, Z)[0].total(problem)

    repeated = total(C[np.ix_(twice, twice)], K_Y[np.ix_(twice, twice)], np.ones(m + 1), Z[twice])
    assert total(C, K_Y, w, Z) == pytest.approx(repeated, rel=1e-12)
