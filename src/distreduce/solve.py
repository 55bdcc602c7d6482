"""The outer loop: coupling T and embedding Z in turn (with the map L eliminated, or beside them as in the paper)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce.affinity import student_affinity
from distreduce.coupling import (
    CouplingProblem,
    solve_balanced,
    solve_semirelaxed,
    structure_constant,
    structure_matrices,
)
from distreduce.coupling.problem import column_mass
from distreduce.coupling.products import affinity_times_plan
from distreduce.embedding import EmbeddingProblem, Terms, make_objective, minimise_adam, minimise_lbfgs, plain
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.kernels import DistanceKernel, Kernel, Linear, RationalQuadratic, sq_distances
from distreduce.losses import BregmanLoss, SquaredLoss
from distreduce.parallel import SERIAL, Workers
from distreduce.projection import Projection, barycentres
from distreduce.targets import TargetForm, dependence_target

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Constants of the objective and of the solver, by the names of :class:`distreduce.SDR`."""

    alpha: float = 0.2
    eta: float = 1000.0
    loss: InnerLoss = "kl"
    embedding_kernel: DistanceKernel | Linear = field(default_factory=RationalQuadratic)
    dependence: Dependence = "cka"
    target_form: TargetForm = "barycentric"
    solver: Literal["joint", "alternating"] = "joint"
    optimizer: Literal["lbfgs", "adam"] = "lbfgs"
    beta: float = 0.5
    learning_rate: float = 1e-3
    max_iter: int = 50
    max_inner_iter: int = 100
    tol: float = 1e-6
    backend: str = "auto"
    device: str | None = None


@dataclass(frozen=True)
class ReductionProblem:
    r"""SDR-OOS on one weighted sample.

    .. math::
        J = (1-\alpha)\sum_{ij} L_s(y_i, g_j^*(T))T_{ij} + \alpha\,GW(Z;T) - \eta\,\mathrm{CKA}(Z,\tilde Y)
            + \min_L \tfrac{\mu}{2}\|TZ - KL\|^2 + \tfrac{\lambda}{2}\mathrm{Tr}(L^\top KL)

    Attributes
    ----------
    affinity, weights : (n, n) and (n,) arrays
        C and the row masses h (counts: a sample of weight two is that sample twice).
    plan, embedding : (n, m) sparse and (m, p) arrays
        Where T and Z start.
    targets, loss : (n, c) array or None
        Y in the supervision loss; rows of NaN carry no supervision.
    kernel_targets, target_kernel : (n, c) array or None
        Y in the dependence, scaled so that the kernel's length scale means something.
    projection : Projection or None
        The out-of-sample map's kernel, factorised; None leaves the map out of the objective.
    balanced : bool
        Both marginals of the plan are given (m = n).
    """

    affinity: NDArray[np.floating]
    weights: Array
    plan: sparse.csr_array
    embedding: Array
    targets: Array | None = None
    loss: BregmanLoss = field(default_factory=SquaredLoss)
    kernel_targets: Array | None = None
    target_kernel: Kernel | None = None
    projection: Projection | None = None
    balanced: bool = False


@dataclass(frozen=True)
class Record:
    """One outer iteration: J, its four terms as they enter it, the CKA (NaN if not in use), and the cost."""

    iteration: int
    objective: float
    supervision: float
    gromov_wasserstein: float
    dependence: float
    projection: float
    cka: float
    n_evaluations: int
    seconds: float


@dataclass(frozen=True)
class Reduction:
    """What a fit found: T, Z, the history of J, and how the loop ended."""

    plan: sparse.csr_array
    embedding: Array
    history: tuple[Record, ...]
    converged: bool

    @property
    def objective(self) -> float:
        return self.history[-1].objective


@dataclass(frozen=True)
class _State:
    """A coupling with the embedding found for it. `settled`: the embedding step met its tolerance."""

    plan: sparse.csr_array
    affinity_plan: Array
    embedding: Array
    record: Record
    settled: bool


