"""The Z-step's objective and gradient in two compiled passes over half of the pairs, without m×m temporaries.

Pass one sums what the value needs (and the row sums of the embedding kernel), pass two the gradient. Distances are
computed again in pass two: for few dimensions that is cheaper than writing and reading them. The rows are divided
into a fixed number of chunks, so that the result does not depend on the number of threads. Inner loops run over slices
that start behind the diagonal, from zero: Numba then knows that no index is negative, and the loop becomes a vector
loop.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from distreduce._utils.threads import (
    KERNEL,
    MIN_EXPONENT,
    PART,
    SERIAL,
    Workers,
    bounded_exp,
    log_from_one,
    ordered_sum,
)
from distreduce._utils.typing import Array
from distreduce.embedding.plain import EmbeddingProblem, Terms
from distreduce.kernels import RBF, RationalQuadratic

RATIONAL_QUADRATIC, GAUSSIAN, NO_KERNEL = 0, 1, 2  # integers: compiled loops cannot take kernel objects


@njit(**PART)
def _sq_distances_row(k, Zt, d2):  # type: ignore[no-untyped-def]
    """|z_k − z_l|² for l > k."""
    for a in range(Zt.shape[0]):
        here, others = Zt[a, k], Zt[a, k + 1 :]
        if a == 0:  # overwrites what the row before left in the buffer
            for l in range(d2.shape[0]):
                t = here - others[l]
                d2[l] = t * t
        else:
            for l in range(d2.shape[0]):
                t = here - others[l]
                d2[l] += t * t


@njit(**PART)
def _kernel_row(kind, shape, scale, d2, u):  # type: ignore[no-untyped-def]
    """u = 1 − K of the row, K = (1 + d²/(2 a l²))^−a or exp(−d²/(2 l²)), with scale = 1/(2 a l²) or 1/(2 l²).

    u instead of K: when the prototypes lie close together K is one to all its digits, and centring would leave none.
    """
    if kind == RATIONAL_QUADRATIC and shape == 1.0:  # the default kernel: no power, and no cancellation near 0
        for l in range(d2.shape[0]):
            t = scale * d2[l]
            u[l] = t / (1.0 + t)
    elif kind == RATIONAL_QUADRATIC:
        for l in range(d2.shape[0]):
            u[l] = 1.0 - (1.0 + scale * d2[l]) ** (-shape)
    else:
        for l in range(d2.shape[0]):
            # Clipped to the range in which bounded_exp is valid.
            u[l] = 1.0 - bounded_exp(max(-scale * d2[l], MIN_EXPONENT))


@njit(**PART)
def _structure_row(kl, d2, q, r, A):  # type: ignore[no-untyped-def]
    """Σ_l q_l w_kl (w² for the square loss), Σ_l r_l w_kl and Σ_l A_kl log(1/w_kl) (or A_kl w_kl)."""
    carried = normaliser = fit = 0.0
    for l in range(d2.shape[0]):
        w = 1.0 / (1.0 + d2[l])
        normaliser += r[l] * w
        carried += q[l] * (w if kl else w * w)
    if kl:
        for l in range(d2.shape[0]):
            fit += A[l] * log_from_one(1.0 + d2[l])
    else:
        for l in range(d2.shape[0]):
            fit += A[l] / (1.0 + d2[l])
    return carried, normaliser, fit


@njit(**PART)
def _dependence_row(u, B, omega, omega_k, rho):  # type: ignore[no-untyped-def]
    """Σ_l B_kl u_kl, Σ_l ω_l u_kl² and Σ_l ω_l u_kl; adds ω_k u_kl to the row sums of the others."""
    aligned = squared = row = 0.0
    for l in range(u.shape[0]):
        weighted = omega[l] * u[l]
        aligned += B[l] * u[l]
        squared += weighted * u[l]
        row += weighted
        rho[l] += omega_k * u[l]
    return aligned, squared, row


@njit(**KERNEL)
def value_pass(chunk, n_chunks, Zt, q, r, A, kl, kind, shape, scale, B, omega):  # type: ignore[no-untyped-def]
    """Sums over pairs k < l of this chunk's rows: carried, S, fit, ⟨u,B⟩, Σωω u², and the row sums of u = 1 − K."""
    m = Zt.shape[1]
    d2_buffer, u_buffer = np.empty(m), np.empty(m)
    sums, rho = np.zeros(5), np.zeros(m)
    for k in range(chunk, m, n_chunks):  # every n_chunks-th row: rows get shorter, so blocks of rows would be uneven
        d2, u = d2_buffer[: m - k - 1], u_buffer[: m - k - 1]  # pairs l > k only: all matrices are symmetric
        _sq_distances_row(k, Zt, d2)
        carried, normaliser, fit = _structure_row(kl, d2, q[k + 1 :], r[k + 1 :], A[k, k + 1 :])
        sums[0] += q[k] * carried
        sums[1] += r[k] * normaliser
        sums[2] += fit
        if kind != NO_KERNEL:  # DistR, and SDR with η = 0, have no dependence
            _kernel_row(kind, shape, scale, d2, u)
            aligned, squared, row = _dependence_row(u, B[k, k + 1 :], omega[k + 1 :], omega[k], rho[k + 1 :])
            sums[3] += aligned
            sums[4] += omega[k] * squared
            rho[k] += row  # _dependence_row has added the other half, to the row sums of l
    return sums, rho


