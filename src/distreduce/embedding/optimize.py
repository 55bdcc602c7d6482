"""The Z-step: initial prototypes, which implementation of its objective to use, and its optimizers, L-BFGS and Adam."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.utils import check_random_state

from distreduce._utils.numerics import Adam, BestSoFar, to_dense
from distreduce._utils.threads import SERIAL, Workers, too_few_to_compile
from distreduce._utils.typing import Array
from distreduce.embedding import plain
from distreduce.embedding.fused import FusedObjective, supports
from distreduce.embedding.plain import EmbeddingProblem, Terms
from distreduce.exceptions import InvalidInputError, NumericalError

# Student-t affinities are flat near the origin: from a small start classes separate without crossing one another
# (silhouette on SNARE-seq, m = 100: 80 with 0.1, 72 with 1).
START_SCALE = 0.1
DENSE_EIGENVECTORS = 1500  # up to this many prototypes LAPACK's solver is used


def initial_prototypes(
    inputs: Any, plan: sparse.csr_array, n_components: int, random_state: RandomState, *, precomputed: bool
) -> Array:
    """Return the principal coordinates (m, p) of the prototypes' means, weighted by mass, with spread `START_SCALE`.

    `inputs` are features (n, d), or distances (n, n) if `precomputed`. Directions in which the prototypes do not differ
    start from noise: prototypes that are flat in a direction have no gradient there.
    """
    mass = np.asarray(plan.sum(axis=0)).ravel()
    # Empty prototypes get a row of zeros instead of NaN.
    shares = sparse.csr_array(sparse.diags_array(1.0 / np.where(mass > 0, mass, 1.0)) @ plan.T)
    if precomputed:  # classical scaling: inner products are −½ D², centred in `_leading_scores`
        scaled = inputs / (inputs.max() or 1.0)
        return _placed(-0.5 * np.asarray(shares @ (shares @ scaled**2).T), mass, n_components, random_state)
    return prototypes_from_means(shares @ inputs, mass, n_components, random_state)


def prototypes_from_means(means: Any, mass: Array, n_components: int, random_state: RandomState) -> Array:
    """Return the same from the prototypes' mean features (m, d), dense or sparse, and their masses (m,)."""
    means = to_dense(means, np.float64)
    means = means - mass @ means / mass.sum()
    means /= np.abs(means).max() or 1.0  # against overflow
    return _placed(means @ means.T, mass, n_components, random_state)


def _placed(gram: Array, mass: Array, n_components: int, random_state: RandomState) -> Array:
    """Return the leading principal coordinates, scaled, with noise where the prototypes do not differ."""
    scores = _leading_scores(gram, mass, n_components)
    spread = float(np.sqrt((mass @ scores**2).max() / mass.sum()))
    noise = random_state.standard_normal(scores.shape)
    if spread == 0.0:  # all prototypes have the same mean
        return START_SCALE * noise
    scores *= START_SCALE / spread
    flat = np.abs(scores).max(axis=0) <= 1e-6 * START_SCALE
    scores[:, flat] = 0.1 * START_SCALE * noise[:, flat]
    return scores


def _leading_scores(gram: Array, mass: Array, n_components: int) -> Array:
    """Leading principal coordinates of the weighted points; missing ones are zero, signs are fixed by the largest."""
    m, root = len(mass), np.sqrt(mass)
    # Centre at the mean of the prototypes, weighted by mass.
    row = gram @ mass / mass.sum()
    centred = gram - row[:, None] - row[None, :] + mass @ row / mass.sum()
    # Leading eigenvectors of the weighted Gram matrix; eigh sorts upwards.
    k = min(n_components, m)
    values, vectors = _leading_eigenvectors(root[:, None] * centred * root, k)
    values, vectors = values[::-1], vectors[:, ::-1]
    # Smaller ones are rounding, or negative values from distances that are not Euclidean.
    positive = np.where(values > 1e-12 * max(values[0], 0.0), values, 0.0)
    scores = np.zeros((m, n_components))  # columns beyond m stay zero, and are flat
    scores[:, :k] = vectors * np.sqrt(np.maximum(positive, 0.0)) / np.where(root > 0, root, 1.0)[:, None]
    # The sign of an eigenvector is arbitrary: make its largest entry positive, for reproducible starts.
    peaks = scores[np.abs(scores).argmax(axis=0), np.arange(n_components)]
    return scores * np.where(peaks < 0, -1.0, 1.0)