class _Loop:
    """The two half-steps for one problem, and the objective they share."""

    def __init__(self, problem: ReductionProblem, settings: Settings, workers: Workers) -> None:
        self.problem, self.settings, self.workers = problem, settings, workers
        self.constant = structure_constant(problem.affinity, problem.weights, settings.loss)
        self.joint = settings.solver == "joint"
        self._latest: tuple[sparse.csr_array, EmbeddingProblem] | None = None

    def embedding_problem(self, plan: sparse.csr_array, affinity_plan: Array) -> EmbeddingProblem:
        """What the Z-step needs of a plan; kept for as long as the plan stays, since R costs n³ when m = n."""
        if self._latest is None or not _same_plan(plan, self._latest[0]):
            self._latest = plan, self._build_embedding_problem(plan, affinity_plan)
        return self._latest[1]

    def _build_embedding_problem(self, plan: sparse.csr_array, affinity_plan: Array) -> EmbeddingProblem:
        problem, settings = self.problem, self.settings
        q = column_mass(plan)
        target, omega = None, None
        if problem.kernel_targets is not None and problem.target_kernel is not None:
            target, omega = dependence_target(
                plan, problem.kernel_targets, problem.target_kernel, settings.target_form, settings.dependence
            )
        transported = plan.T @ affinity_plan
        return EmbeddingProblem(
            mass=q,
            transported=0.5 * (transported + transported.T),
            reference=self._reference(q),
            target=target,
            target_weights=omega,
            quadratic=None if problem.projection is None else problem.projection.quadratic(plan),
            alpha=settings.alpha,
            eta=settings.eta,
            loss=settings.loss,
            dependence=settings.dependence,
            kernel=settings.embedding_kernel,
        )

    def _reference(self, mass: Array) -> Array:
        """Weights in the Student-t normaliser; an empty prototype has no part in it: it neither attracts nor repels."""
        return mass if self.problem.balanced else (mass > 0).astype(float)

    def embed(self, plan: sparse.csr_array, affinity_plan: Array, start: Array, iteration: int) -> _State:
        """The Z-step (joint: with L eliminated; alternating: without the map, then relaxed towards it)."""
        began = time.perf_counter()
        full = self.embedding_problem(plan, affinity_plan)
        solved = full if self.joint else replace(full, quadratic=None)
        objective = make_objective(solved, self.settings.backend, self.settings.device, self.workers)
        options: dict[str, Any] = {"max_iter": self.settings.max_inner_iter, "tol": 0.01 * self.settings.tol}
        if self.settings.optimizer == "adam":
            found = minimise_adam(objective, solved, start, learning_rate=self.settings.learning_rate, **options)
        else:
            found = minimise_lbfgs(objective, solved, start, **options)
        Z, terms = found.embedding, found.terms
        if not self.joint:
            Z = self._relax(plan, Z)
            terms, _ = plain.value_and_gradient(full, Z)
        record = self._record(iteration, plan, full, Z, terms, found.n_evaluations, time.perf_counter() - began)
        return _State(plan, affinity_plan, Z, record, found.converged)

    def couple(self, state: _State) -> tuple[sparse.csr_array, Array]:
        """The T-step: BSFGW, in the joint solver with the map's distance to the prototypes as a linear cost."""
        problem, settings = self.problem, self.settings
        reference = self._reference(column_mass(state.plan))
        f2, h2 = structure_matrices(student_affinity(state.embedding, reference), settings.loss)
        coupling = CouplingProblem(
            problem.affinity,
            problem.weights,
            f2,
            h2,
            targets=problem.targets,
            loss=problem.loss,
            alpha=settings.alpha,
            linear=self._map_cost(state) if self.joint else None,
        )
        solver = solve_balanced if problem.balanced else solve_semirelaxed
        found = solver(coupling, state.plan, tol=0.01 * settings.tol, workers=self.workers)
        return found.plan, found.affinity_plan

    def _map_cost(self, state: _State) -> Array | None:
        """(μ/2)|z_k − (KL)_i|²: with L held, a bound from above on the map's term, and equal to it on hard plans."""
        projection = self.problem.projection
        if projection is None:
            return None
        F = barycentres(state.plan, self.problem.weights) @ state.embedding
        fitted = projection.fitted(F, projection.coefficients(F))
        return 0.5 * projection.mu * sq_distances(fitted, state.embedding)

    def _relax(self, plan: sparse.csr_array, Z: Array) -> Array:
        """The paper's move towards the map: (1−β)Z + βKL, or for m < n (I + βTᵀT)⁻¹(Z + βTᵀKL)."""
        projection, beta = self.problem.projection, self.settings.beta
        if projection is None:
            return Z
        F = barycentres(plan, self.problem.weights) @ Z
        fitted = projection.fitted(F, projection.coefficients(F))
        if self.problem.balanced:
            shares = barycentres(sparse.csr_array(plan.T), column_mass(plan))
            return (1 - beta) * Z + beta * (shares @ fitted)
        gram = np.eye(plan.shape[1]) + beta * (plan.T @ plan).toarray()
        return np.linalg.solve(gram, Z + beta * (plan.T @ fitted))

    def _record(
        self,
        iteration: int,
        plan: sparse.csr_array,
        problem: EmbeddingProblem,
        Z: Array,
        terms: Terms,
        n_evaluations: int,
        seconds: float,
    ) -> Record:
        supervision, aligned = 0.0, np.nan
        if self.problem.targets is not None:
            loss, targets = self.problem.loss, self.problem.targets
            cost = loss.cost(targets, loss.prototype_targets(plan, targets))
            supervision = (1 - problem.alpha) * float(plan.multiply(cost).sum())
        if problem.target is not None and problem.dependence == "cka":
            aligned = plain.dependence(problem, problem.kernel(Z))[0]
        structure = problem.alpha * (terms.gromov_wasserstein + self.constant)
        dependence = -problem.eta * terms.dependence
        total = supervision + structure + dependence + terms.projection
        return Record(
            iteration, total, supervision, structure, dependence, terms.projection, aligned, n_evaluations, seconds
        )


