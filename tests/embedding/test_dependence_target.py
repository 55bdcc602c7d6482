"""The dependence's target matrix B in its three forms, against the CKA of kernels written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import distreduce.dependence
from distreduce.coupling import hard_plan
from distreduce.dependence import cka, dependence_target, hsic
from distreduce.kernels import RBF, Delta, Linear

KERNELS = pytest.mark.parametrize("kernel", [RBF(1.3), Delta(), Linear()], ids=str)


def soft(rng, n=15, m=6):
    return sparse.csr_array(rng.uniform(0.5, 2, (n, 1)) * rng.dirichlet(np.ones(m), n))


def labels(rng, n=15):
    return np.eye(3)[rng.integers(3, size=n)]


def value(B, omega, K, dependence):
    """The dependence of a kernel K on B as the Z-step computes it."""
    if dependence == "hsic":
        return (K * B).sum()
    H = np.eye(len(K)) - np.outer(np.ones(len(K)), omega / omega.sum())
    K_used = H @ K @ H.T if dependence == "cka" else K
    return (K * B).sum() / np.sqrt(omega @ K_used**2 @ omega)


def expected(K, K_Y, omega, dependence):
    return hsic(K, K_Y, omega) if dependence == "hsic" else cka(K, K_Y, omega, centered=dependence == "cka")


@pytest.mark.parametrize("dependence", ["cka", "cka_uncentered", "hsic"])
@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
@KERNELS
def test_each_form_is_the_dependence_on_its_kernel(kernel, form, dependence, rng):
    T, Y = soft(rng), labels(rng)
    dense = T.toarray()
    q = dense.sum(axis=0)
    K_Y = dense.T @ kernel(Y) @ dense if form == "transport" else kernel(dense.T @ Y / q[:, None])
    omega = q if form == "mass" else np.ones(6)
    B, weights = dependence_target(T, Y, kernel, form, dependence)
    np.testing.assert_allclose(weights, omega, rtol=1e-14)
    K = RBF()(rng.normal(size=(6, 2)))
    assert value(B, weights, K, dependence) == pytest.approx(expected(K, K_Y, omega, dependence), rel=1e-10)


@KERNELS
def test_transport_by_blocks_is_the_whole_product(kernel, rng, monkeypatch):
    monkeypatch.setattr(distreduce.dependence, "BLOCK_ROWS", 4)
    T, Y = soft(rng), rng.normal(size=(15, 2))
    B, _ = dependence_target(T, Y, kernel, "transport", "cka_uncentered")
    K = T.toarray().T @ kernel(Y) @ T.toarray()
    np.testing.assert_allclose(B, K / np.linalg.norm(K), rtol=1e-11)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_one_to_one_plans_weigh_samples_as_repetitions(form, rng):
    Y, Z = rng.normal(size=(7, 1)), rng.normal(size=(7, 2))
    weights = np.r_[2.0, np.ones(6)]
    twice = np.r_[0, np.arange(7)]
    B, omega = dependence_target(hard_plan(np.arange(7), weights, 7), Y, RBF(), form, "cka")
    repeated = cka(RBF()(Z[twice]), RBF()(Y[twice]))
    assert value(B, omega, RBF()(Z), "cka") == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_samples_without_target_take_no_part(form, rng):
    T, Y = soft(rng), labels(rng)
    unknown = Y.copy()
    unknown[[1, 8]] = np.nan
    known = np.delete(np.arange(15), [1, 8])
    B, omega = dependence_target(T, unknown, Delta(), form, "cka")
    B_known, omega_known = dependence_target(T[known], Y[known], Delta(), form, "cka")
    np.testing.assert_allclose(np.c_[B, omega], np.c_[B_known, omega_known], rtol=1e-12)


@pytest.mark.parametrize("form", ["barycentric", "mass", "transport"])
def test_a_prototype_without_known_targets_takes_no_part(form, rng):
    Y = labels(rng, 8)
    Y[:2] = np.nan
    B, omega = dependence_target(hard_plan(np.arange(8) // 2, np.ones(8), 4), Y, Delta(), form, "cka")
    assert omega[0] == 0 and (B[0] == 0).all() and (B[:, 0] == 0).all()


@pytest.mark.parametrize("dependence", ["cka", "hsic"])
def test_constant_targets_have_no_direction(dependence):
    B, _ = dependence_target(hard_plan(np.arange(6) % 3, np.ones(6), 3), np.ones((6, 1)), RBF(), "mass", dependence)
    np.testing.assert_allclose(B, 0.0, atol=1e-12)


@pytest.mark.parametrize("dependence", ["cka", "hsic"])
def test_prototypes_of_equal_targets_have_no_direction(dependence):
    plan = sparse.csr_array(np.full((9, 4), 0.25))
    B, _ = dependence_target(plan, np.linspace(0.1, 1.7, 9)[:, None], RBF(), "barycentric", dependence)
    assert not B.any()