@njit(**PART)
def _structure_slope_row(kl, d2, q, r, A, q_k, r_k, by_A, g):  # type: ignore[no-untyped-def]
    """g_l = dGW/d|z_k − z_l|²."""
    if kl:
        for l in range(d2.shape[0]):
            w = 1.0 / (1.0 + d2[l])
            g[l] = w * (by_A * A[l] - w * (q_k * q[l] + r_k * r[l]))
    else:
        for l in range(d2.shape[0]):
            w = 1.0 / (1.0 + d2[l])
            g[l] = w * w * (by_A * A[l] - w * q_k * q[l] - r_k * r[l])


@njit(**PART)
def _dependence_slope_row(kind, shape, scale, d2, u, B, omega, rho, by_B, by_K, centre, g):  # type: ignore[no-untyped-def]
    """g_l += dD/dK_kl · dK_kl/d|z_k − z_l|²; the centred kernel is −(u_kl − ρ_k − ρ_l + τ)."""
    if kind == RATIONAL_QUADRATIC:
        for l in range(d2.shape[0]):
            slope = -shape * scale * (1.0 - u[l]) / (1.0 + scale * d2[l])  # dK/d|z_k − z_l|²
            g[l] += slope * (by_B * B[l] - by_K * omega[l] * (u[l] + centre - rho[l]))
    else:
        for l in range(d2.shape[0]):
            g[l] -= scale * (1.0 - u[l]) * (by_B * B[l] - by_K * omega[l] * (u[l] + centre - rho[l]))


@njit(**PART)
def _pull_row(g, here, others, gradient):  # type: ignore[no-untyped-def]
    """Σ_l g_l (z_k − z_l) for one dimension; the opposite is added to the others."""
    total = 0.0
    for l in range(g.shape[0]):
        t = g[l] * (here - others[l])
        total += t
        gradient[l] -= t
    return total


@njit(**KERNEL)
def gradient_pass(  # type: ignore[no-untyped-def]
    chunk, n_chunks, Zt, q, r, A, kl, kind, shape, scale, B, omega, by_q, by_r, by_A, by_B, by_K, rho, tau
):
    """Σ_l G_kl (z_k − z_l) over the pairs of this chunk's rows, G = dF/d|z_k − z_l|² with the given coefficients."""
    p, m = Zt.shape
    d2_buffer, u_buffer, g_buffer = np.empty(m), np.empty(m), np.empty(m)
    gradient = np.zeros((p, m))
    for k in range(chunk, m, n_chunks):
        d2, u, g = d2_buffer[: m - k - 1], u_buffer[: m - k - 1], g_buffer[: m - k - 1]
        _sq_distances_row(k, Zt, d2)  # computed again: cheaper than keeping m² of them
        # The structure sets g, then the dependence adds to it.
        _structure_slope_row(kl, d2, q[k + 1 :], r[k + 1 :], A[k, k + 1 :], by_q * q[k], by_r * r[k], by_A, g)
        if kind != NO_KERNEL:
            _kernel_row(kind, shape, scale, d2, u)
            _dependence_slope_row(
                kind, shape, scale, d2, u, B[k, k + 1 :], omega[k + 1 :], rho[k + 1 :],
                by_B, by_K * omega[k], tau - rho[k], g,
            )  # fmt: skip
        for a in range(p):
            gradient[a, k] += _pull_row(g, Zt[a, k], Zt[a, k + 1 :], gradient[a, k + 1 :])
    return gradient


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
        none = np.zeros((0, 0))  # never read without a kernel, but Numba needs an array
        self._B = problem.target if problem.target is not None and problem.supervised else none
        self._omega = problem.target_weights if problem.target_weights is not None else np.zeros(m)
        # The loops visit pairs k < l; these complete their sums.
        self._diag_A, self._sum_A = float(np.trace(problem.transported)), float(problem.transported.sum())
        structure = (problem.mass, problem.reference, problem.transported, problem.loss == "kl")
        # Of both loops, after the prototypes.
        self._arguments = (*structure, *_kernel_constants(problem), self._B, self._omega)

    def __call__(self, Z: Array) -> tuple[Terms, Array]:
        # Transposed: the inner loops run over prototypes, so those must be contiguous.
        problem, arguments = self.problem, (np.ascontiguousarray(Z.T), *self._arguments)
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
            RZ = problem.quadratic @ Z
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
        if not self.problem.supervised:
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
