"""The Z-step's objective and gradient in two passes over half of the pairs, without m×m temporaries.

Pass one sums what the value needs (and the row sums of the embedding kernel), pass two the gradient. Distances are
computed again in pass two: for few dimensions that is cheaper than writing and reading them. The rows are divided
into a fixed number of chunks, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from distreduce._utils.numba import ordered_sum
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.embedding._loops import (
    GAUSSIAN,
    NO_KERNEL,
    RATIONAL_QUADRATIC,
    gradient_pass,
    quadratic_pass,
    value_pass,
)
from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.kernels import RBF, RationalQuadratic

# Below this many prototypes one chunk is faster than handing work to threads.
SMALL = 700
CHUNKS = 8


def supports(problem: EmbeddingProblem) -> bool:
    """Whether the embedding kernel is one that the loops know."""
    return not problem.supervised or isinstance(problem.kernel, RationalQuadratic | RBF)


def _kernel_constants(problem: EmbeddingProblem) -> tuple[int, float, float]:
    kernel = problem.kernel
    if not problem.supervised:
        return NO_KERNEL, 1.0, 1.0
    if isinstance(kernel, RationalQuadratic):
        return RATIONAL_QUADRATIC, kernel.alpha, 1.0 / (2 * kernel.alpha * kernel.length_scale**2)
    assert isinstance(kernel, RBF)
    return GAUSSIAN, 1.0, 1.0 / (2 * float(kernel.length_scale) ** 2)  # type: ignore[arg-type]


class FusedObjective:
    """``objective(Z) -> (Terms, gradient)``; equal to :func:`distreduce.embedding.plain.value_and_gradient`."""

    def __init__(self, problem: EmbeddingProblem, workers: Workers = SERIAL) -> None:
        self.problem = problem
        self.workers = workers
        m = len(problem.mass)
        self._chunks = 1 if m < SMALL else CHUNKS
        self._kind, self._shape, self._scale = _kernel_constants(problem)
        none = np.zeros((0, 0))  # never read without a kernel, but Numba needs an array
        self._B = problem.target if problem.target is not None and problem.supervised else none
        self._omega = problem.target_weights if problem.target_weights is not None else np.zeros(m)
        # The loops visit pairs k < l; these complete their sums.
        self._diag_A, self._sum_A = float(np.trace(problem.transported)), float(problem.transported.sum())

    def _loop_arguments(self, Zt: Array) -> tuple[object, ...]:
        p = self.problem
        kernel = (self._kind, self._shape, self._scale)
        return Zt, p.mass, p.reference, p.transported, p.loss == "kl", *kernel, self._B, self._omega

    def __call__(self, Z: Array) -> tuple[Terms, Array]:
        # Transposed: the inner loops run over prototypes, so those must be contiguous.
        problem, Zt = self.problem, np.ascontiguousarray(Z.T)
        arguments = self._loop_arguments(Zt)
        # Pass one: the sums that the value needs.
        parts = self.workers.run(value_pass, self._chunks, *arguments)
        sums, rho = ordered_sum([part[0] for part in parts]), ordered_sum([part[1] for part in parts])
        structure, by_q, by_r, by_A = self._structure(sums)
        aligned, by_B, by_K, rho, tau = self._dependence(sums, rho)
        # Pass two: the gradient; its coefficients are functions of the sums above.
        alpha, eta = problem.alpha, problem.eta
        slopes = (alpha * by_q, alpha * by_r, alpha * by_A, -eta * by_B, -eta * by_K, rho, tau)
        # 4: each pair occurs twice in the sum, and |z_k − z_l|² has the derivative 2 (z_k − z_l).
        gradient = 4 * ordered_sum(self.workers.run(gradient_pass, self._chunks, *arguments, *slopes)).T
        # The map's term, ½ Tr(ZᵀRZ).
        projected = 0.0
        if problem.quadratic is not None:
            RZ = ordered_sum(self.workers.run(quadratic_pass, self._chunks, Zt, problem.quadratic)).T
            projected = 0.5 * float((Z * RZ).sum())
            gradient = gradient + RZ
        return Terms(structure, aligned, projected), gradient

    def _structure(self, sums: Array) -> tuple[float, float, float, float]:
        """GW's value from the sums over half of the pairs (on the diagonal w = 1), and coefficients of its slope."""
        problem = self.problem
        carried = 2 * sums[0] + float(problem.mass @ problem.mass)
        S = 2 * sums[1] + float(problem.reference @ problem.reference)
        if problem.loss == "kl":
            value = carried / S + 2 * sums[2] + self._sum_A * math.log(S)
            return value, 1 / S, self._sum_A / S - carried / S**2, 1.0
        fit = 2 * sums[2] + self._diag_A
        return carried / S**2 - 2 * fit / S, 2 / S**2, 2 * fit / S**2 - 2 * carried / S**3, 2 / S

    def _dependence(self, sums: Array, rho: Array) -> tuple[float, float, float, Array, float]:
        """The dependence's value and the coefficients of its slope, as in :func:`plain.dependence`."""
        zero = np.zeros_like(rho)
        if self._kind == NO_KERNEL:
            return 0.0, 0.0, 0.0, zero, 0.0
        omega, mass = self._omega, float(self._omega.sum())
        # ⟨K, B⟩ = ΣB − ⟨u, B⟩, and a centred B sums to zero (but for rounding, which can be larger than u).
        total = float(self._B.sum()) if self.problem.dependence == "cka_uncentered" else 0.0
        numerator = total - 2 * sums[3]
        if self.problem.dependence == "hsic":
            return numerator, 1.0, 0.0, zero, 0.0
        row = rho / mass
        tau = float(omega @ row) / mass
        if self.problem.dependence == "cka":
            # ‖HKH‖² from u = 1 − K, which differs from −K by a constant that centring removes.
            square = 2 * sums[4] + mass * mass * tau * tau - 2 * mass * float(omega @ row**2)
            rho = row
        else:
            square = mass * mass * (1.0 - 2.0 * tau) + 2 * sums[4]  # Σ ωω (1 − u)²
            rho, tau = zero, -1.0  # not centred: K itself, −(u − 1)
        norm = math.sqrt(max(square, 0.0))
        if norm <= 1e-14 * mass:  # all prototypes in one place, as in plain.dependence
            return 0.0, 0.0, 0.0, zero, 0.0
        return numerator / norm, 1 / norm, -numerator / norm**3, rho, tau
