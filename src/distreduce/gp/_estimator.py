"""Base of the GP estimators: how they read X, and how their hyperparameters are trained."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.estimators import SDR
from distreduce.estimators._mixins import SavingMixin
from distreduce.estimators._targets import require_targets
from distreduce.estimators._validate import read_groups, reject_masked, reject_text
from distreduce.gp._hyperparameters import Training
from distreduce.sharding.dask_rows import gather

CHUNK = 20_000  # samples that a thread predicts at once
Result = TypeVar("Result")


def read_new_samples(estimator: Any, X: Any) -> Array:
    """Return samples for a fitted model, in single precision if they are: :func:`by_chunks` converts parts of them."""
    check_is_fitted(estimator)
    reject_masked(X)
    return np.asarray(validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32]))


def by_chunks(function: Callable[[Array], Result], X: Array, pool: Workers = SERIAL) -> list[Result]:
    """Return the results for chunks of samples, whose size bounds the memory for any number of them.

    A chunk is in double precision and in one memory order, on which the rounding of sums depends.
    """

    def run(chunk: int, _: int) -> Result:
        return function(np.ascontiguousarray(X[chunk * CHUNK : (chunk + 1) * CHUNK], dtype=np.float64))

    return pool.run(run, -(-len(X) // CHUNK))


class BaseGP(SavingMixin, BaseEstimator):
    """An estimator with a GP inside; subclasses add the likelihood."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gp_optimizer": [StrOptions({"lbfgs", "adam"})],
        "gp_steps": [Interval(Integral, 1, None, closed="left"), None],
        "gp_lr": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": SDR._parameter_constraints["n_jobs"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        gp_optimizer: str = "lbfgs",
        gp_steps: int | None = None,
        gp_lr: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read_inputs(self, X: Any, y: Any) -> Array:
        """Check the parameters and X, and that there is a y."""
        self._validate_params()
        require_targets(self, y)
        reject_masked(X)
        reject_text(X, self)
        # One memory order, whatever was given: sums over the columns of a data frame would round differently.
        return np.asarray(validate_data(self, gather(X), dtype=np.float64, order="C", ensure_min_samples=2))

    def _read_groups(self, groups: Any, weights: Array) -> Index | None:
        """Return the groups of the samples that have a weight, and set whether they are periods."""
        found, dtype = read_groups(groups, weights), getattr(groups, "dtype", None)
        self._periods = isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)
        return None if found is None else found[weights > 0]

    def _training(self, *, lbfgs_steps: int, adam_steps: int) -> Training:
        """The training of hyperparameters, with these steps unless `gp_steps` is given."""
        default = lbfgs_steps if self.gp_optimizer == "lbfgs" else adam_steps
        return Training(self.gp_optimizer, self.gp_steps or default, self.gp_lr)
