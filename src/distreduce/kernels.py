"""Kernels on embeddings, targets and inputs: K_Z (rational quadratic), K_Y (RBF or delta) and K (RBF).

A kernel is a small immutable value, called as ``kernel(A, B)``. Those that depend on A and B through the squared
distance d² = |a − b|² alone also give k and dk/d(d²) as plain functions of d², which is all a gradient in Z needs.
A row of ``kernel(A, B)`` does not depend on the other rows of A (to about 1e-12): one sample is treated as in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel

from distreduce._utils.numerics import DIRECT_FEATURES, sq_distances
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError

_DIAGONAL_ROWS = 256


@runtime_checkable
class Kernel(Protocol):
    """Anything that turns rows A (n, d) and B (m, d) into a kernel matrix (n, m); B is A by default."""

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B."""
        ...


@runtime_checkable
class DistanceKernel(Kernel, Protocol):
    """A kernel that is a function of the squared distance."""

    def of_sq_distance(self, sq_distance: Array) -> Array:
        """Values k for given d²."""
        ...

    def derivative(self, sq_distance: Array) -> Array:
        """Values dk/d(d²) for given d²."""
        ...


def _check_positive(name: str, value: ArrayLike) -> None:
    """Raise InvalidInputError unless the value is positive and its square finite and positive too."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.ndim > 1 or not ((numbers >= 1e-150) & (numbers <= 1e150)).all():
        raise InvalidInputError(f"{name} must be positive and finite (1e-150 to 1e150); got {value!r}.")


def rounds_alike(kernel: Kernel, A: Any) -> bool:
    """Whether a row's kernel values have the same bits in any batch: no matrix product is involved."""
    return isinstance(kernel, RationalQuadratic | RBF | Matern32) and (
        sparse.issparse(A) or A.shape[1] <= DIRECT_FEATURES
    )


def diagonal(kernel: Kernel, A: Any) -> Array:
    """k(a, a) for every row of A, without the full matrix."""
    if isinstance(kernel, RationalQuadratic | RBF):
        return np.ones(A.shape[0])  # functions of distance with k(0) = 1
    # Blocks on the diagonal of the kernel matrix.
    blocks = (A[start : start + _DIAGONAL_ROWS] for start in range(0, A.shape[0], _DIAGONAL_ROWS))
    # In double precision, whatever the type of X.
    exact = (block if sparse.issparse(block) else np.asarray(block, dtype=np.float64) for block in blocks)
    return np.concatenate([np.diagonal(kernel(block)) for block in exact])


@dataclass(frozen=True)
class RationalQuadratic:
    """k = (1 + d² / (2 a l²))^−a, the paper's k_RQ with a its α; the heavy-tailed relative of the Student-t affinity.

    Examples
    --------
    >>> RationalQuadratic()([[0.0], [2.0]]).tolist()
    [[1.0, 0.3333333333333333], [0.3333333333333333, 1.0]]
    """

    alpha: float = 1.0
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("alpha", self.alpha)
        _check_positive("length_scale", self.length_scale)

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B."""
        return self.of_sq_distance(sq_distances(A, B))

    def of_sq_distance(self, sq_distance: Array) -> Array:
        """Values k for given d²."""
        return np.asarray(self._base(sq_distance) ** -self.alpha)

    def minus_one(self, sq_distance: Array) -> Array:
        """Values k − 1 for given d², to all digits near zero."""
        with np.errstate(over="ignore"):  # as in _base
            t = np.asarray(sq_distance) * (0.5 / self.alpha / self.length_scale**2)
        return np.asarray(1.0 / (1.0 + t) * -t if self.alpha == 1.0 else np.expm1(-self.alpha * np.log1p(t)))

    def derivative(self, sq_distance: Array) -> Array:
        """Values dk/d(d²) = −(1 + d² / (2 a l²))^(−a − 1) / (2 l²) for given d²."""
        base = self._base(sq_distance)  # a division instead of the power −a − 1, which is slow
        return np.asarray(base**-self.alpha / (base * (-2.0 * self.length_scale**2)))

    def _base(self, sq_distance: Array) -> Array:
        with np.errstate(over="ignore"):  # infinitely far in units of l: k is 0
            return 1.0 + np.asarray(sq_distance) / (2.0 * self.alpha * self.length_scale**2)


@dataclass(frozen=True)
class RBF:
    """k = exp(−d² / (2 l²)); an array `length_scale` gives each feature its own l (ARD).

    Examples
    --------
    >>> RBF()([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.1353], [0.1353, 1.0]]
    """

    length_scale: float | tuple[float, ...] | ArrayLike = 1.0

    def __post_init__(self) -> None:
        scale = np.asarray(self.length_scale, dtype=np.float64)
        _check_positive("length_scale", scale)
        # Numbers instead of an array: kernels are compared and hashed like values.
        object.__setattr__(self, "length_scale", float(scale) if scale.ndim == 0 else tuple(scale.tolist()))

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B, dense or scipy.sparse."""
        if isinstance(self.length_scale, tuple):
            values, rate = sq_distances(self._scaled(A), None if B is None else self._scaled(B)), 0.5
        else:  # one scale for all features: distances first
            values, rate = sq_distances(A, B), self._rate()
        with np.errstate(over="ignore"):
            values *= -rate
        return np.asarray(np.exp(values, out=values))  # in place: of large arrays, new memory takes as long as exp

    def of_sq_distance(self, sq_distance: Array) -> Array:
        """Values k for given d²; needs a single length scale."""
        with np.errstate(over="ignore"):  # infinitely far in units of l: k is 0
            return np.asarray(np.exp(np.asarray(sq_distance) * -self._rate()))

    def minus_one(self, sq_distance: Array) -> Array:
        """Values k − 1 for given d², to all digits near zero; needs a single length scale."""
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(np.asarray(sq_distance) * -self._rate()))

    def derivative(self, sq_distance: Array) -> Array:
        """Values dk/d(d²) = −k / (2 l²) for given d²; needs a single length scale."""
        return -self._rate() * self.of_sq_distance(sq_distance)

    def _rate(self) -> float:
        if not isinstance(self.length_scale, float):
            raise InvalidInputError(
                "length_scale has one entry per feature: the kernel is not a function of a single distance."
            )
        return 0.5 / self.length_scale**2

    def _scaled(self, A: Any) -> Any:
        scale = np.asarray(self.length_scale)
        if A.shape[1] != len(scale):
            raise InvalidInputError(f"length_scale has {len(scale)} entries for {A.shape[1]} features.")
        return A.multiply(1.0 / scale).tocsr() if sparse.issparse(A) else np.asarray(A, dtype=np.float64) / scale