def _same_plan(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    return one is other or (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )


def solve(
    problem: ReductionProblem,
    settings: Settings,
    *,
    workers: Workers = SERIAL,
    callback: Callable[[Record], object] | None = None,
) -> Reduction:
    """Alternate the two half-steps until J stops falling; a coupling that would raise J is not taken.

    The T-step descends BSFGW and the map's term but does not see the dependence (the paper's surrogate), so J can rise
    over a pair of half-steps. Then the coupling stays as it was and only the embedding is carried to its tolerance.
    """
    loop = _Loop(problem, settings, workers)
    start = affinity_times_plan(problem.affinity, problem.plan, workers)
    state = loop.embed(problem.plan, start, problem.embedding, 0)
    # Without outer iterations the plan stays as given and the embedding's own tolerance decides.
    history, frozen, converged = [state.record], False, settings.max_iter == 0 and state.settled
    for iteration in range(1, settings.max_iter + 1):
        if callback is not None:
            callback(state.record)
        began = time.perf_counter()
        plan, affinity_plan = (state.plan, state.affinity_plan) if frozen else loop.couple(state)
        candidate = loop.embed(plan, affinity_plan, state.embedding, iteration)
        decrease = state.record.objective - candidate.record.objective
        enough = settings.tol * max(1.0, abs(state.record.objective))
        if decrease >= 0:
            took = time.perf_counter() - began
            state = replace(candidate, record=replace(candidate.record, seconds=took))
            history.append(state.record)
        if decrease <= enough:
            if state.settled or not loop.joint or (frozen and decrease >= 0):
                converged = state.settled or frozen
                break
            frozen = True
    return Reduction(state.plan, state.embedding, tuple(history), converged)
