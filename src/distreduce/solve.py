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
from distreduce.coupling import structure_matrices
from distreduce.coupling.problem import column_mass
from distreduce.dense_side import DenseSide, ReductionProblem
from distreduce.embedding import EmbeddingProblem, Terms, make_objective, minimise_adam, minimise_lbfgs, plain
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.kernels import DistanceKernel, Linear, RationalQuadratic
from distreduce.parallel import SERIAL, Workers
from distreduce.projection import barycentres
from distreduce.sample_side import Coupled, SampleSide
from distreduce.targets import TargetForm

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
    """What a fit found: T, Z, the history of J, and how the loop ended (`stopped`: by the callback)."""

    plan: sparse.csr_array
    embedding: Array
    history: tuple[Record, ...]
    converged: bool
    stopped: bool = False

    @property
    def objective(self) -> float:
        return self.history[-1].objective


@dataclass(frozen=True)
class _State:
    """A coupling with the embedding found for it. `settled`: the embedding step met its tolerance."""

    coupled: Coupled
    embedding: Array
    record: Record
    settled: bool


class _Loop:
    """The two half-steps, and the objective they share; all of it is of the prototypes' size."""

    def __init__(self, side: SampleSide, settings: Settings, workers: Workers) -> None:
        self.side, self.settings, self.workers = side, settings, workers
        self.constant = side.structure_constant(settings.loss)
        self.joint = settings.solver == "joint"
        self._latest: tuple[sparse.csr_array, EmbeddingProblem] | None = None

    def embedding_problem(self, coupled: Coupled) -> EmbeddingProblem:
        """What the Z-step needs of a plan; kept for as long as the plan stays, since R costs n³ when m = n."""
        if self._latest is None or not _same_plan(coupled.plan, self._latest[0]):
            self._latest = coupled.plan, self._build_embedding_problem(coupled)
        return self._latest[1]

    def _build_embedding_problem(self, coupled: Coupled) -> EmbeddingProblem:
        settings = self.settings
        q = column_mass(coupled.plan)
        target, omega = self.side.dependence_target(coupled.plan, settings.target_form, settings.dependence)
        return EmbeddingProblem(
            mass=q,
            transported=coupled.transported,
            reference=self._reference(q),
            target=target,
            target_weights=omega,
            quadratic=self.side.map_quadratic(coupled.plan),
            alpha=settings.alpha,
            eta=settings.eta,
            loss=settings.loss,
            dependence=settings.dependence,
            kernel=settings.embedding_kernel,
        )

    def _reference(self, mass: Array) -> Array:
        """Weights r in the Student-t normaliser; an empty prototype has no part in it: it neither attracts nor repels.

        With ones, as in the paper, the mean of C̄ over pairs is 1/m² and that of the input affinity 1/n. For n > m² the
        term Σ C̄_kl q_k q_l of GW, about n²/m², then outgrows all others, which are about n. r = √n/m makes both means
        equal; where C̄ is the smaller one it stays the paper's.
        """
        if self.side.balanced:
            return mass
        even = float(np.sqrt(mass.sum())) / len(mass) if self.joint else 1.0
        return max(1.0, even) * (mass > 0).astype(float)

    def embed(self, coupled: Coupled, start: Array, iteration: int) -> _State:
        """The Z-step (joint: with L eliminated; alternating: without the map, then relaxed towards it)."""
        began = time.perf_counter()
        full = self.embedding_problem(coupled)
        solved = full if self.joint else replace(full, quadratic=None)
        objective = make_objective(solved, self.settings.backend, self.settings.device, self.workers)
        options: dict[str, Any] = {"max_iter": self.settings.max_inner_iter, "tol": 0.01 * self.settings.tol}
        if self.settings.optimizer == "adam":
            found = minimise_adam(objective, solved, start, learning_rate=self.settings.learning_rate, **options)
        else:
            found = minimise_lbfgs(objective, solved, start, **options)
        Z, terms = found.embedding, found.terms
        if not self.joint:
            Z = self._relax(coupled.plan, Z)
            terms, _ = plain.value_and_gradient(full, Z)
        record = self._record(iteration, coupled.plan, full, Z, terms, found.n_evaluations, time.perf_counter() - began)
        return _State(coupled, Z, record, found.converged)

    def couple(self, state: _State) -> Coupled:
        """The T-step: BSFGW, in the joint solver with the map's distance to the prototypes as a linear cost.

        That cost, (μ/2)|z_k − (KL)_i|² with L held, bounds the map's term from above and equals it on hard plans.
        """
        plan, Z, settings = state.coupled.plan, state.embedding, self.settings
        f2, h2 = structure_matrices(student_affinity(Z, self._reference(column_mass(plan))), settings.loss)
        fitted = self.side.map_fitted(plan, Z) if self.joint else None
        return self.side.couple(plan, f2, h2, Z, fitted, alpha=settings.alpha, tol=0.01 * settings.tol)

    def _relax(self, plan: sparse.csr_array, Z: Array) -> Array:
        """The paper's move towards the map: (1−β)Z + βKL, or for m < n (I + βTᵀT)⁻¹(Z + βTᵀKL)."""
        fitted, beta = self.side.map_fitted(plan, Z), self.settings.beta
        if fitted is None:
            return Z
        if self.side.balanced:
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
        aligned = np.nan
        if problem.target is not None and problem.dependence == "cka":
            aligned = plain.dependence(problem, problem.kernel(Z))[0]
        supervision = (1 - problem.alpha) * self.side.supervision(plan)
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
    """Solve a problem whose affinity and kernel are n×n arrays; see :func:`alternate`."""
    side = DenseSide(problem, workers)
    return alternate(side, problem.plan, problem.embedding, settings, workers=workers, callback=callback)


def alternate(
    side: SampleSide,
    plan: sparse.csr_array,
    embedding: Array,
    settings: Settings,
    *,
    workers: Workers = SERIAL,
    callback: Callable[[Record], object] | None = None,
) -> Reduction:
    """Alternate the two half-steps until J stops falling; a coupling that would raise J is not taken.

    The T-step descends BSFGW and the map's term but does not see the dependence (the paper's surrogate), so J can rise
    over a pair of half-steps. Then the coupling stays as it was and only the embedding is carried to its tolerance.
    A callback is told of every outer iteration; the loop ends early if it answers True.
    """
    loop = _Loop(side, settings, workers)
    state = loop.embed(Coupled(plan, side.transported(plan)), embedding, 0)
    # Without outer iterations the plan stays as given and the embedding's own tolerance decides.
    history, frozen, converged = [state.record], False, settings.max_iter == 0 and state.settled
    for iteration in range(1, settings.max_iter + 1):
        if callback is not None and callback(state.record) is True:
            return Reduction(state.coupled.plan, state.embedding, tuple(history), converged, stopped=True)
        began = time.perf_counter()
        coupled = state.coupled if frozen else loop.couple(state)
        candidate = loop.embed(coupled, state.embedding, iteration)
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
    return Reduction(state.coupled.plan, state.embedding, tuple(history), converged)