@dataclass(frozen=True)
class Matern32:
    """k = (1 + √3 d) exp(−√3 d), Matérn's kernel of order 3/2: its functions have one derivative, not two.

    Inputs must be divided by their length scales.

    Examples
    --------
    >>> Matern32()([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.4834], [0.4834, 1.0]]
    """

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B."""
        return self.of_sq_distance(sq_distances(A, B))

    def of_sq_distance(self, sq_distance: Array) -> Array:
        """Values k for given d²."""
        distance = self._scaled(sq_distance)
        return np.asarray((1.0 + distance) * np.exp(-distance))

    def derivative(self, sq_distance: Array) -> Array:
        """Values dk/d(d²) = −3/2 exp(−√3 d) for given d²."""
        return np.asarray(-1.5 * np.exp(-self._scaled(sq_distance)))

    def _scaled(self, sq_distance: Array) -> Array:
        """√3 d; k is zero from 1000 on, and at infinity it would be NaN."""
        return np.asarray(np.minimum(np.sqrt(3.0) * np.sqrt(sq_distance), 1e3))


@dataclass(frozen=True)
class Linear:
    """k = ⟨a, b⟩, dense or scipy.sparse."""

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B."""
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses K checks that it is finite
            return np.asarray(linear_kernel(A, B, dense_output=True))


@dataclass(frozen=True)
class Delta:
    """k = 1 if two labels are equal, else 0, for one-dimensional labels; G Gᵀ for rows of class weights.

    On one-hot rows G Gᵀ is exactly the delta kernel of the labels. On soft rows, such as prototype targets, it is the
    probability that labels drawn from the two rows agree: the linear kernel, and positive semi-definite as well.

    Examples
    --------
    >>> Delta()(np.array(["a", "b", "a"])).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between labels (n,) or between rows of class weights (n, c)."""
        if np.ndim(A) == 2:  # class weights, such as one-hot rows
            return Linear()(A, B)
        A = np.asarray(A)
        return np.asarray(np.equal.outer(A, A if B is None else np.asarray(B)), dtype=np.float64)


KERNELS: dict[str, Kernel] = {"rq": RationalQuadratic(), "rbf": RBF(), "delta": Delta(), "linear": Linear()}


def get_kernel(kernel: str | Kernel) -> Kernel:
    """The kernel of that name with its default parameters, or the instance itself.

    Examples
    --------
    >>> get_kernel("rq")
    RationalQuadratic(alpha=1.0, length_scale=1.0)
    """
    if not isinstance(kernel, str) and isinstance(kernel, Kernel):
        return kernel
    if kernel not in KERNELS:
        raise InvalidInputError(f"kernel={kernel!r} is not known; choose one of {sorted(KERNELS)} or pass a callable.")
    return KERNELS[kernel]
