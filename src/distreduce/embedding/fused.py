"""The Z-step's objective and gradient in two passes over half of the pairs, with no m×m temporary.

Pass one sums what the value needs (and the row sums of the embedding kernel), pass two the gradient. Distances are
computed again in pass two: for few dimensions that is cheaper than to write and read them. The rows are dealt to a fixed
number of chunks, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.kernels import RBF, RationalQuadratic
from distreduce.parallel import SERIAL, Workers

Array = NDArray[np.float64]

RATIONAL_QUADRATIC, GAUSSIAN, NO_KERNEL = 0, 1, 2
# Below this many prototypes one chunk is faster than handing work to threads.
SMALL = 160
CHUNKS = 8
_FAST = {"reassoc", "contract", "arcp", "nsz"}


# Inner loops run over slices that start behind the diagonal, from zero: Numba then knows that no index is negative, and
# the loop becomes a vector loop.


@njit(nogil=True, cache=True, fastmath=_FAST)
def _sq_distances_row(k, Zt, d2):  # type: ignore[no-untyped-def]
    """|z_k − z_l|² for l > k."""
    for a in range(Zt.shape[0]):
        here, others = Zt[a, k], Zt[a, k + 1 :]
        if a == 0:
            for l in range(d2.shape[0]):
                t = here - others[l]
                d2[l] = t * t
        else:
            for l in range(d2.shape[0]):
                t = here - others[l]
                d2[l] += t * t


@njit(nogil=True, cache=True, fastmath=_FAST)
def _kernel_row(kind, shape, scale, d2, kz):  # type: ignore[no-untyped-def]
    """Embedding kernel of the row: (1 + d²/(2 a l²))^−a or exp(−d²/(2 l²)), with scale = 1/(2 a l²) or 1/(2 l²)."""
    if kind == RATIONAL_QUADRATIC and shape == 1.0:
        for l in range(d2.shape[0]):
            kz[l] = 1.0 / (1.0 + scale * d2[l])
    elif kind == RATIONAL_QUADRATIC:
        for l in range(d2.shape[0]):
            kz[l] = (1.0 + scale * d2[l]) ** (-shape)
    else:
        for l in range(d2.shape[0]):
            kz[l] = math.exp(-scale * d2[l])


@njit(nogil=True, cache=True, fastmath=_FAST)
def _structure_row(kl, d2, q, r, A):  # type: ignore[no-untyped-def]
    """Σ_l q_l w_kl (w² for the square loss), Σ_l r_l w_kl and Σ_l A_kl log(1/w_kl) (or A_kl w_kl)."""
    carried = normaliser = fit = 0.0
    for l in range(d2.shape[0]):
        w = 1.0 / (1.0 + d2[l])
        normaliser += r[l] * w
        carried += q[l] * (w if kl else w * w)
    if kl:
        for l in range(d2.shape[0]):
            fit += A[l] * math.log(1.0 + d2[l])
    else:
        for l in range(d2.shape[0]):
            fit += A[l] / (1.0 + d2[l])
    return carried, normaliser, fit


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dependence_row(kz, B, omega, omega_k, rho):  # type: ignore[no-untyped-def]
    """Σ_l B_kl K_kl, Σ_l ω_l u_kl² and Σ_l ω_l u_kl, u = 1 − K; adds ω_k u_kl to the row sums of the others.

    u instead of K keeps the digits of the centred norm when the prototypes lie close together and K is nearly one.
    """
    aligned = squared = row = 0.0
    for l in range(kz.shape[0]):
        u = 1.0 - kz[l]
        weighted = omega[l] * u
        aligned += B[l] * kz[l]
        squared += weighted * u
        row += weighted
        rho[l] += omega_k * u
    return aligned, squared, row


@njit(nogil=True, cache=True, fastmath=_FAST)
def _value_pass(chunk, n_chunks, Zt, q, r, A, kl, kind, shape, scale, B, omega):  # type: ignore[no-untyped-def]
    """Sums over pairs k < l of this chunk's rows: carried, S, fit, ⟨K,B⟩, Σωω u², and the row sums of u = 1 − K."""
    m = Zt.shape[1]
    d2_buffer, kz_buffer = np.empty(m), np.empty(m)
    sums, rho = np.zeros(5), np.zeros(m)
    for k in range(chunk, m, n_chunks):
        d2, kz = d2_buffer[: m - k - 1], kz_buffer[: m - k - 1]
        _sq_distances_row(k, Zt, d2)
        carried, normaliser, fit = _structure_row(kl, d2, q[k + 1 :], r[k + 1 :], A[k, k + 1 :])
        sums[0] += q[k] * carried
        sums[1] += r[k] * normaliser
        sums[2] += fit
        if kind != NO_KERNEL:
            _kernel_row(kind, shape, scale, d2, kz)
            aligned, squared, row = _dependence_row(kz, B[k, k + 1 :], omega[k + 1 :], omega[k], rho[k + 1 :])
            sums[3] += aligned
            sums[4] += omega[k] * squared
            rho[k] += row
    return sums, rho