def _leading_eigenvectors(A: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, ascending, and their eigenvectors; by Lanczos' method where that is faster."""
    m = len(A)
    if m > DENSE_EIGENVECTORS and A.any():
        start = check_random_state(0).standard_normal(m)  # not constant: that direction has been centred away
        with suppress(ArpackError):
            values, vectors = eigsh(A, k, which="LA", v0=start)
            return values, vectors
    return eigh(A, subset_by_index=(m - k, m - 1))


Objective = Callable[[Array], tuple[Terms, Array]]
# How often Adam returns to its best point with half the step before it ends there.
MOST_HALVINGS = 10


@dataclass(frozen=True)
class EmbeddingResult:
    """Result of a Z-step: the Z (m, p) with the smallest F seen, and F there."""

    prototypes: Array
    terms: Terms
    value: float
    n_evaluations: int
    converged: bool
    stuck: bool  # F was NaN or infinite wherever the optimizer went next, however small the step


def make_objective(problem: EmbeddingProblem, backend: str = "auto", workers: Workers = SERIAL) -> Objective:
    """Return ``objective(Z) -> (Terms, gradient)``.

    "auto" takes fused loops if they support the kernel and compiling them pays, else NumPy.
    """
    name, _, device = backend.partition(":")  # "torch:cuda:0" names a device
    if name == "torch":
        from distreduce.embedding.torch import TorchObjective  # optional dependency

        return TorchObjective(problem, device or None)
    small = too_few_to_compile(max(len(problem.mass), int(problem.mass.sum())))  # of many samples, all else is compiled
    if backend == "numpy" or (backend == "auto" and (small or not supports(problem))):
        return partial(plain.value_and_gradient, problem)
    if not supports(problem):  # "numba" was asked for by name, so do not fall back silently
        raise InvalidInputError(f"backend='numba' does not support embedding_kernel={problem.kernel!r}; use 'auto'.")
    return FusedObjective(problem, workers)


class _BestPrototypes(BestSoFar):
    """F in the variables `scale` (m, 1) times Z; remembers the best Z and its terms."""

    def __init__(self, objective: Objective, problem: EmbeddingProblem, scale: Array) -> None:
        def evaluate(flat: Array) -> tuple[float, Array, Terms]:
            terms, gradient = objective(self._unscale(flat))
            return terms.total(problem), (gradient / scale).ravel(), terms

        super().__init__(evaluate)
        self.scale = scale

    def result(self, converged: bool, *, stuck: bool) -> EmbeddingResult:
        """Return the best Z, and how the optimizer ended."""
        if self.point is None:
            raise NumericalError("The embedding's objective is not finite at its start; check the scale of X and y.")
        Z = self._unscale(self.point)
        return EmbeddingResult(Z, self.kept[0], self.value, self.n_evaluations, converged and not stuck, stuck)

    def _unscale(self, flat: Array) -> Array:
        return flat.reshape(len(self.scale), -1) / self.scale


def minimize_lbfgs(
    objective: Objective, problem: EmbeddingProblem, start: Array, *, max_iter: int = 300, tol: float = 1e-7
) -> EmbeddingResult:
    r"""Minimize F by L-BFGS in the variables :math:`\sqrt{r_k}\,z_k`, where weight two moves like two of weight one.

    Stops when F decreases by less than `tol`, relative to F.
    """
    # Empty prototypes have r = 0, by which the gradient cannot be divided.
    scale = np.sqrt(np.where(problem.reference > 0, problem.reference, 1.0))[:, None]
    best = _BestPrototypes(objective, problem, scale)
    # A gtol next to zero: the relative decrease of F alone decides when to stop.
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-12}
    found = minimize(best.uphill, (start * scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    # Status 1: out of iterations or evaluations; 2: the line search failed, even with an empty memory.
    return best.result(converged=found.status != 1, stuck=found.status == 2 and best.n_failures > 0)


def minimize_adam(
    objective: Objective,
    problem: EmbeddingProblem,
    start: Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    learning_rate: float = 1e-3,
) -> EmbeddingResult:
    """Minimize F by Adam, the paper's optimizer; stops on a relative decrease below `tol`.

    Where F is NaN or infinite it restarts from the best point so far with half the step.
    """
    best = _BestPrototypes(objective, problem, np.ones((len(start), 1)))  # Adam works on Z itself, as in the paper
    flat, adam, previous = start.ravel().copy(), Adam(learning_rate), np.inf
    for _ in range(max_iter):
        value, gradient = best(flat)
        if gradient is None:  # NaN or infinite: restart from the best point, without momentum
            if best.point is None or best.n_failures > MOST_HALVINGS:
                return best.result(converged=False, stuck=True)
            flat, adam = best.point.copy(), Adam(0.5 * adam.learning_rate)
            previous = np.inf  # the first decrease after a restart means nothing
            continue
        if abs(previous - value) <= tol * max(1.0, abs(value)):
            return best.result(converged=True, stuck=False)
        previous = value
        flat = adam.step(flat, gradient)
    best(flat)  # the last step has not been evaluated yet
    return best.result(converged=False, stuck=False)
