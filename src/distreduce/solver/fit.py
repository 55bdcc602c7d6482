"""From a weighted sample to a reduction: affinity, input kernel, starting points, solve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.coupling import initial_plan
from distreduce.coupling.plan import column_mass, plan_from_array
from distreduce.embedding.initial import initial_embedding
from distreduce.exceptions import InvalidInputError, NumericalError
from distreduce.kernels import RBF, Kernel, Linear, RationalQuadratic
from distreduce.losses import BregmanLoss, supervised_rows
from distreduce.mapping import KernelMap, MapRegression, barycentres, relevance_length_scales
from distreduce.sharding.sample import Sample
from distreduce.solver.checkpoint import Checkpoint
from distreduce.solver.dense import ReductionProblem
from distreduce.solver.loop import FAILURES, Record, Reduction, Settings, solve
from distreduce.solver.medoids import (
    distances_to_means,
    distances_within,
    nearest_members,
    prototype_means,
    prototype_sums,
)

# From here on the n×n affinity is kept in single precision: 10,000 samples then take 0.4 GB instead of 0.8.
SINGLE_PRECISION_FROM = 4000
# The median distance is that of at most this many samples, evenly spaced in the sorted sample.
MEDIAN_SAMPLES = 1000
BLOCK_ROWS = 256


@dataclass(frozen=True)
class Recipe:
    """All choices of a fit that are not the solver's own (those are `settings`)."""

    settings: Settings
    n_components: int
    n_prototypes: int | None
    perplexity: float
    init: Any
    supervision: BregmanLoss
    target_kernel: Kernel | None
    input_kernel: Kernel
    mu: float
    map_reg: float
    unit: float = 1.0


@dataclass(frozen=True)
class Fitted:
    """A reduction with the map that extends it, and the sample that stands for each prototype (−1: none, unused)."""

    reduction: Reduction
    map: KernelMap
    medoids: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        reduction: Reduction,
        recipe: Recipe,
        inputs: Any,
        coefficients: Callable[[], Array],
        medoids: NDArray[np.intp],
    ) -> Fitted:
        """With the map whose coefficients are still to be computed; if they cannot be, the reduction is not lost."""
        try:
            found = coefficients()
            if not np.isfinite(found).all():
                raise NumericalError("Its coefficients are not finite")
        except FAILURES as error:
            raise NumericalError(
                f"The out-of-sample map of the reduction could not be computed ({error}); raise map_reg or scale X. "
                "The reduction itself is this error's `best`.",
                best=reduction,
            ) from error
        return cls(reduction, KernelMap(recipe.input_kernel, inputs, found, recipe.unit), medoids)


def untold(stage: str) -> None:
    """For fits that nobody watches."""


def fit_sample(
    sample: Sample,
    recipe: Recipe,
    *,
    workers: Workers,
    random_state: np.random.RandomState,
    callback: Callable[[Record], object] | None = None,
    checkpoint: Checkpoint | None = None,
    stage: Callable[[str], None] = untold,
) -> Fitted:
    """Fit SDR (or, without targets, DistR) to a sample; `stage` is told what is computed before the outer loop."""
    n = len(sample.weights)
    balanced = recipe.n_prototypes is None
    stage("affinity")
    affinity = _affinity(sample, recipe.perplexity, workers)
    stage("start")
    plan = _plan(sample, recipe, affinity, n if recipe.n_prototypes is None else recipe.n_prototypes, random_state)
    start = initial_embedding(sample.features, plan, recipe.n_components, random_state, precomputed=sample.precomputed)
    stage("map")
    K = _kernel_matrix(sample, recipe.input_kernel, workers)
    projection = MapRegression(K, sample.weights, recipe.mu, recipe.map_reg)
    problem = ReductionProblem(
        affinity=affinity,
        weights=sample.weights,
        plan=plan,
        embedding=start,
        targets=sample.targets,
        loss=recipe.supervision,
        kernel_targets=sample.kernel_targets,
        target_kernel=recipe.target_kernel,
        projection=projection,
        balanced=balanced,
    )
    stage("first embedding")
    reduction = solve(problem, recipe.settings, workers=workers, callback=callback, checkpoint=checkpoint)
    F = barycentres(reduction.plan, sample.weights) @ reduction.embedding
    inputs = None if sample.precomputed else sample.features
    medoids = _medoids(sample, reduction.plan)
    return Fitted.of(reduction, recipe, inputs, lambda: projection.coefficients(F), medoids)


