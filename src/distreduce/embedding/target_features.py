"""The target kernel as an inner product of few features, K_Y ≈ Φ Φᵀ: for large samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from distreduce._utils.typing import Array
from distreduce.kernels import Delta, Kernel, Linear, diagonal
from distreduce.losses import supervised_rows

RESIDUAL = 1e-6  # no landmark is added once the error of the kernel is below this everywhere in the sample


@dataclass(frozen=True)
class TargetFeatures:
    r"""Nyström features :math:`\varphi(y) = F^{-1} k(Y_r, y)` with :math:`K(Y_r, Y_r) = F F^\top`, F lower triangular.

    `error` is the largest k(y, y) − |φ(y)|² in the sample. K − Φ Φᵀ is positive semi-definite, so by Cauchy-Schwarz no
    entry between two targets of the sample is larger.
    """

    kernel: Kernel
    landmarks: Array | None  # Y_r (D, c); None where k is an inner product and y is its own feature
    factor: Array | None  # F (D, D); None likewise
    error: float

    def __call__(self, Y: Array) -> Array:
        """Φ (rows, D) of known targets Y (rows, c)."""
        if self.landmarks is None:
            return Y
        return np.asarray(solve_triangular(self.factor, self.kernel(self.landmarks, Y), lower=True)).T


def nystrom_features(sample_targets: Array, kernel: Kernel, n_features: int = 256) -> TargetFeatures:
    """Compute features from a sample of the targets; exact for class shares and for the linear kernel.

    Each landmark is the target that the earlier ones explain worst (the pivots of an incomplete Cholesky
    factorization): the farthest point in the kernel's distance.
    """
    if isinstance(kernel, Delta | Linear):  # K_Y = YYᵀ: y is its own feature
        return TargetFeatures(kernel, None, None, 0.0)
    Y = sample_targets[supervised_rows(sample_targets)]
    residual = diagonal(kernel, Y)  # k(y, y) − |φ(y)|², before there are features
    columns = np.zeros((len(Y), min(n_features, len(Y))))
    pivots: list[int] = []
    # Incomplete Cholesky factorization, one column per landmark.
    while len(pivots) < columns.shape[1] and residual.max() > RESIDUAL:
        pivot, known = int(residual.argmax()), len(pivots)
        column = kernel(Y, Y[[pivot]])[:, 0] - columns[:, :known] @ columns[pivot, :known]
        columns[:, known] = column / np.sqrt(residual[pivot])
        residual = residual - columns[:, known] ** 2
        pivots.append(pivot)
    # Row i of the columns is φ(y_i), so those of the landmarks are the triangular F itself.
    return TargetFeatures(kernel, Y[pivots], columns[pivots, : len(pivots)], float(max(0.0, residual.max())))
