"""Supervision losses L_s(y, g): Bregman divergences whose prototype targets g_j*(T) have a closed form.

Every loss is built from a strictly convex generator φ in one of the two forms of the paper's Lemma 3.2::

    primal   L_s(y, g) = D_φ(y, g)     g_j*(T) = (1/π_j) Σ_i T_ij y_i
    dual     L_s(y, g) = D_φ(g, y)     g_j*(T) = (∇φ)⁻¹( (1/π_j) Σ_i T_ij ∇φ(y_i) )        π_j = Σ_i T_ij

Both average a statistic s(y) of the targets (y itself, or ∇φ(y)) and map the mean back, which is what `embed`,
`from_sums` and `from_mean` expose. Because g_j*(T) is a minimiser, the gradient of the supervision term
S(T) = Σ_ij T_ij L_s(y_i, g_j*(T)) is L_s(y_i, g_j*(T)) itself, and S is concave in T.

Rows of Y that are all NaN carry no supervision: they cost nothing and take no part in any prototype target.

To add a loss:

1. Write its generator φ as a :class:`Generator`: the value, the gradient, its inverse, and the conjugate.
2. Subclass :class:`PrimalLoss` or :class:`DualLoss` with a `name`, that `generator`, and, if targets are restricted, a
   `domain` for the error message and `_inside` for the check. Set `floor` if ∇φ(g) is infinite at a mean g = 0.
3. Add an instance to `LOSSES`: ``SDR(target_loss=name)``, both couplings and the tests over all losses find it by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError

InnerLoss = Literal["kl", "square"]  # L_u of the Gromov-Wasserstein term; see `coupling.problem.structure_matrices`
TARGET_FLOOR = 1e-10
"""Smallest prototype target whose logarithm is taken by the losses that need log g with g = 0 allowed.

