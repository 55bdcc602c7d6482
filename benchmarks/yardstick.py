"""The straightforward pipeline that ours is measured against, from the paper and the public DistR code's settings.

Symmetric entropic affinity by Adam on its dual; the coupling by POT's semi-relaxed fused Gromov-Wasserstein, prototype
targets refreshed between calls; the embedding by autograd and Adam. Written for speed where that takes no new idea:
pairwise distances through a matrix product, the target kernel formed once per outer iteration, float32 on request.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import ot
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from distreduce.solver.dense import DenseOracle

Array = NDArray[np.float64]
# Those of the public code: dual steps and tolerance of the affinity, steps and tolerance of Adam, outer iterations.
AFFINITY_STEPS, AFFINITY_TOL = 500, 1e-3
INNER_STEPS, INNER_TOL, OUTER_STEPS = 1000, 1e-6, 10
LEARNING_RATE = 1e-3
# In cross-entropies, as in ours, so that both have the same objective.
FLOOR = 1e-10


@dataclass(frozen=True)
class AdamAffinity:
    """P, its dual variables γ, the number of steps, and whether the last one was NaN or infinite."""

    matrix: Array
    gamma: Array
    n_iter: int
    broke: bool


def kkt_residual(affinity: Array, gamma: Array, weights: Array, perplexity: float, scale: Array) -> float:
    """Largest of |r_i − 1|, log ξ − H_i and min(γ_i / scale_i, H_i − log ξ)."""
    entropy = -(affinity * np.log(np.where(affinity > 0.0, affinity, 1.0))) @ weights
    slack = entropy - np.log(perplexity)
    violation = np.maximum(-slack, np.minimum(gamma / scale, slack))
    return float(np.maximum(np.abs(affinity @ weights - 1.0), violation).max())


def affinity(sq_distances: Array, perplexity: float, learning_rate: float, steps: int = AFFINITY_STEPS) -> AdamAffinity:
    """Dual ascent by Adam from γ = 1, μ = 0, with γ kept non-negative."""
    D, n = torch.from_numpy(sq_distances), len(sq_distances)
    gamma, mu = torch.ones(n, dtype=D.dtype), torch.zeros(n, dtype=D.dtype)
    adam, target = torch.optim.Adam([gamma, mu], lr=learning_rate), float(np.log(perplexity))
    for step in range(steps + 1):
        log_P = (mu[:, None] + mu - 2 * D) / (gamma[:, None] + gamma)
        P = log_P.exp()
        mass, entropy = P.sum(1), -(P * log_P).sum(1)
        # The gradient of the dual in closed form; Adam minimises, so these are of its negative.
        gamma.grad, mu.grad = entropy + mass - target - 1, mass - 1
        if not bool(torch.isfinite(gamma.grad + mu.grad).all()):
            return AdamAffinity(P.numpy(), gamma.numpy(), step, True)
        close = (gamma.grad.abs() < AFFINITY_TOL) & (mu.grad.abs() < AFFINITY_TOL)
        if step == steps or bool(close.all()):
            break
        adam.step()
        gamma.clamp_(min=0)
    return AdamAffinity(P.numpy(), gamma.numpy(), step, False)


def pairwise(z: Tensor) -> Tensor:
    """Squared distances through one matrix product."""
    norms = (z * z).sum(1)
    return (norms[:, None] + norms - 2 * z @ z.T).clamp_min(0)


class Embedding:
    """α GW(KL) − η CKA of Z for one plan, for autograd.

    GW goes through the n×m tensor product C T log C̄ at every step, as in the public code; `reduced` forms q and TᵀCT
    once and stays at m×m, which the public code does not. Prototypes without mass are ignored, as in our solver.
    """

    def __init__(self, problem: DenseOracle, plan: Array, alpha: float, eta: float, dtype: torch.dtype) -> None:
        self.alpha, self.eta = alpha, eta
        self.C, self.T = torch.from_numpy(problem.affinity).to(dtype), torch.from_numpy(plan).to(dtype)
        self.q = self.T.sum(0)
        self.used = (self.q > 0).to(dtype)
        self.A: Tensor | None = None
        sums = plan.T @ problem.sample.kernel_targets  # the delta kernel: TᵀK_Y T = (TᵀY)(TᵀY)ᵀ
        B = self._centred(torch.from_numpy(sums @ sums.T).to(dtype))
        self.B = B / B.norm()

    def reduced(self) -> Embedding:
        self.A = self.T.T @ (self.C @ self.T)
        return self

    def _centred(self, K: Tensor) -> Tensor:
        """HKH over the prototypes in use; zero elsewhere."""
        # Row means over the prototypes in use; K is symmetric, so they serve the columns too.
        row = K @ self.used / self.used.sum()
        centred = K - row[:, None] - row + self.used @ row / self.used.sum()
        return centred * self.used[:, None] * self.used

    def __call__(self, z: Tensor) -> Tensor:
        sq_distances = pairwise(z)
        log_w = -torch.log1p(sq_distances)
        w = log_w.exp()
        log_S = (self.used @ w @ self.used).log()
        log_p = log_w - log_S
        # GW with the KL loss, without the terms that do not depend on Z: full or reduced.
        if self.A is None:
            loss = (((self.q @ log_p.exp()) - self.C @ self.T @ log_p) * self.T).sum()
        else:
            loss = self.q @ log_p.exp() @ self.q - (self.A * log_p).sum()
        K = self._centred(1 / (1 + 0.5 * sq_distances))
        return self.alpha * loss - self.eta * (K * self.B).sum() / K.norm()

    def value_and_gradient(self, z: Tensor) -> tuple[float, Tensor]:
        leaf = z.detach().requires_grad_(True)
        value = self(leaf)
        (gradient,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), gradient


def embed(objective: Embedding, z: Tensor, adam: torch.optim.Optimizer) -> float:
    """Take at most 1000 steps of Adam on z (its only parameter), fewer if the loss settles; return the last loss."""
    previous, value = np.inf, np.inf
    for _ in range(INNER_STEPS):
        adam.zero_grad()
        loss = objective(z)
        loss.backward()
        adam.step()
        previous, value = value, float(loss.detach())
        if abs(previous - value) < INNER_TOL * abs(value):
            break
    return value


def supervision_cost(plan: Array, Y: Array) -> Array:
    """Cross-entropies (n, m) between one-hot targets and the prototypes' mean targets at this plan."""
    mass = plan.sum(axis=0)
    # An empty prototype gets the mean target of all samples.
    G = np.where(mass[:, None] > 0, plan.T @ Y, Y.sum(axis=0)) / np.where(mass > 0, mass, len(Y))[:, None]
    return -Y @ np.log(np.maximum(G, FLOOR)).T