def _medoids(sample: Sample, plan: sparse.csr_array) -> NDArray[np.intp]:
    """See :mod:`distreduce.solver.medoids`."""
    if sample.precomputed:
        return nearest_members(plan, distances_within(sample.features, plan))
    means = prototype_means(prototype_sums(sample.features, plan), column_mass(plan))
    return nearest_members(plan, distances_to_means(sample.features, plan, means))


def input_kernel(kernel: str | Kernel, length_scale: Any, sample: Sample, unit: float) -> Kernel:
    """The input kernel K with its length scale in the sample's units (X is divided by `unit`)."""
    if not isinstance(kernel, str):
        return kernel
    if kernel == "linear":
        return Linear()
    if isinstance(length_scale, str):
        scale: Any = median_length_scale(sample.features, sample.weights, precomputed=sample.precomputed)
        if length_scale == "ard":
            scale = learned_length_scales(sample, scale)
    else:
        try:
            scale = np.asarray(length_scale, dtype=np.float64) / unit
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"length_scale cannot be read as numbers ({error}).") from error
    if kernel == "rbf":
        return RBF(scale)
    if np.ndim(scale) > 0:
        raise InvalidInputError("length_scale with one number a feature needs input_kernel='rbf'.")
    return RationalQuadratic(length_scale=float(scale))


def learned_length_scales(sample: Sample, start: float) -> Array:
    """ARD length scales by the marginal likelihood of a Gaussian process from X to the targets."""
    if sample.precomputed or sparse.issparse(sample.features) or sample.kernel_targets is None:
        raise InvalidInputError("length_scale='ard' needs dense features and targets; use 'median' or a number.")
    known = supervised_rows(sample.kernel_targets)
    return relevance_length_scales(sample.features[known], sample.kernel_targets[known], sample.weights[known], start)


def median_length_scale(features: Any, weights: Array, *, precomputed: bool = False) -> float:
    """l with 2l² the weighted median of the squared distances, so that K = exp(−|x − x'|² / median)."""
    chosen = np.unique(np.linspace(0, len(weights) - 1, MEDIAN_SAMPLES).astype(int))
    part = features[chosen]
    D = np.asarray(part[:, chosen]) ** 2 if precomputed else squared_distances(part)
    w = np.outer(weights[chosen], weights[chosen])[D > 0]
    distances = D[D > 0]
    order = np.argsort(distances)
    cumulative = np.cumsum(w[order])
    median = distances[order][np.searchsorted(cumulative, 0.5 * cumulative[-1])]
    return float(np.sqrt(0.5 * median))


def _affinity(sample: Sample, perplexity: float, workers: Workers) -> NDArray[np.floating]:
    """In single precision for many samples, and again in double where that left the range of finite numbers."""
    single = len(sample.weights) >= SINGLE_PRECISION_FROM
    for dtype in (np.float32, np.float64) if single else (np.float64,):
        if sample.precomputed:
            D = np.square(sample.features, dtype=dtype)
        else:
            D = squared_distances(sample.features, dtype=dtype, workers=workers)
        matrix = symmetric_entropic_affinity(D, perplexity, sample.weights, overwrite=True, workers=workers).matrix
        if math.isfinite(matrix.sum()):
            return matrix
    raise NumericalError("The input affinity is not finite; look for enormous values in X, or scale it.")


def _plan(
    sample: Sample, recipe: Recipe, affinity: NDArray[np.floating], m: int, random_state: np.random.RandomState
) -> sparse.csr_array:
    if not isinstance(recipe.init, str):
        return plan_from_array(recipe.init, sample.weights)
    # One prototype a sample carries that sample's weight: among different weights only the identity does.
    uneven = m == len(sample.weights) and bool(np.ptp(sample.weights) > 0)
    return initial_plan(
        "identity" if uneven else recipe.init,
        m,
        weights=sample.weights,
        affinity=affinity,
        features=sample.features,
        targets=sample.kernel_targets,
        target_kernel=recipe.target_kernel,
        random_state=random_state,
    )


def _kernel_matrix(sample: Sample, kernel: Kernel, workers: Workers) -> Array:
    """K (n, n) by blocks of rows, so that no other array of that size is made."""
    n = len(sample.weights)
    K = np.empty((n, n))
    rows_of = KernelMap(kernel, None if sample.precomputed else sample.features, np.empty((n, 0))).similarity

    def fill(chunk: int, n_chunks: int) -> None:
        rows = slice(chunk * BLOCK_ROWS, (chunk + 1) * BLOCK_ROWS)
        K[rows] = rows_of(sample.features[rows])

    workers.run(fill, -(-n // BLOCK_ROWS))
    return K