D_φ(y, g) is infinite where y_k > 0 = g_k: a sample of a class that its prototype has never seen. The floor makes that
cost large and finite, log(1e10) ≈ 23 nats for a one-hot label, several times any other term of one sample's cost. It
lies far below the share one sample can have in a prototype (1/n), so it never touches a class that is present, and
there the envelope property stays exact.
"""

# Prototypes with less than this share of the supervised mass count as empty: sums that are updated by adding and
# subtracting leave a rounding residue of that order, whose mean would be noise.
_EMPTY_SHARE = 1e-14


@dataclass(frozen=True)
class Generator:
    """A convex function φ that is a sum over coordinates, with what Lemma 3.2 needs of it.

    Attributes
    ----------
    value : callable
        φ(u), one number per row of (k, c).
    gradient : callable
        ∇φ, elementwise.
    inverse_gradient : callable
        (∇φ)⁻¹, elementwise.
    conjugate : callable
        φ*(∇φ(u)) = ⟨∇φ(u), u⟩ − φ(u), one number per row.
    """

    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    inverse_gradient: Callable[[Array], Array]
    conjugate: Callable[[Array], Array]

    def divergence(self, U: Array, V: Array, V_interior: Array | None = None) -> Array:
        """Matrix of D_φ(u_i, v_j) = φ(u_i) + φ*(∇φ(v_j)) − ⟨u_i, ∇φ(v_j)⟩; ∇φ is taken at `V_interior` if given."""
        slopes = self.gradient(V if V_interior is None else V_interior)
        gap = self.value(U)[:, None] + self.conjugate(V)[None, :]
        gap -= U @ slopes.T
        # The three terms cancel where u = v; rounding must not make a divergence negative.
        return np.maximum(gap, 0.0, out=gap)


HALF_SQUARE = Generator(
    value=lambda U: 0.5 * np.einsum("ik,ik->i", U, U),
    gradient=lambda U: U,
    inverse_gradient=lambda S: S,
    conjugate=lambda U: 0.5 * np.einsum("ik,ik->i", U, U),
)
NEGATIVE_ENTROPY = Generator(  # φ(u) = Σ u log u − u
    value=lambda U: (xlogy(U, U) - U).sum(axis=1),
    gradient=np.log,
    inverse_gradient=np.exp,
    conjugate=lambda U: U.sum(axis=1),
)
BURG_ENTROPY = Generator(  # φ(u) = −Σ log u
    value=lambda U: -np.log(U).sum(axis=1),
    gradient=lambda U: -1.0 / U,
    inverse_gradient=lambda S: -1.0 / S,
    conjugate=lambda U: np.log(U).sum(axis=1) - U.shape[1],
)


def supervised_rows(Y: Array) -> NDArray[np.bool_]:
    """Mask (n,) of the rows that carry supervision: all but those that are all NaN."""
    return np.asarray(~np.isnan(Y).all(axis=1))


def keep_in_range(expected: Array, targets: Array, *, shares: bool) -> Array:
    """Clip predictions to the range of the targets; class `shares` sum to one. NaN where the targets are unknown."""
    supervised = supervised_rows(targets)
    known = targets[supervised]
    expected = np.clip(expected, known.min(axis=0), known.max(axis=0))
    if shares:
        expected = expected / np.maximum(expected.sum(axis=1, keepdims=True), 1e-12)
    return np.where(supervised[:, None], expected, np.nan)


class BregmanLoss(ABC):
    """A supervision loss L_s(y, g) with closed-form prototype targets (Lemma 3.2).

    Examples
    --------
    >>> import numpy as np
    >>> loss = get_loss("squared")
    >>> loss.prototype_targets(np.eye(3)[:, [0, 1, 1]], np.array([[1.0], [2.0], [4.0]])).ravel()
    array([1., 2., 2.])
    """

    name: ClassVar[str]
    generator: ClassVar[Generator]
    domain: ClassVar[str] = "finite"

    def cost(self, Y: Array, G: Array) -> Array:
        """Matrix (n, m) of L_s(y_i, g_j); the rows of unsupervised samples are zero."""
        known = supervised_rows(Y)
        if known.all():  # the usual case, without copies
            return self._divergence(Y, G)
        cost = np.zeros((len(Y), len(G)))
        cost[known] = self._divergence(Y[known], G)
        return cost

    def embed(self, Y: Array) -> Array:
        """Statistic s(y) (n, c) that prototype targets average; zero for unsupervised samples."""
        known = supervised_rows(Y)
        if known.all():
            return self._statistic(Y)
        statistic = np.zeros(Y.shape)
        statistic[known] = self._statistic(Y[known])
        return statistic

    def from_sums(self, sums: Array, mass: Array) -> Array:
        """Targets (m, c) from `sums` = Tᵀ s(Y) (m, c) and the supervised mass π (m,) of each prototype.

        A prototype without supervised mass takes the target of all prototypes together, Σ_j sums_j / Σ_j π_j.
        """
        total = mass.sum()
        if not total > 0:  # NaN as well
            raise InvalidInputError("T puts no mass on any sample with a known y: prototype targets are undefined.")
        filled = mass > _EMPTY_SHARE * total
        # Empty prototypes: sums and masses of all prototypes together.
        mean = np.where(filled[:, None], sums, sums.sum(axis=0)) / np.where(filled, mass, total)[:, None]
        return self.from_mean(mean)

    def prototype_targets(self, T: Any, Y: Array) -> Array:
        """g_j*(T) = argmin_g Σ_i T_ij L_s(y_i, g) for a dense or scipy.sparse coupling T (n, m) with entries ≥ 0."""
        return self.from_sums(np.asarray(T.T @ self.embed(Y)), np.asarray(T.T @ supervised_rows(Y).astype(float)))

    def validate(self, Y: Array) -> None:
        """Raise `InvalidInputError` unless Y is (n, c), known somewhere, and inside the domain of the loss."""
        if Y.ndim != 2:
            raise InvalidInputError(
                f"y must be two-dimensional (n_samples, n_targets) for a loss; got {Y.ndim} dimensions."
            )
        known = supervised_rows(Y)
        if not known.any():
            raise InvalidInputError("y has no row with known targets: every row is NaN.")
        outside = ~np.isfinite(Y[known]) | ~self._inside(Y[known])
        if outside.any():
            row, column = np.argwhere(outside)[0]  # numbered among the known rows
            raise InvalidInputError(
                f"y must be {self.domain} for target_loss={self.name!r} (an unsupervised row is all NaN); "
                f"found {Y[known][row, column]} in row {np.flatnonzero(known)[row]}, column {column}."
            )

    def _inside(self, Y: Array) -> NDArray[np.bool_]:
        return np.isfinite(Y)

    @abstractmethod
    def from_mean(self, S: Array) -> Array:
        """Prototype targets whose averaged statistic is S (m, c)."""

    @abstractmethod
    def _statistic(self, Y: Array) -> Array: ...

    @abstractmethod
    def _divergence(self, Y: Array, G: Array) -> Array: ...


class PrimalLoss(BregmanLoss):
    """L_s(y, g) = D_φ(y, g): the prototype target is the mean of the targets (Lemma 3.2, case 2)."""

    floor: ClassVar[float] = -np.inf  # ∇φ is evaluated at no smaller prototype target

    def from_mean(self, S: Array) -> Array:
        """Prototype targets are the mean itself."""
        return S

    def _statistic(self, Y: Array) -> Array:
        return Y

    def _divergence(self, Y: Array, G: Array) -> Array:
        return self.generator.divergence(Y, G, np.maximum(G, self.floor))


class DualLoss(BregmanLoss):
    """L_s(y, g) = D_φ(g, y): the prototype target is a quasi-arithmetic mean (Lemma 3.2, case 1)."""

    domain = "strictly positive"

    def from_mean(self, S: Array) -> Array:
        """Prototype targets (∇φ)⁻¹(S)."""
        return self.generator.inverse_gradient(S)

    def _statistic(self, Y: Array) -> Array:
        return self.generator.gradient(Y)

    def _divergence(self, Y: Array, G: Array) -> Array:
        return self.generator.divergence(G, Y).T

    def _inside(self, Y: Array) -> NDArray[np.bool_]:
        # Not Y > 0: the reciprocal of a subnormal number overflows.
        return Y >= np.finfo(np.float64).tiny


class SquaredLoss(PrimalLoss):
    """L_s(y, g) = ½|y − g|², from φ(y) = ½|y|² (note the half); the target is the mean. For regression."""

    name = "squared"
    generator = HALF_SQUARE

    def _divergence(self, Y: Array, G: Array) -> Array:
        # Differences first: the expanded square of the generic formula loses digits on targets far from zero.
        return np.asarray(0.5 * cdist(Y, G, "sqeuclidean"))


class CrossEntropyLoss(PrimalLoss):
    """The paper's modified cross-entropy, L_s(y, g) = Σ_k y_k log(y_k / g_k) + Σ_k g_k − Σ_k y_k, with 0 log 0 = 0.

    From φ(u) = Σ_k u_k log u_k − u_k on the unit cube; the target is the mean, a soft label. For one-hot y and g on the
    simplex this is the usual −log g_class. log g is taken at max(g, `TARGET_FLOOR`).
    """

    name = "cross_entropy"
    generator = NEGATIVE_ENTROPY
    floor = TARGET_FLOOR
    domain = "between 0 and 1"

    def _inside(self, Y: Array) -> NDArray[np.bool_]:
        return (Y >= 0) & (Y <= 1)


class PoissonLoss(PrimalLoss):
    """Half the Poisson deviance, L_s(y, g) = Σ_k y_k log(y_k / g_k) + g_k − y_k, for counts and other y ≥ 0.

    The same divergence as the cross-entropy, without the bound on y; log g is taken at max(g, `TARGET_FLOOR`).
    """

    name = "poisson"
    generator = NEGATIVE_ENTROPY
    floor = TARGET_FLOOR
    domain = "non-negative"

    def _inside(self, Y: Array) -> NDArray[np.bool_]:
        return Y >= 0


class GeometricLoss(DualLoss):
    """Poisson with arguments exchanged: L_s(y, g) = Σ_k g_k log(g_k / y_k) + y_k − g_k; the geometric mean."""

    name = "geometric"
    generator = NEGATIVE_ENTROPY


class ItakuraSaitoLoss(DualLoss):
    """L_s(y, g) = Σ_k g_k / y_k − log(g_k / y_k) − 1, from φ(u) = −Σ_k log u_k; the harmonic mean.

    Depends on ratios only, so it suits positive targets that span orders of magnitude.
    """

    name = "itakura_saito"
    generator = BURG_ENTROPY


LOSSES: dict[str, BregmanLoss] = {
    loss.name: loss for loss in (SquaredLoss(), CrossEntropyLoss(), PoissonLoss(), GeometricLoss(), ItakuraSaitoLoss())
}


def get_loss(loss: str | BregmanLoss) -> BregmanLoss:
    """The loss of that name, or the instance itself.

    Examples
    --------
    >>> get_loss("poisson").name
    'poisson'
    """
    if isinstance(loss, BregmanLoss):
        return loss
    if loss not in LOSSES:
        raise InvalidInputError(
            f"target_loss={loss!r} is not known; choose one of {sorted(LOSSES)} or pass a BregmanLoss."
        )
    return LOSSES[loss]
