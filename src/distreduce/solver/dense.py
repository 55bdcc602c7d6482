"""The sample side with n×n arrays: affinity, plan and map of up to some ten thousand samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.distances import sq_distances
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.coupling import CouplingProblem, solve_balanced, solve_semirelaxed, structure_constant
from distreduce.coupling.plan import affinity_times_plan
from distreduce.embedding.dependence_target import TargetForm, dependence_target
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.kernels import Kernel
from distreduce.losses import BregmanLoss, SquaredLoss
from distreduce.mapping import MapRegression, barycentres
from distreduce.mapping.landmarks import Memory
from distreduce.solver.oracle import Coupled


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
    projection : MapRegression or None
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
    projection: MapRegression | None = None
    balanced: bool = False


class DenseSide:
    """:class:`distreduce.solver.oracle.SampleSide` of a problem in memory."""

    def __init__(self, problem: ReductionProblem, workers: Workers = SERIAL) -> None:
        self.problem, self.workers = problem, workers
        self.balanced = problem.balanced

    def structure_constant(self, loss: InnerLoss) -> float:
        """The part of GW that no coupling changes."""
        return structure_constant(self.problem.affinity, self.problem.weights, loss)

    def transported(self, plan: sparse.csr_array) -> Array:
        """TᵀCT."""
        return _carried(plan, affinity_times_plan(self.problem.affinity, plan, self.workers))

    def supervision(self, plan: sparse.csr_array) -> float:
        """Σ_ij L_s(y_i, g_j*(T)) T_ij."""
        targets, loss = self.problem.targets, self.problem.loss
        if targets is None:
            return 0.0
        return float(plan.multiply(loss.cost(targets, loss.prototype_targets(plan, targets))).sum())

    def dependence_target(
        self, plan: sparse.csr_array, form: TargetForm, dependence: Dependence
    ) -> tuple[Array | None, Array | None]:
        """B and ω of the dependence."""
        targets, kernel = self.problem.kernel_targets, self.problem.target_kernel
        if targets is None or kernel is None:
            return None, None
        return dependence_target(plan, targets, kernel, form, dependence)

    def map_quadratic(self, plan: sparse.csr_array) -> Array | None:
        """R, what is left of the map after its elimination."""
        projection = self.problem.projection
        return None if projection is None else projection.quadratic(plan)

    def map_fitted(self, plan: sparse.csr_array, embedding: Array) -> Array | None:
        """(KL)_i, where the map puts the samples."""
        projection = self.problem.projection
        if projection is None:
            return None
        F = barycentres(plan, self.problem.weights) @ embedding
        return projection.fitted(F, projection.coefficients(F))

    def couple(
        self,
        plan: sparse.csr_array,
        f2: Array,
        h2: Array,
        embedding: Array,
        fitted: Array | None,
        *,
        alpha: float,
        tol: float,
    ) -> Coupled:
        """The T-step from `plan`."""
        problem, linear = self.problem, None
        if fitted is not None and problem.projection is not None:
            linear = 0.5 * problem.projection.mu * sq_distances(fitted, embedding)
        coupling = CouplingProblem(
            problem.affinity,
            problem.weights,
            f2,
            h2,
            targets=problem.targets,
            loss=problem.loss,
            alpha=alpha,
            linear=linear,
        )
        solver = solve_balanced if self.balanced else solve_semirelaxed
        found = solver(coupling, plan, tol=tol, workers=self.workers)
        return Coupled(found.plan, _carried(found.plan, found.affinity_plan))

    def memory(self) -> Memory | None:
        """Nothing: every answer is computed afresh."""
        return None

    def recall(self, memory: Memory | None) -> None:
        """Nothing to recall."""


def _carried(plan: sparse.csr_array, affinity_plan: Array) -> Array:
    """Tᵀ(CT), symmetric but for rounding, made exactly so."""
    transported = plan.T @ affinity_plan
    return np.asarray(0.5 * (transported + transported.T))
