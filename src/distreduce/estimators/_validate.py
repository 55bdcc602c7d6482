"""Checks of X, weights, distances and initial couplings."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import RandomState
from scipy import sparse
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight

from distreduce._utils.numerics import blocks
from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import DataWarning, InvalidInputError
from distreduce.sharding.merge import Merged

DEFAULT_PERPLEXITY = 30.0
BLOCK_ROWS = 4096  # rows compared at once
MOST_WEIGHT = 1e50  # squares and products of larger sums overflow
# Fractions with a larger mean are questioned: the nearest sample alone would be all ten neighbours of a score.
MOST_MEAN_WEIGHT = 10.0


class Backends(StrOptions):
    """Constraint on `backend`: one of the names, or "torch:" with the name of a torch device."""

    def is_satisfied_by(self, val: Any) -> bool:
        device = isinstance(val, str) and val.startswith("torch:") and len(val) > len("torch:")
        return bool(device or super().is_satisfied_by(val))

    def __str__(self) -> str:
        return f"{super().__str__()} or 'torch:' and a device, such as 'torch:cuda'"


def read_weights(sample_weight: Any, X: Any) -> Array:
    """Return weights as counts (n,), ones by default; raise InvalidInputError for negative or all-zero ones."""
    reject_masked(sample_weight, "sample_weight")
    if sample_weight is not None and not np.asarray(sample_weight).any():
        raise InvalidInputError("sample_weight is zero everywhere; at least two samples must count.")
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise InvalidInputError(f"sample_weight must not be negative; row {row} has {weights[row]}.")
    if (weights > 0).sum() < 2:
        raise InvalidInputError("sample_weight is zero for all samples but one; at least two samples must count.")
    with np.errstate(over="ignore"):  # a sum of infinity gets the message below
        total = weights.sum()
    if total > MOST_WEIGHT:
        raise InvalidInputError(f"sample_weight sums to {total:g}; weights are counts: divide all by one large number.")
    mean = total / (weights > 0).sum()
    if mean > MOST_MEAN_WEIGHT and not are_counts(weights):
        warn_user(
            f"sample_weight counts copies of a sample, but has fractions and a mean of {mean:.3g}. If the weights come "
            "from a survey or say how important a sample is, divide them by their mean.",
            DataWarning,
        )
    return weights


def are_counts(weights: Array) -> bool:
    """Return whether all weights are whole numbers, and so may count equal rows."""
    return bool((weights == np.rint(weights)).all())


def read_groups(groups: Any, weights: Array) -> Index | None:
    """Return the number of each sample's group, which is left out as a whole; a sample without one is its own."""
    if groups is None:
        return None
    reject_masked(groups, "groups")
    names, n = np.asarray(groups, dtype=object), len(weights)  # a list of texts keeps its NaN
    if names.shape != (n,):
        raise InvalidInputError(f"groups must have one entry for each of the {n} samples; got the shape {names.shape}.")
    codes, found = pd.factorize(names)
    codes = np.where(codes < 0, len(found) + np.arange(n), codes)
    if np.ptp(codes[weights > 0]) == 0:
        raise InvalidInputError(
            f"groups holds {str(found[0])!r} alone among samples with a target and a weight, so that no group can be "
            "left out; omit groups."
        )
    return np.asarray(codes, dtype=np.intp)


def effective_perplexity(perplexity: float, weights: Array) -> float:
    """Return the perplexity to use: the default is lowered on small data, any other value must fit the data.

    Among n samples no perplexity is n or more. The default of 30 was not chosen by the user, so with fewer than 90
    samples it becomes a third of their number.
    """
    total = float(weights.sum())
    if total <= 1.5:
        raise InvalidInputError(
            f"sample_weight sums to {total:g}, but weights count as copies of samples; multiply them by "
            f"{len(weights) / total:.3g} to give the samples a weight of one on average."
        )
    if perplexity == DEFAULT_PERPLEXITY:
        return min(perplexity, largest_perplexity(total))
    if perplexity >= total:
        raise InvalidInputError(
            f"perplexity={perplexity} must be smaller than the number of samples, {total:g} (weights count as copies); "
            f"try {max(1.0, total / 3):.3g}."
        )
    return perplexity


