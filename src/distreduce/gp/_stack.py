"""The predictor of one numeric target: experts on several views of the samples, mixed by left-out densities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from distreduce._utils.numerics import evenly_spaced
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError
from distreduce.gp._crossfit import CrossFit, Said
from distreduce.gp._exact import ExactGP
from distreduce.gp._tails import Tails
from distreduce.gp._target_scale import LEVELS, Warp

Views = Mapping[str, Array]
LEAST_WEIGHT = 1e-3  # experts below it are left out of predictions
CLEARLY = 2.0  # standard errors by which an expert must be behind to be given up
WORTHLESS = 0.002  # nats per sample
ENOUGH_TO_PRICE = 200  # left-out samples from which on experts are given up that are worth less
REFERENCE = 5000  # left-out errors that a stack keeps
# How constant the variance of an expert is: shares of its mean in the calibrated variance.
CONSTANT = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
GAUSSIAN_TAILS = Tails()
EM_STEPS, EM_TOL = 1000, 1e-6  # of the weights


@dataclass(frozen=True)
class Stack:
    """Experts by name, their weights, and the distribution of the mixture's errors.

    The calibrated variance of an expert is a n(x) + b v(x): v is its own variance, n the noise relative to its mean.
    """

    processes: Mapping[str, Any]  # fitted experts
    weights: Mapping[str, float]  # they sum to one; those of experts that are not listed are negligible
    variance_scale: float = 1.0  # factor of the mixture's variance
    tails: Tails = GAUSSIAN_TAILS  # shape of the errors in units of the mixture's standard deviation
    calibration: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # (a, b), by default (0, 1)
    warp: Warp | None = None  # function of the standardised target that the experts learned
    errors: Array = field(default_factory=lambda: np.empty(0))  # sorted left-out errors, in standard deviations
    groups: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # the prototype of each error
    noise: Any = None  # n; None is 1 everywhere

    @classmethod
    def of(cls, found: CrossFit, target: Array, weights: Array, groups: Index, warp: Warp | None = None) -> Stack:
        """Weigh the experts, and learn scale and shape of the errors, from left-out predictions."""
        y, h, noise = target[found.rows], weights[found.rows], found.noise
        # Each expert by itself: how large its errors are, and how far they follow its variance.
        calibration = {name: calibrate_variance(y - m, v, h, noise) for name, (m, v) in found.left_out.items()}
        own = cls({}, {}, calibration=calibration, warp=warp)
        densities = own.log_densities(found.left_out, y, noise)
        own = replace(own, weights=weigh(densities, h, thrifty=len(y) < len(target)))
        # The mixture: its variance includes the disagreement of its parts, which the data may not confirm.
        mean, variance = own.mix(found.left_out, noise)
        errors = (y - mean) / np.sqrt(variance)
        unit = max(1e-12, float(h @ errors**2 / h.sum()))
        errors = errors / np.sqrt(unit)
        # The errors were used to calibrate and weigh the experts, so they are a little too small.
        scale = unit * h.sum() / max(h.sum() - len(calibration), 0.9 * h.sum())
        kept, groups = thin_reference(errors, groups[found.rows], REFERENCE, h)
        return replace(own, variance_scale=scale, tails=Tails.of(errors, h), errors=kept, groups=groups)

    @classmethod
    def of_exact(cls, name: str, gp: ExactGP, *, rescaled: bool) -> Stack:
        """The stack of one exact GP alone.

        With ``rescaled=True`` the variance is multiplied by the mean squared leave-one-out error in its units; the mean
        divides by n less the number of hyperparameters, which saw the same targets (at least n/2).
        """
        alone = cls({name: gp}, {name: 1.0})
        if not rescaled:
            return alone
        (mean, variance), h = gp.leave_one_out(), np.ones(len(gp.target)) if gp.weights is None else gp.weights
        total = float(h @ ((gp.target - mean) ** 2 / variance))
        k = len(gp.hyperparameters.length_scales) + 2
        return replace(alone, variance_scale=max(1e-6, total / max(h.sum() - k, 0.5 * h.sum())))

    def log_densities(self, moments: Said, y: Array, noise: Array | float = 1.0) -> dict[str, Array]:
        """Log densities of targets under each expert by itself."""
        return {name: log_density(y, *self.calibrate(name, own, noise)) for name, own in moments.items()}

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Mean and variance of what the experts learned at each row."""
        found = {name: self.processes[name].moments(views[name]) for name in self.used()}
        return self.mix(found, self.noise_at(views))

    def noise_at(self, views: Views) -> Array | float:
        """n(x) at each row."""
        return 1.0 if self.noise is None else np.asarray(self.noise(views["noise"]))

    def mix(self, moments: Said, noise: Array | float = 1.0) -> tuple[Array, Array]:
        """Mean and variance of the mixture of experts with these moments."""
        used = self.used()
        parts = [self.calibrate(name, moments[name], noise) for name in used]
        means, variances = (np.array(part) for part in zip(*parts, strict=True))
        mean, variance = mixed_moments(np.array(list(used.values())), means, variances)
        return mean, self.variance_scale * variance

    def calibrate(self, name: str, moments: tuple[Array, ...], noise: Array | float = 1.0) -> tuple[Array, Array]:
        """Moments of an expert with the variance that its left-out errors confirm."""
        mean, variance = moments
        constant, factor = self.calibration.get(name, (0.0, 1.0))
        return mean, constant * noise + factor * variance

    def quantiles(self, mean: Array, std: Array, levels: Array) -> Array:
        """Quantiles (t, levels) of the standardised target."""
        found = mean[:, None] + std[:, None] * self.tails.quantiles(levels)
        return found if self.warp is None else self.warp.back(found)

    def interval(self, mean: Array, variance: Array, coverage: float, groups: Index | None = None) -> Array:
        """Conformal interval (t, 2) of the standardised target: order statistics of the errors, of all or `groups`."""
        if len(self.errors) == 0:
            raise InvalidInputError(
                '"conformal" and "mondrian" need left-out errors, which this model has not kept; use method="model" or '
                "SDRGPRegressor with its defaults."
            )
        rank = partial(central_ranks, coverage=coverage)
        ends = rank(self.errors) if groups is None else rank_within(rank, self.errors, self.groups, groups)
        found = mean[:, None] + np.sqrt(variance)[:, None] * ends
        return found if self.warp is None else np.where(np.isfinite(found), self.warp.back(found), found)

    def log_density(self, mean: Array, std: Array, y: Array) -> Array:
        """Log density of the standardised target."""
        u = y if self.warp is None else self.warp(y)
        slope = 0.0 if self.warp is None else self.warp.log_slope(y)
        return np.asarray(self.tails.log_density((u - mean) / std) - np.log(std) + slope)

    def log_density_left_out(self, found: CrossFit, learned: Array) -> Array:
        """Log density of what the experts learned at the left-out samples."""
        mean, variance = self.mix(found.left_out, found.noise)
        return replace(self, warp=None).log_density(mean, np.sqrt(variance), learned)

    def unwarp(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the standardised target, as averages over its quantiles."""
        if self.warp is None:
            return mean, np.sqrt(variance)
        at = self.quantiles(mean, np.sqrt(variance), LEVELS)
        return at.mean(axis=1), np.maximum(at.std(axis=1), 1e-9)

    def covariance(self, views: Views) -> Array:
        """Joint covariance (t, t): that of the mixture, :math:`\\sum_k w_k (C_k + (m_k - m)(m_k - m)^T)`.

        Experts other than GPs know no covariance between samples: theirs is diagonal.
        """
        (mean, _), noise = self.moments(views), self.noise_at(views)
        # The law of total covariance: within the parts, and between their means.
        total = np.zeros((len(mean), len(mean)))
        for name, weight in self.used().items():
            own, variance = self.calibrate(name, self.processes[name].moments(views[name]), noise)
            process = getattr(self.processes[name], "gp", self.processes[name])
            within = np.diag(variance)
            if hasattr(process, "covariance"):
                joint = process.covariance(views[name])
                within = joint * np.sqrt(np.outer(variance, variance) / np.outer(joint.diagonal(), joint.diagonal()))
            total += weight * (within + np.outer(own - mean, own - mean))
        return self.variance_scale * total

    def used(self) -> dict[str, float]:
        """Experts and their weights, without those of negligible weight."""
        return select_used(self.weights)

    @property
    def view_names(self) -> list[str]:
        """Names of the views that predictions need."""
        return [*self.used(), *(["noise"] if self.noise else [])]


def thin_reference(scores: Array, groups: Index, size: int, weights: Array) -> tuple[Array, Index]:
    """At most `size` of the scores, sorted, and their groups: what new samples are compared with.

    With unequal weights these are quantiles of the weighted scores, so that some are repeated and others missing.
    """
    order = np.argsort(scores, kind="stable")
    if np.ptp(weights) > 0:
        reach, k = np.cumsum(weights[order]), len(order)
        order = order[np.searchsorted(reach, (np.arange(k) + 0.5) / k * reach[-1]).clip(max=k - 1)]
    kept = order[evenly_spaced(len(order), size)]
    return scores[kept], groups[kept]


def find_rank(n: int, miss: float) -> int:
    """⌊(n + 1) miss⌋: another score is below the one of this rank with at most this probability."""
    return int(np.floor((n + 1) * miss + 1e-9))  # 1 − 0.9 is a little less than 0.1


def rank_within(rank: Callable[[Array], Any], scores: Array, groups: Index, asked: Index) -> Array:
    """`rank` of the scores of each asked group; where a group has too few, that of all scores or its own extreme.

    The farther of the two, so that what covers more is never narrower. This is Mondrian conformal prediction: Vovk,
    Gammerman, Shafer (2005). Algorithmic Learning in a Random World.
    """
    overall = np.asarray(rank(scores))
    found = {group: np.asarray(rank(scores[groups == group])) for group in np.unique(groups)}
    if not any(np.isfinite(own).all() for own in found.values()):
        raise InvalidInputError(
            "No prototype, or class, has enough left-out samples for this coverage; ask for less, or for that of all "
            "samples together, or fit with fewer prototypes (a number for n_prototypes) or more samples."
        )
    for group, own in found.items():
        low, high = scores[groups == group].min(), scores[groups == group].max()
        above = np.where(own == np.inf, np.maximum(overall, high), own)
        found[group] = np.where(own == -np.inf, np.minimum(overall, low), above)
    return np.array([found.get(group, overall) for group in asked])


def central_ranks(errors: Array, coverage: float) -> Array:
    """The order statistics of n sorted errors between which another one lies; infinite if n is too small."""
    low = find_rank(len(errors), (1 - coverage) / 2)
    return np.array([errors[low - 1], errors[-low]] if low >= 1 else [-np.inf, np.inf])


def select_used(weights: Mapping[str, float]) -> dict[str, float]:
    """Experts and their weights, without those of negligible weight."""
    used = {name: weight for name, weight in weights.items() if weight > LEAST_WEIGHT}
    return {name: weight / sum(used.values()) for name, weight in used.items()}


def calibrate_variance(
    errors: Array, variance: Array, weights: Array, noise: Array | float = 1.0
) -> tuple[float, float]:
    """a and b of the variance a n(x) + b v(x) under which left-out errors have the greatest Gaussian likelihood."""
    total = weights.sum()
    typical, error = float(weights @ variance / total), float(weights @ (errors**2 / noise) / total)
    if typical == 0.0:  # trees that all agree
        return max(error, 1e-12), 0.0
    best = (-np.inf, 0.0, 1.0)
    for constant in CONSTANT:
        shape = np.maximum(constant * typical * noise + (1 - constant) * variance, 1e-12 * typical)
        scale = max(float(weights @ (errors**2 / shape) / total), 1e-12)
        value = -float(weights @ np.log(shape)) - total * np.log(scale)
        if value > best[0]:
            best = value, scale * constant * typical, scale * (1 - constant)
    # A floor, because trees that agree have no variance at all.
    return max(best[1], 1e-6 * error, 1e-12), best[2]


def log_density(target: Array, mean: Array, variance: Array) -> Array:
    """log N(y; m, v), element by element."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (target - mean) ** 2 / variance))


def stacking_weights(log_densities: Array, weights: Array) -> Array:
    r"""Stacking weights (k,) of k models from their left-out log densities (k, n) and weights of the samples [1]_.

    .. math:: \max_{w \in \Delta} \sum_i h_i \log \sum_k w_k\, p_k(y_i \mid y_{-i}) + \sum_k \log w_k

    The last term, a sample for each model, keeps few samples from choosing a single one. The problem is concave; the
    EM step never lowers it and needs no step size.

    References
    ----------
    .. [1] Yao, Vehtari, Simpson, Gelman (2018). Using stacking to average Bayesian predictive distributions. Bayesian
       Analysis 13(3).
    """
    k = len(log_densities)
    # Only ratios between models matter, so the best density of each sample becomes 1: nothing underflows.
    densities = np.exp(log_densities - log_densities.max(axis=0))
    found = np.full(k, 1.0 / k)
    for _ in range(EM_STEPS):
        shares = found[:, None] * densities
        counts = (shares / shares.sum(axis=0)) @ weights
        updated = (counts + 1.0) / (counts + 1.0).sum()
        moved, found = np.abs(updated - found).max(), updated
        if moved < EM_TOL:
            break
    # A model that speaks for less than one sample has its weight from the last term alone, and only blurs the rest.
    found = np.where(counts < min(1.0, 0.5 * weights.sum() / k), 0.0, found)
    return np.asarray(found / found.sum())


def weigh(log_densities: Mapping[str, Array], weights: Array, *, thrifty: bool = False) -> dict[str, float]:
    """Stacking weights of experts by name, without negligible ones; if thrifty, also without the nearly worthless.

    Every expert costs time in every prediction, which matters with many samples. The lightest are dropped as long as
    the loss of mean log density, of all together and with two standard errors added, stays below `WORTHLESS`.
    """
    h = weights / weights.sum()

    def solve(names: Sequence[str]) -> tuple[Array, dict[str, float]]:
        logs = np.array([log_densities[name] for name in names])
        shares = stacking_weights(logs, weights)
        return logsumexp(logs, axis=0, b=shares[:, None]), dict(zip(names, map(float, shares), strict=True))

    whole, found = solve(list(log_densities))
    for name in sorted(found, key=found.__getitem__)[:-1] if thrifty else ():
        mixture, fewer = solve([other for other in found if other != name])
        loss = whole - mixture
        mean = float(h @ loss)
        if mean + CLEARLY * np.sqrt(h**2 @ (loss - mean) ** 2) > WORTHLESS:
            break
        found = fewer
    return select_used(found)


def keep_promising(log_densities: Mapping[str, Array], weights: Array) -> list[str]:
    r"""Names of the experts that may get a weight when there are more samples.

    At the best weights, :math:`\sum_i h_i (p_{ki}/\sum_j w_j p_{ji} - 1)` is zero for an expert k that has one, and
    negative for the others (Karush, Kuhn and Tucker). It must be clearly negative: by two standard errors. Many samples
    also tell what an expert is worth, as in :func:`weigh`: those that hardly lower the density by leaving are given up.
    """
    if len(weights) >= ENOUGH_TO_PRICE:
        return list(weigh(log_densities, weights, thrifty=True))
    logs, h = np.array(list(log_densities.values())), weights / weights.sum()
    densities = np.exp(logs - logs.max(axis=0))
    found = stacking_weights(logs, weights)
    gains = densities / (found @ densities) - 1.0
    mean = gains @ h
    error = np.sqrt((gains - mean[:, None]) ** 2 @ h**2)
    # An expert that stands alone has a gain of exactly zero, and no error.
    kept = (found > 0.0) | (mean + CLEARLY * error > 0.0)
    return [name for name, is_kept in zip(log_densities, kept, strict=True) if is_kept]


def mixed_moments(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    r"""Mean and variance of the mixture of k Gaussians, (k, n) arrays.

    .. math:: m = \sum_k w_k m_k, \qquad v = \sum_k w_k (v_k + (m_k - m)^2)
    """
    # No matrix products: their last bits depend on how many samples there are.
    mean = (weights[:, None] * means).sum(axis=0)
    return mean, (weights[:, None] * (variances + (means - mean) ** 2)).sum(axis=0)


def check_quantiles(quantiles: Any) -> Array:
    """Return probabilities as an array; raise InvalidInputError unless all lie between 0 and 1."""
    found = np.asarray(quantiles)
    numbers = found.ndim == 1 and len(found) > 0 and found.dtype.kind in "fiu"
    if not numbers or not ((found > 0) & (found < 1)).all():
        raise InvalidInputError(f"quantiles={quantiles!r} must be numbers between 0 and 1, such as (0.05, 0.95).")
    return np.asarray(found, dtype=np.float64)


def check_coverage(coverage: Any) -> None:
    """Raise InvalidInputError unless the coverage is a probability between 0 and 1."""
    if not isinstance(coverage, int | float | np.floating) or not 0 < coverage < 1:
        raise InvalidInputError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