@njit(nogil=True, cache=True, fastmath=_FAST)
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


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dependence_slope_row(kind, shape, scale, d2, kz, B, omega, rho, by_B, by_K, centre, g):  # type: ignore[no-untyped-def]
    """g_l += dD/dK_kl · dK_kl/d|z_k − z_l|²."""
    if kind == RATIONAL_QUADRATIC:
        for l in range(d2.shape[0]):
            slope = -shape * scale * kz[l] / (1.0 + scale * d2[l])
            g[l] += slope * (by_B * B[l] + by_K * omega[l] * (kz[l] + centre - rho[l]))
    else:
        for l in range(d2.shape[0]):
            g[l] -= scale * kz[l] * (by_B * B[l] + by_K * omega[l] * (kz[l] + centre - rho[l]))


@njit(nogil=True, cache=True, fastmath=_FAST)
def _pull_row(g, here, others, gradient):  # type: ignore[no-untyped-def]
    """Σ_l g_l (z_k − z_l) for one dimension; the opposite is added to the others."""
    total = 0.0
    for l in range(g.shape[0]):
        t = g[l] * (here - others[l])
        total += t
        gradient[l] -= t
    return total


@njit(nogil=True, cache=True, fastmath=_FAST)
def _gradient_pass(
    chunk, n_chunks, Zt, q, r, A, kl, kind, shape, scale, B, omega, by_q, by_r, by_A, by_B, by_K, rho, tau
):  # type: ignore[no-untyped-def]
    """Σ_l G_kl (z_k − z_l) over the pairs of this chunk's rows, G = dF/d|z_k − z_l|² with the given coefficients."""
    p, m = Zt.shape
    d2_buffer, kz_buffer, g_buffer = np.empty(m), np.empty(m), np.empty(m)
    gradient = np.zeros((p, m))
    for k in range(chunk, m, n_chunks):
        d2, kz, g = d2_buffer[: m - k - 1], kz_buffer[: m - k - 1], g_buffer[: m - k - 1]
        _sq_distances_row(k, Zt, d2)
        _structure_slope_row(kl, d2, q[k + 1 :], r[k + 1 :], A[k, k + 1 :], by_q * q[k], by_r * r[k], by_A, g)
        if kind != NO_KERNEL:
            _kernel_row(kind, shape, scale, d2, kz)
            _dependence_slope_row(
                kind, shape, scale, d2, kz, B[k, k + 1 :], omega[k + 1 :], rho[k + 1 :],
                by_B, by_K * omega[k], tau - rho[k], g,
            )  # fmt: skip
        for a in range(p):
            gradient[a, k] += _pull_row(g, Zt[a, k], Zt[a, k + 1 :], gradient[a, k + 1 :])
    return gradient


