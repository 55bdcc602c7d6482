"""Training and prediction that the deep baselines share: Adam, seeds, chunks, and the base of the regressors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import gpytorch
import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from distreduce._utils.typing import Self
from distreduce.estimators._targets import read_known_numbers, require_targets
from distreduce.estimators._validate import own_generator
from distreduce.exceptions import NumericalError
from distreduce.gp._target_scale import TargetScale
from distreduce_paper.problems import Array

CHUNK = 512  # rows that are predicted at once


class TorchRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """A regressor on tensors; subclasses train on standardised targets and predict their mean and deviation."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train the model on X (n_samples, n_features) and y, (n_samples,) or (n_samples, n_targets) in any units."""
        self._validate_params()
        require_targets(self, y)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        y = read_known_numbers(y, len(X))
        # The initial values of the models suit targets of unit variance.
        self._target_scale = TargetScale.of(y)
        with own_random_numbers(self.random_state):
            self._train_model(as_tensor(X), as_tensor(self._target_scale.standardise(y)))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets and, with `return_std`, their standard deviations, noise included, in the units of y.

        The prediction of a sample does not depend on the rest of its batch.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        mean, std = self._target_scale.in_units(*predict_in_chunks(self._mean_and_std, X))
        return (mean, std) if return_std else mean

    def _train_model(self, X: Tensor, targets: Tensor) -> None:
        raise NotImplementedError

    def _mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def predict_in_chunks(function: Callable[[Tensor], tuple[Tensor, ...]], X: Array) -> tuple[Array, ...]:
    """Apply a function to blocks of rows of X, without gradients, and concatenate what it returns."""
    with torch.no_grad():
        parts = [function(rows) for rows in row_blocks(as_tensor(X), CHUNK)]
    return tuple(torch.cat(columns).numpy() for columns in zip(*parts, strict=True))


@contextmanager
def own_random_numbers(random_state: Any) -> Iterator[None]:
    """Seed torch from `random_state`, and restore torch's own generator at the end."""
    seed = int(own_generator(random_state).randint(2**31 - 1))
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would also seed the GPUs, whose state is not restored.
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def exact_algebra() -> Iterator[None]:
    """Use Cholesky at every size: above 800 points GPyTorch would use conjugate gradients with random probes."""
    with ExitStack() as settings:
        settings.enter_context(gpytorch.settings.fast_computations(False, False, False))
        settings.enter_context(gpytorch.settings.max_cholesky_size(2**62))
        yield


def adam(loss: Callable[[], Tensor], learning_rates: Mapping[nn.Module, float], n_epochs: int) -> list[float]:
    """Minimise a loss of the whole training set by Adam; an epoch is one step. Returns the loss before each step."""
    # One group per module, because network and GP have rates of their own.
    groups = [{"params": list(module.parameters()), "lr": rate} for module, rate in learning_rates.items()]
    optimizer = torch.optim.Adam(groups)
    return [_step(optimizer, loss, epoch) for epoch in range(n_epochs)]


def _step(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor], epoch: int) -> float:
    optimizer.zero_grad()
    try:
        value = loss()
        torch.autograd.backward(value)
    except (NanError, NotPSDError) as error:
        raise _diverged(epoch) from error
    # Checked before the step: after it, NaN in the parameters would only be noticed at the next one, if there is one.
    gradients = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
    if not (torch.isfinite(value) and all(torch.isfinite(gradient).all() for gradient in gradients)):
        raise _diverged(epoch)
    optimizer.step()
    return value.item()


def _diverged(epoch: int) -> NumericalError:
    return NumericalError(
        f"Training left the range of finite numbers in epoch {epoch + 1}: standardise the features of X "
        "(StandardScaler) or lower learning_rate."
    )


def as_tensor(array: NDArray[Any]) -> Tensor:
    """A copy as a tensor: torch rejects negative strides and warns about read-only arrays."""
    return torch.tensor(np.ascontiguousarray(array))


def row_blocks(rows: Tensor, size: int) -> list[Tensor]:
    """Split the rows into consecutive blocks of `size`."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]