def largest_perplexity(n: float) -> float:
    """Return the largest perplexity that still distinguishes near from far among n samples (decision 8)."""
    return max(n / 3, min(1.5, 2 * n / 3))


def check_memory(n: int) -> None:
    """Raise InvalidInputError if the n×n arrays of affinity (single precision) and map (double) exceed the memory."""
    needed, there = 12 * n * n, physical_memory()  # 4 + 8 bytes per pair
    if needed > there:
        raise InvalidInputError(
            f"{n} samples need two n×n arrays of {needed / 1e9:.0f} GB together, and this machine has "
            f"{there / 1e9:.0f} GB. Give n_prototypes: memory then grows linearly with the samples (affinity='auto')."
        )


def physical_memory() -> float:
    """Return the memory of this machine in bytes; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def check_distances(D: Array) -> Array:
    """Check that distances are square, symmetric, non-negative and zero on the diagonal; return them symmetrized."""
    if D.shape[0] != D.shape[1]:
        raise InvalidInputError(f"X must be a square matrix of distances for metric='precomputed'; got {D.shape}.")
    if (D < 0).any():
        raise InvalidInputError(f"Negative values in data passed to metric='precomputed': X holds {D.min()}.")
    size = float(D.max())  # tolerances are relative to the largest distance
    if np.abs(D.diagonal()).max() > 1e-8 * size:
        raise InvalidInputError("X has a sample at a distance from itself; give distances, not similarities.")
    gap = float(np.abs(D - D.T).max())
    if gap > 1e-8 * size:
        raise InvalidInputError(f"X is not symmetric (by up to {gap:.3g}); give (X + X.T) / 2 if that is meant.")
    return 0.5 * (D + D.T)  # so that it does not matter which of two entries is read


def check_graph(estimator: Any, X: Any) -> sparse.csr_array | None:
    """Return the similarities of the samples (n, n) that `affinity` gives, or X if it is "precomputed"; else None."""
    given, n = estimator.affinity, X.shape[0]
    if isinstance(given, Integral) or (isinstance(given, str) and given != "precomputed"):
        return None
    if estimator.metric == "precomputed":
        raise InvalidInputError("affinity takes similarities; give X as features, not as metric='precomputed'.")
    graph = sparse.csr_array(check_array(X if isinstance(given, str) else given, accept_sparse="csr", dtype=np.float64))
    if graph.shape != (n, n):
        raise InvalidInputError(f"affinity must be similarities of the {n} samples, ({n}, {n}); got {graph.shape}.")
    if graph.nnz and graph.data.min() < 0:
        raise InvalidInputError(f"affinity must not be negative, but holds {graph.data.min()}; give similarities.")
    if not (graph - sparse.diags_array(graph.diagonal())).count_nonzero():
        raise InvalidInputError("affinity has no entry between two different samples, so there is no graph to reduce.")
    return graph


def reject_text(X: Any, estimator: Any) -> None:
    """Raise InvalidInputError if a data frame has gaps, or columns that are not numbers, such as texts or dates."""
    if hasattr(X, "to_pandas"):  # a frame of polars or Arrow
        with suppress(ImportError):  # polars needs pyarrow for it
            X = X.to_pandas()
    if not isinstance(X, pd.DataFrame):
        return
    cure = f"make_pipeline(TablePreparer(), {type(estimator).__name__}()).fit(X, y)."
    cure = f"distreduce.tables.TablePreparer turns texts, dates and gaps into numbers: {cure}"
    other = [not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes]
    for place in np.flatnonzero(X.isna().to_numpy().any(axis=0) | other):
        column, cells = X.iloc[:, place], X.iloc[:, place].dropna()
        try:
            cells.astype(np.float64)
        except (TypeError, ValueError) as error:
            strange = cells[pd.to_numeric(cells, errors="coerce").isna()]  # none among dates
            has = f"{column.name!r} has {str((strange if len(strange) else cells).iloc[0])!r}"
            raise InvalidInputError(f"X has a column that is not of numbers: {has}. {cure}") from error
        if len(cells) < len(column):
            raise InvalidInputError(f"Input X contains NaN: {len(column) - len(cells):,} in {column.name!r}. {cure}")


def reject_masked(X: Any, name: str = "X") -> None:
    """Raise InvalidInputError for masked cells: NumPy would hand on what lies under the mask."""
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        cure = f"fill them ({name}.filled(…)), or drop their rows."
        raise InvalidInputError(f"{name} is a masked array with {int(X.mask.sum())} masked cells; {cure}")


def check_spread(X: Any, n_distinct: int, *, precomputed: bool) -> None:
    """Raise InvalidInputError if all samples are equal."""
    if precomputed:
        spread = bool(np.asarray(X).max() > 0)
    elif sparse.issparse(X):
        spread = n_distinct > 1 and abs(X - X[np.zeros(X.shape[0], dtype=int)]).max() > 0
    else:
        # Ends at the first block with another row.
        spread = any((X[rows] != X[0]).any() for rows in blocks(len(X), BLOCK_ROWS))
    if not spread:
        raise InvalidInputError(
            "X is constant: all samples have the same features, so there is no geometry to reduce. "
            "Remove duplicates or give other features."
        )


def power_of_two_unit(X: Any) -> float:
    """Return a power of two near the largest entry of X: dividing by it is exact and keeps squares in range."""
    largest = float(max(X.max(), -X.min()))
    return float(2.0 ** np.clip(np.round(np.log2(largest)), -1000, 1000)) if largest > 0 else 1.0


def own_generator(random_state: Any) -> RandomState:
    """Return the generator of one fit; without a seed a new one, so that NumPy's global generator is not used."""
    return RandomState() if random_state is None else check_random_state(random_state)