def _add(parts: list[Array]) -> Array:
    """Sum in the order of the chunks: the same bits for any number of threads."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def supports(problem: EmbeddingProblem) -> bool:
    """Whether the embedding kernel is one that the loops know."""
    return not problem.supervised or isinstance(problem.kernel, RationalQuadratic | RBF)


def _kernel_constants(problem: EmbeddingProblem) -> tuple[int, float, float]:
    kernel = problem.kernel
    if not problem.supervised:
        return NO_KERNEL, 1.0, 1.0
    if isinstance(kernel, RationalQuadratic):
        return RATIONAL_QUADRATIC, kernel.alpha, 1.0 / (2 * kernel.alpha * kernel.length_scale**2)
    return GAUSSIAN, 1.0, 1.0 / (2 * float(kernel.length_scale) ** 2)  # type: ignore[attr-defined]


class FusedObjective:
    """``objective(Z) -> (Terms, gradient)`` for one problem; equal to :func:`distreduce.embedding.plain.value_and_gradient`."""

    def __init__(self, problem: EmbeddingProblem, workers: Workers = SERIAL) -> None:
        self.problem = problem
        self.workers = workers
        m = len(problem.mass)
        self._chunks = 1 if m < SMALL else CHUNKS
        self._kind, self._shape, self._scale = _kernel_constants(problem)
        none = np.zeros((0, 0))
        self._B = problem.target if problem.target is not None and problem.supervised else none
        self._omega = problem.target_weights if problem.target_weights is not None else np.zeros(m)
        self._diag_A, self._sum_A = float(np.trace(problem.transported)), float(problem.transported.sum())

    def _loop_arguments(self, Zt: Array) -> tuple[object, ...]:
        p = self.problem
        return (Zt, p.mass, p.reference, p.transported, p.loss == "kl", self._kind, self._shape, self._scale, self._B,
                self._omega)  # fmt: skip

    def __call__(self, Z: Array) -> tuple[Terms, Array]:
        problem, Zt = self.problem, np.ascontiguousarray(Z.T)
        arguments = self._loop_arguments(Zt)
        parts = self.workers.run(_value_pass, self._chunks, *arguments)
        sums, rho = _add([part[0] for part in parts]), _add([part[1] for part in parts])
        structure, by_q, by_r, by_A = self._structure(sums)
        aligned, by_B, by_K, rho, tau = self._dependence(sums, rho)
        alpha, eta = problem.alpha, problem.eta
        gradient = (
            4
            * _add(
                self.workers.run(
                    _gradient_pass,
                    self._chunks,
                    *arguments,
                    alpha * by_q,
                    alpha * by_r,
                    alpha * by_A,
                    -eta * by_B,
                    -eta * by_K,
                    rho,
                    tau,
                )  # fmt: skip
            ).T
        )
        projected = 0.0
        if problem.quadratic is not None:
            RZ = problem.quadratic @ Z
            projected = 0.5 * float((Z * RZ).sum())
            gradient = gradient + RZ
        return Terms(structure, aligned, projected), gradient

    def _structure(self, sums: Array) -> tuple[float, float, float, float]:
        """GW's value from the sums over half of the pairs (the diagonal has w = 1), and the coefficients of its slope."""
        problem = self.problem
        carried = 2 * sums[0] + float(problem.mass @ problem.mass)
        S = 2 * sums[1] + float(problem.reference @ problem.reference)
        if problem.loss == "kl":
            value = carried / S + 2 * sums[2] + self._sum_A * math.log(S)
            return value, 1 / S, self._sum_A / S - carried / S**2, 1.0
        fit = 2 * sums[2] + self._diag_A
        return carried / S**2 - 2 * fit / S, 2 / S**2, 2 * fit / S**2 - 2 * carried / S**3, 2 / S

    def _dependence(self, sums: Array, rho: Array) -> tuple[float, float, float, Array, float]:
        """The dependence's value and the coefficients of its slope, see :func:`distreduce.embedding.plain.dependence`."""
        zero = np.zeros_like(rho)
        if self._kind == NO_KERNEL:
            return 0.0, 0.0, 0.0, zero, 0.0
        omega, mass = self._omega, float(self._omega.sum())
        numerator = 2 * sums[3] + float(np.trace(self._B))
        if self.problem.dependence == "hsic":
            return numerator, 1.0, 0.0, zero, 0.0
        row = rho / mass
        tau = float(omega @ row) / mass
        if self.problem.dependence == "cka":
            square = 2 * sums[4] + mass * mass * tau * tau - 2 * mass * float(omega @ row**2)
            rho, tau = 1.0 - row, 1.0 - tau  # from u = 1 − K back to K
        else:
            square = mass * mass * (1.0 - 2.0 * tau) + 2 * sums[4]
            rho, tau = zero, 0.0
        norm = math.sqrt(max(square, 0.0))
        if norm <= 1e-14 * mass:
            return 0.0, 0.0, 0.0, zero, 0.0
        return numerator / norm, 1 / norm, -numerator / norm**3, rho, tau
