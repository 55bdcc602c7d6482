"""Base of the SDR-GPs: the reduction between X and the Gaussian processes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.typing import Array, Index
from distreduce.estimators import SDR
from distreduce.estimators._renamed import RenamedParametersMixin, Translation, leave_out
from distreduce.exceptions import DataWarning, OptimisticPictureWarning, SolverConvergenceWarning
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._inducing import evenly_spaced
from distreduce.kernels import RBF
from distreduce.mapping import left_out_embedding
from distreduce.sharding.dask_collections import is_dask, predict_by_blocks

LEAST_MAP_REG = 1e-3  # below, the map interpolates the embedding of every sample and says nothing of its neighbours
# Candidates: factors of the median heuristic, and ridges. The first pair suits images, whose labels have hardly any
# noise; tables with noisy labels need a smoother map (decision 12).
LENGTH_SCALES, RIDGES = (0.5, 1.0, 2.0), (0.01, 0.1, 1.0)
CLEARLY = 0.75  # another pair replaces the first only if its error is below this fraction of the first pair's
CHOICE_SAMPLES = 500


class ReducingGP(RenamedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Reduce with SDR, then predict from the embedding."""

    _reduction_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "eta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "map_reg": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "training_inputs": [StrOptions({"left_out", "fitted"})],
        "max_reduction_samples": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": SDR._parameter_constraints["checkpoint"],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {"checkpoint_every": leave_out}

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen: (n_samples, n_components)."""
        check_is_fitted(self)
        if is_dask(X):
            return predict_by_blocks(self, "transform", X)
        return self._embed(validate_data(self, X, reset=False, dtype=np.float64, order="C"))

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn's ``get_feature_names_out``."""
        return int(self.reduction_.prototypes_.shape[1])

    def _embed(self, X: Array) -> Array:
        """Embed validated samples."""
        return np.asarray(self.reduction_.transform(X))

    def _fit_reduction(self, X: Array, y: Any, random_state: Any, **map_parameters: Any) -> None:
        """Set ``reduction_``."""
        reduction = SDR(
            self.n_components,
            n_prototypes=self.n_prototypes,
            eta=self.eta,
            perplexity=min(self.perplexity, largest_perplexity(len(X))),
            # The identity plan of pure dimensionality reduction is a stationary point already (decision 12).
            max_iter=0 if self.n_prototypes is None else 50,
            n_jobs=self.n_jobs,
            random_state=random_state,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            **map_parameters,
        )
        with warnings.catch_warnings():  # users asked for a GP; how its embedding converged is a detail
            warnings.simplefilter("ignore", SolverConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", OptimisticPictureWarning)  # the GP sees left-out places
            self.reduction_ = reduction.fit(X, y)


def relevance_metric(found: Sequence[Hyperparameters]) -> tuple[Array, float]:
    r"""Length scales and ridge of the map from the plain GPs of all targets: what matters to y, and how noisy it is.

    .. math:: l_f^{-2} = \mathrm{mean}_t\, l_{tf}^{-2}, \qquad \lambda = \mathrm{mean}_t\, \sigma_t^2 / s_t
    """
    # Averaging precisions keeps a feature relevant if it matters to a single target.
    precision = np.mean([gp.length_scales**-2.0 for gp in found], axis=0)
    ratio = np.mean([gp.noise / gp.signal for gp in found])
    return 1.0 / np.sqrt(precision), float(np.clip(ratio, LEAST_MAP_REG, 1.0))


def largest_perplexity(n: int) -> float:
    """Largest perplexity that still distinguishes near from far among n samples (decision 8)."""
    return max(n / 3, min(1.5, 2 * n / 3))


def embed_left_out(reduction: SDR, X: Array) -> Array:
    """Embed each training sample by a map fitted without it and without samples of equal features."""
    # Where the coupling puts each sample: the targets that the map was fitted to.
    placed = reduction.coupling_ @ reduction.prototypes_
    _, groups = np.unique(X, axis=0, return_inverse=True)
    K = reduction.map_.kernel(X / reduction.map_.unit)
    return left_out_embedding(K, placed, reduction.map_reg_ / reduction.mu, groups.ravel())


def draw_rows(n: int, size: int, random_state: np.random.RandomState) -> Index:
    """All rows in order, or `size` of them drawn at random, in random order."""
    return np.arange(n) if size >= n else random_state.permutation(n)[:size]


def choose_map(
    X: Array, labels: Index, median: float, length_scale_factor: float | str, map_reg: float | str
) -> tuple[float, float]:
    """Return the length scale in units of `median`, and the ridge: "auto" is chosen, a number is kept.

    The map is a kernel ridge regression from samples to the embedding. Here the same regression predicts the one-hot
    classes, and the pair with the smallest squared error on left-out samples wins. At most `CHOICE_SAMPLES` evenly
    spaced samples are used.
    """
    scales = LENGTH_SCALES if isinstance(length_scale_factor, str) else (length_scale_factor,)
    ridges = RIDGES if isinstance(map_reg, str) else (map_reg,)
    rows = evenly_spaced(len(X), CHOICE_SAMPLES)
    # The first pair, with the shortest length scale and the smallest ridge, is the default.
    pairs = [(scale, ridge) for scale in scales for ridge in ridges]
    if len(pairs) == 1:
        return pairs[0]
    errors = _left_out_errors(X[rows] / median, labels[rows], pairs)
    best = int(errors.argmin())
    return pairs[best if errors[best] < CLEARLY * errors[0] else 0]


def _left_out_errors(X: Array, labels: Index, pairs: list[tuple[float, float]]) -> Array:
    """Mean squared error of each pair on left-out classes; samples with equal features are left out together."""
    shares = np.eye(labels.max() + 1)[labels]
    # Centred: the ridge then shrinks predictions towards the class frequencies, not towards 0.
    shares -= shares.mean(axis=0)
    _, groups = np.unique(X, axis=0, return_inverse=True)
    errors = []
    for scale, ridge in pairs:
        missed = left_out_embedding(RBF(scale)(X), shares, ridge, groups.ravel()) - shares
        errors.append(np.mean(missed**2))
    return np.array(errors)
