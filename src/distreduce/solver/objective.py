"""The objective J, and the two steps that lower it.

The T-step finds a coupling for the prototypes, the Z-step prototypes for the coupling.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array, Plan
from distreduce.affinity import student_affinity
from distreduce.coupling.problem import column_mass, structure_matrices
from distreduce.embedding import plain
from distreduce.embedding.optimize import EmbeddingResult, make_objective, minimize_adam, minimize_lbfgs
from distreduce.embedding.plain import EmbeddingProblem, Terms
from distreduce.exceptions import NumericalError
from distreduce.mapping import barycentres
from distreduce.solver.problem import Coupled, SampleOracle, Settings


@dataclass(frozen=True)
class Record:
    """One row of the history: J, its four terms with their weights, the CKA (NaN if unused), and the cost.

    The names are the columns of ``history_`` and part of the file format.
    """

    iteration: int
    objective: float
    supervision: float
    gromov_wasserstein: float
    dependence: float
    projection: float
    cka: float
    n_evaluations: int = 0
    seconds: float = 0.0


def objective(
    oracle: SampleOracle,
    plan: Plan,
    prototypes: Array,
    problem: EmbeddingProblem,
    terms: Terms,
    constant: float,
    *,
    iteration: int,
) -> Record:
    r"""Assemble J at a coupling T and prototypes Z from its four terms.

    .. math::
        J(T, Z) = (1-\alpha)\sum_{ij} L_s\big(y_i, g_j^*(T)\big)\,T_{ij} + \alpha\,GW(Z; T) - \eta\,D(Z, Y)
                + \min_L \Big[\tfrac{\mu}{2}\sum_i h_i\,\big|(W^{-1}TZ)_i - (KL)_i\big|^2
                + \tfrac{\lambda}{2}\,\mathrm{Tr}(L^\top K L)\Big], \qquad W = \mathrm{diag}(h)

    For unit weights h the map's term is the paper's :math:`\tfrac{\mu}{2}\|TZ - KL\|^2`. L is eliminated in closed form
    in :mod:`distreduce.mapping`.

    The oracle evaluates the supervision term, the only one that needs the samples. The `problem` of the Z-step at T
    holds α, η and the targets of the dependence D; `terms` are GW without its `constant`, D, and the map's term, at Z.
    """
    # The four terms, each with its weight.
    supervision = (1 - problem.alpha) * oracle.supervision(plan)
    structure = problem.alpha * (terms.gromov_wasserstein + constant)  # the Z-step leaves the constant out; J needs it
    dependence = -problem.eta * terms.dependence
    total = supervision + structure + dependence + terms.projection
    # The CKA is reported even where η is 0 and it has no part in J.
    cka = np.nan
    if problem.target is not None and problem.dependence == "cka":
        cka = plain.dependence(problem, problem.kernel(prototypes))[0]
    return Record(iteration, total, supervision, structure, dependence, terms.projection, cka)


@dataclass(frozen=True)
class State:
    """A coupling with the prototypes Z (m, p) found for it, and J there."""

    coupled: Coupled
    prototypes: Array
    record: Record
    settled: bool  # the Z-step met its tolerance
    stuck: bool = False  # it ended because its objective became NaN or infinite


class Steps:
    """The T-step and the Z-step. Both raise :class:`NumericalError` on NaN or infinite values."""

    def __init__(self, oracle: SampleOracle, settings: Settings, constant: float | None = None) -> None:
        """`constant` is that of GW, which depends on C alone; it is computed if J is wanted."""
        self.oracle, self.settings = oracle, settings
        self.joint = settings.solver == "joint"
        self.one_to_one = oracle.plan.shape[0] == oracle.plan.shape[1]
        self.constant = oracle.structure_constant(settings.loss) if constant is None else constant
        _require_finite("input affinity", self.constant)
        self._latest: tuple[Coupled, EmbeddingProblem] | None = None  # see _embedding_problem

    def t_step(self, plan: Plan, Z: Array) -> Coupled:
        """Minimize BSFGW over the coupling, in the joint solver with the map's distance to the prototypes as a cost.

        That cost, (μ/2)|z_k − (KL)_i|² with L fixed, bounds the map's term from above and equals it on hard plans.
        """
        settings = self.settings
        # C̄ enters the coupling only through these two matrices.
        f2, h2 = structure_matrices(student_affinity(Z, self._reference(column_mass(plan))), settings.loss)
        fitted = self.oracle.map_fitted(plan, Z) if self.joint else None  # the paper's T-step ignores the map
        _require_finite("affinity of the prototypes", f2, h2)
        _require_finite("out-of-sample map", fitted)
        # By default finer than that of the loop, which compares J between its steps.
        tol = settings.coupling_tol * settings.tol
        found = self.oracle.couple(plan, f2, h2, Z, fitted, alpha=settings.alpha, tol=tol)
        _require_finite("coupling", found.plan.data, found.transported)
        return found

    def z_step(self, coupled: Coupled, start: Array, iteration: int) -> State:
        """Minimize over the prototypes and evaluate J.

        The joint solver eliminates the map. The alternating one leaves it out, then relaxes Z towards it.
        """
        began = time.perf_counter()
        coupled, problem = self._embedding_problem(coupled)
        # R is the map's term, which the alternating solver leaves out here.
        found = self._minimize(problem if self.joint else replace(problem, quadratic=None), start)
        Z, terms = found.prototypes, found.terms
        if not self.joint:
            Z = self._relax(coupled.plan, Z)
            terms, _ = plain.value_and_gradient(problem, Z)  # with the map again, since J includes it
        record = objective(self.oracle, coupled.plan, Z, problem, terms, self.constant, iteration=iteration)
        _require_finite("objective", record.objective, Z)
        record = replace(record, n_evaluations=found.n_evaluations, seconds=time.perf_counter() - began)
        return State(coupled, Z, record, found.converged, found.stuck)

    def _embedding_problem(self, coupled: Coupled) -> tuple[Coupled, EmbeddingProblem]:
        """Return the Z-step of a plan, and the coupling that it was built from.

        It is kept for as long as the plan stays the same, since R costs n³ when m = n. The coupling is returned too,
        because the transported affinity of the same plan may differ by rounding.
        """
        if self._latest is None or not same_plan(coupled.plan, self._latest[0].plan):
            self._latest = coupled, self._build_embedding_problem(coupled)
        return self._latest

    def _build_embedding_problem(self, coupled: Coupled) -> EmbeddingProblem:
        settings = self.settings
        # Ask the samples for all that the Z-step needs, and check it before the optimizer sees it.
        q = column_mass(coupled.plan)
        target, omega = self.oracle.dependence_target(coupled.plan, settings)
        quadratic = self.oracle.map_quadratic(coupled.plan)
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
        """Return the weights r of the Student-t normalizer. Empty prototypes get zero: they neither attract nor repel.

        With ones, as in the paper, the mean of C̄ over pairs is 1/m² and that of the input affinity 1/n. For n > m² the
        term Σ C̄_kl q_k q_l of GW, about n²/m², then outgrows all others, which are about n. r = √n/m makes both means
        equal; where C̄ is the smaller one, r is the paper's.
        """
        if self.one_to_one:
            return mass  # r is the samples' weights: a weight of two acts like that sample twice
        # √n/m; the paper's algorithm keeps ones (decision 18).
        even = float(np.sqrt(mass.sum())) / len(mass) if self.joint else 1.0
        return max(1.0, even) * (mass > 0).astype(float)

    def _minimize(self, problem: EmbeddingProblem, start: Array) -> EmbeddingResult:
        """Minimize with the chosen backend; if its objective is not finite at the start, with plain NumPy."""
        settings = self.settings
        options: dict[str, Any] = {"max_iter": settings.max_inner_iter, "tol": 0.01 * settings.tol}
        minimize: Any = minimize_lbfgs
        if settings.optimizer == "adam":
            minimize, options["learning_rate"] = minimize_adam, settings.learning_rate
        try:
            return minimize(make_objective(problem, settings.backend, self.oracle.workers), problem, start, **options)
        except NumericalError:
            return minimize(make_objective(problem, "numpy"), problem, start, **options)

    def _relax(self, plan: Plan, Z: Array) -> Array:
        """Move Z towards the map as in the paper: (1−β)Z + βKL, or for m < n (I + βTᵀT)⁻¹(Z + βTᵀKL)."""
        fitted, beta = self.oracle.map_fitted(plan, Z), self.settings.beta
        if fitted is None:
            return Z
        if self.one_to_one:
            # Prototype k moves towards the mean of the map over its samples.
            shares = barycentres(sparse.csr_array(plan.T), column_mass(plan))
            return (1 - beta) * Z + beta * (shares @ fitted)
        gram = np.eye(plan.shape[1]) + beta * (plan.T @ plan).toarray()
        return np.linalg.solve(gram, Z + beta * (plan.T @ fitted))


def same_plan(one: Plan, other: Plan) -> bool:
    """Return whether two plans are equal in every bit, including the order of their entries."""
    # Identity first: a frozen coupling then needs no comparison of arrays.
    return one is other or all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def _require_finite(what: str, *values: Any) -> None:
    """Raise NumericalError if any value is NaN or infinite; None is skipped."""
    if not all(value is None or np.isfinite(value).all() for value in values):
        raise NumericalError(f"The {what} is not finite; check the scale of X and y.")
