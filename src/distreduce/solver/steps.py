"""The two half-steps of the outer loop, of the coupling T and of the embedding Z, and the objective that they share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array
from distreduce.affinity import student_affinity
from distreduce.coupling import structure_matrices
from distreduce.coupling.plan import column_mass
from distreduce.embedding import (
    EmbeddingProblem,
    EmbeddingResult,
    Terms,
    make_objective,
    minimise_adam,
    minimise_lbfgs,
    plain,
)
from distreduce.embedding.dependence_target import TargetForm
from distreduce.embedding.optimize import Objective
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.exceptions import NumericalError
from distreduce.kernels import DistanceKernel, Linear, RationalQuadratic
from distreduce.mapping import barycentres
from distreduce.solver.oracle import Coupled, SampleSide


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
class State:
    """A coupling with the embedding found for it.

    `settled`: the embedding step met its tolerance. `stuck`: it ended where its objective was no number any more.
    """

    coupled: Coupled
    embedding: Array
    record: Record
    settled: bool
    stuck: bool = False


class HalfSteps:
    """The two half-steps; all of it is of the prototypes' size. What is not finite is a :class:`NumericalError`."""

    def __init__(self, side: SampleSide, settings: Settings, workers: Workers) -> None:
        self.side, self.settings, self.workers = side, settings, workers
        self.constant = side.structure_constant(settings.loss)
        _require_finite("input affinity", self.constant)
        self.joint = settings.solver == "joint"
        self._latest: tuple[Coupled, EmbeddingProblem] | None = None

    def embedding_problem(self, coupled: Coupled) -> tuple[Coupled, EmbeddingProblem]:
        """What the Z-step needs of a plan; kept for as long as the plan stays, since R costs n³ when m = n.

        With the coupling that it was made of: what the same plan transports may differ by rounding.
        """
        if self._latest is None or not same_plan(coupled.plan, self._latest[0].plan):
            self._latest = coupled, self._build_embedding_problem(coupled)
        return self._latest

    def _build_embedding_problem(self, coupled: Coupled) -> EmbeddingProblem:
        settings = self.settings
        q = column_mass(coupled.plan)
        target, omega = self.side.dependence_target(coupled.plan, settings.target_form, settings.dependence)
        quadratic = self.side.map_quadratic(coupled.plan)
        _require_finite("coupling", q, coupled.transported)
        _require_finite("target kernel", target, omega)
        _require_finite("out-of-sample map", quadratic)
        return EmbeddingProblem(
            mass=q,
            transported=coupled.transported,
            reference=self._reference(q),
            target=target,
            target_weights=omega,
            quadratic=quadratic,
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

    def embed(self, coupled: Coupled, start: Array, iteration: int) -> State:
        """The Z-step (joint: with L eliminated; alternating: without the map, then relaxed towards it)."""
        began = time.perf_counter()
        coupled, full = self.embedding_problem(coupled)
        found = self._minimise(full if self.joint else replace(full, quadratic=None), start)
        Z, terms = found.embedding, found.terms
        if not self.joint:
            Z = self._relax(coupled.plan, Z)
            terms, _ = plain.value_and_gradient(full, Z)
        record = self._record(iteration, coupled.plan, full, Z, terms, found.n_evaluations, time.perf_counter() - began)
        _require_finite("objective", record.objective, Z)
        return State(coupled, Z, record, found.converged, found.stuck)

    def _minimise(self, problem: EmbeddingProblem, start: Array) -> EmbeddingResult:
        """With the backend that was asked for; if that finds no number at the start, with the equations in NumPy."""
        objective = make_objective(problem, self.settings.backend, self.workers)
        try:
            return self._minimise_by(objective, problem, start)
        except NumericalError:
            return self._minimise_by(make_objective(problem, "numpy"), problem, start)

    def _minimise_by(self, objective: Objective, problem: EmbeddingProblem, start: Array) -> EmbeddingResult:
        options: dict[str, Any] = {"max_iter": self.settings.max_inner_iter, "tol": 0.01 * self.settings.tol}
        if self.settings.optimizer == "adam":
            return minimise_adam(objective, problem, start, learning_rate=self.settings.learning_rate, **options)
        return minimise_lbfgs(objective, problem, start, **options)

    def couple(self, state: State) -> Coupled:
        """The T-step: BSFGW, in the joint solver with the map's distance to the prototypes as a linear cost.

        That cost, (μ/2)|z_k − (KL)_i|² with L held, bounds the map's term from above and equals it on hard plans.
        """
        plan, Z, settings = state.coupled.plan, state.embedding, self.settings
        f2, h2 = structure_matrices(student_affinity(Z, self._reference(column_mass(plan))), settings.loss)
        fitted = self.side.map_fitted(plan, Z) if self.joint else None
        _require_finite("embedding's affinity", f2, h2)
        _require_finite("out-of-sample map", fitted)
        found = self.side.couple(plan, f2, h2, Z, fitted, alpha=settings.alpha, tol=0.01 * settings.tol)
        _require_finite("coupling", found.plan.data, found.transported)
        return found

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


def same_plan(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    """Whether two plans are equal in every bit, the order of their entries included."""
    return one is other or (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )


def _require_finite(what: str, *values: Any) -> None:
    """Refuse numbers that are none; None is in order."""
    if not all(value is None or np.isfinite(value).all() for value in values):
        raise NumericalError(f"The {what} is not finite; check the scale of X and y.")