def require_seed(estimator: Any) -> None:
    """Raise InvalidInputError for a checkpoint without a seed: no later fit could ever have the same start."""
    if estimator.checkpoint is not None and estimator.random_state is None:
        raise InvalidInputError(
            "checkpoint needs random_state, such as random_state=0: a fit can only resume from the start that it had."
        )


def read_init(estimator: Any, merged: Merged, n: int, *, blind: bool) -> Any:
    """Return `init` as a name, or as an array with one row per distinct sample; a `blind` one sees no targets."""
    init, m = estimator.init, estimator.n_prototypes
    if isinstance(init, str):
        if init == "identity" and m not in (None, n):
            raise InvalidInputError("init='identity' needs n_prototypes=None (one prototype per sample).")
        return "spectral" if init == "auto" and blind else init
    plan = init.toarray() if sparse.issparse(init) else np.asarray(init)
    k = n if m is None else m
    # Indices, or non-negative shares with no empty row.
    good = (
        (plan.ndim == 1 and plan.shape == (n,) and plan.dtype.kind in "iu" and plan.min() >= 0 and plan.max() < k)
        or (plan.shape == (n, k) and np.isfinite(plan).all() and (plan >= 0).all() and (plan.sum(axis=1) > 0).all())
    )  # fmt: skip
    if not good:
        raise InvalidInputError(
            f"init must be a name, {n} prototype numbers below {k}, or non-negative shares of shape ({n}, {k}) "
            f"with no empty row; got an array of shape {plan.shape} and type {plan.dtype}."
        )
    # Indices become shares of one.
    if plan.ndim == 1:
        plan = sparse.csr_array((np.ones(n), plan, np.arange(n + 1)), shape=(n, k))
    if m in (None, n):
        return _balanced_coupling(sparse.csr_array(plan), merged)
    # If there are no more distinct samples than prototypes, each is a prototype, whatever `init` says.
    return plan[merged.rows] if k < len(merged.rows) else "identity"


def _balanced_coupling(plan: sparse.csr_array, merged: Merged) -> sparse.csr_array:
    """Return a coupling for one prototype per sample, in the order of the fit; each must carry its sample's weight."""
    if not merged.trivial:
        raise InvalidInputError("init as an array needs distinct samples when n_prototypes is None.")
    plan = plan[merged.rows][:, merged.rows]
    # The balanced T-step keeps both marginals, so the start must have them.
    carried = merged.weights @ (plan.multiply(1.0 / plan.sum(axis=1)[:, None]))
    worst = int(np.abs(carried - merged.weights).argmax())
    if abs(carried[worst] - merged.weights[worst]) > 1e-6 * merged.weights[worst]:
        raise InvalidInputError(
            "init must give each prototype the weight of its sample when n_prototypes is None; prototype "
            f"{merged.rows[worst]} gets {carried[worst]:.3g} instead of {merged.weights[worst]:.3g}. "
            "Use init='auto', or give n_prototypes."
        )
    return plan