def couple(problem: DenseOracle, plan: Array, embedding_affinity: Array, alpha: float) -> Array:
    """Call POT once, at the prototype targets of `plan`."""
    found: Array = ot.gromov.semirelaxed_fused_gromov_wasserstein(
        supervision_cost(plan, problem.sample.targets),
        problem.affinity,
        embedding_affinity,
        problem.sample.weights,
        loss_fun="kl_loss",
        symmetric=True,
        alpha=alpha,
        G0=plan,
    )
    return found


def student(Z: Array, plan: Array) -> Array:
    """Normalised Student-t affinity; prototypes without mass are left out of the normaliser."""
    used = (plan.sum(axis=0) > 0).astype(float)
    w = 1 / (1 + pairwise(torch.from_numpy(Z)).numpy())
    return np.asarray(w / (used @ w @ used))


@dataclass(frozen=True)
class Snapshot:
    """Plan and embedding after a half-step, and the seconds since the start."""

    plan: sparse.csr_array
    embedding: Array
    seconds: float


def fit(
    problem: DenseOracle, alpha: float, eta: float, dtype: torch.dtype = torch.float64, reduced: bool = False
) -> list[Snapshot]:
    """Alternate embedding and coupling, ten times or until the loss rises; take a snapshot after every half-step."""
    began, T = time.perf_counter(), problem.plan.toarray()
    # A copy: Adam writes into z, and the start belongs to the other methods as well.
    z = torch.tensor(problem.prototypes, dtype=dtype, requires_grad=True)
    adam, running = torch.optim.Adam([z], lr=LEARNING_RATE), np.inf
    taken: list[Snapshot] = []
    objective = embedding_objective(problem, T, alpha, eta, dtype, reduced)
    for _ in range(OUTER_STEPS):
        embed(objective, z, adam)
        Z = z.detach().double().numpy().copy()
        taken.append(Snapshot(sparse.csr_array(T), Z, time.perf_counter() - began))
        # The T-step, and then the dependence target of the new plan.
        T = couple(problem, T, student(Z, T), alpha)
        objective = embedding_objective(problem, T, alpha, eta, dtype, reduced)
        with torch.no_grad():
            loss = float(objective(z)) + (1 - alpha) * float((T * supervision_cost(T, problem.sample.targets)).sum())
        taken.append(Snapshot(sparse.csr_array(T), Z, time.perf_counter() - began))
        if loss > running:
            break
        running = loss
    return taken


def embedding_objective(
    problem: DenseOracle, plan: Array, alpha: float, eta: float, dtype: torch.dtype, reduced: bool
) -> Embedding:
    """Return the loss in its full form or, with `reduced`, on the prototypes alone."""
    full = Embedding(problem, plan, alpha, eta, dtype)
    return full.reduced() if reduced else full
