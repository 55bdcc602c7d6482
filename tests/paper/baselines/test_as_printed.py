"""The paper's algorithm as printed, against autograd and against sums over all samples."""

from __future__ import annotations

import numpy as np
import ot
import pytest
import torch

from distreduce_paper.baselines import as_printed
from distreduce_paper.baselines.as_printed import ALPHA, Reading, fit_as_printed

READINGS = ["", "inner_loss=square", "inner_loss=kl-", "gw=one diagonal=X", "centred=True columns=normalised mass=1/n"]


def printed_loss(Z, C, Y, T, reading, eta):
    """The terms of the paper in torch, over all n² m² entries where they are sums."""
    D = ((Z[:, None, :] - Z) ** 2).sum(dim=2)
    w = 1 / (1 + D)
    if reading.diagonal != "both":
        w = torch.where(torch.eye(len(Z), dtype=bool), as_printed.NO_SELF * torch.ones_like(w), w)
    Cbar = w / w.sum()
    a, b = C[:, :, None, None], Cbar[None, None]
    inner = {"kl": lambda: b - a * b.log(), "kl-": lambda: -a * b.log(), "square": lambda: b**2 - 2 * a * b}
    gw = torch.einsum("ijkl,ik,jl->", inner[reading.inner_loss]().expand(*C.shape, *D.shape), T, T)
    K, columns = 1 / (1 + D / 2), T / T.sum(dim=0) if reading.columns == "normalised" else T
    L = columns.T @ (Y @ Y.T) @ columns
    if reading.centred:
        H = torch.eye(len(Z), dtype=torch.float64) - 1 / len(Z)
        K, L = H @ K @ H, H @ L @ H
    cka = (K * L).sum() / (K.norm() * L.norm())
    return (ALPHA if reading.gw == "alpha" else 1.0) * gw - eta * cka


@pytest.mark.parametrize("words", READINGS)
def test_the_loss_of_the_prototypes_and_its_gradient_are_those_of_autograd(rng, words):
    reading = Reading.parse(words)
    C, labels = rng.uniform(size=(20, 20)), np.r_[np.arange(5), rng.integers(5, size=15)]
    C, T = C + C.T, np.eye(5)[labels] / (1 if reading.mass == "one" else 20)
    Y, Z = np.eye(3)[rng.integers(3, size=20)], rng.normal(size=(5, 2))
    point = torch.tensor(Z, requires_grad=True)

    value, gradient = as_printed._EmbeddingLoss(C, Y, T, reading, 10.0)(Z)

    expected = printed_loss(point, *map(torch.tensor, (C, Y, T)), reading, 10.0)
    expected.backward()
    assert value == pytest.approx(expected.item())
    assert gradient == pytest.approx(point.grad.numpy(), rel=1e-8, abs=1e-10)


def test_adam_is_that_of_torch(rng):
    gradients, point = rng.normal(size=(5, 3, 2)), torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    ours, theirs, Z = as_printed.Adam((3, 2), 0.1), torch.optim.Adam([point], lr=0.1), np.zeros((3, 2))
    for gradient in gradients:
        point.grad = torch.tensor(gradient)
        theirs.step()
        Z = Z - ours.step(gradient)
    assert point.detach().numpy() == pytest.approx(Z)


def test_words_name_what_differs_from_the_literal_reading():
    reading = Reading.parse("lr=0.1 centred=True outer=3")

    assert (reading.lr, reading.centred, reading.outer) == (0.1, True, 3)
    assert Reading.parse(reading.words()) == reading
    assert reading.without_dependence().words() == "lr=0.1 outer=3"
    assert Reading().words() == ""


@pytest.mark.filterwarnings("ignore::UserWarning")  # of spectral clustering, about graphs that are not connected
@pytest.mark.parametrize("words", ["", "mass=1/n init=pca", "solver=mirror init=spectral", "refresh=step order=TZ"])
def test_every_row_of_the_coupling_sums_to_one(blobs, words):
    X, y = blobs

    Z, T, outer = fit_as_printed(X, y, 8, Reading.parse(f"outer=2 {words}"), perplexity=10.0, seed=0, eta=1000.0)

    assert Z.shape == (8, 2) and np.isfinite(Z).all()
    assert T.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert 1 <= outer <= 2


def test_the_target_costs_are_the_modified_cross_entropy(rng):
    Y, T = np.eye(3)[rng.integers(3, size=12)], rng.dirichlet(np.ones(4), size=12)
    g = (T.T @ Y) / T.sum(axis=0)[:, None]
    expected = [[(y[y > 0] * np.log(y[y > 0] / one[y > 0])).sum() + one.sum() - y.sum() for one in g] for y in Y]

    assert as_printed._target_costs(Y, T, Reading()) == pytest.approx(np.array(expected), abs=1e-8)


@pytest.mark.parametrize("loss", ["kl_loss", "square_loss"])
@pytest.mark.parametrize("steps", [1, 3, 200])
def test_the_coupling_is_that_of_pot(rng, loss, steps):
    C, Cbar, M = rng.uniform(size=(30, 30)), rng.uniform(size=(6, 6)), rng.uniform(size=(30, 6))
    C, Cbar, T = C + C.T, Cbar + Cbar.T, np.eye(6)[rng.integers(6, size=30)]
    solve = ot.gromov.semirelaxed_fused_gromov_wasserstein
    options = {"loss_fun": loss, "alpha": ALPHA, "symmetric": True, "max_iter": steps}

    expected = solve(M, C, Cbar, np.ones(30), G0=T, **options)

    assert as_printed.descend_coupling(M, C, Cbar, T, loss, steps) == pytest.approx(expected, abs=1e-10)
