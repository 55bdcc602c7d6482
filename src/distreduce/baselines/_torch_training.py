"""Training shared by the deep competitors: Adam, random numbers of its own, refusal of what is not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import gpytorch
import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from numpy.typing import NDArray
from torch import Tensor, nn

from distreduce.estimators._validate import own_generator
from distreduce.exceptions import NumericalError


@contextmanager
def own_random_numbers(random_state: Any) -> Iterator[None]:
    """Draw torch's numbers from `random_state` inside, and leave torch's generator as it was."""
    seed = int(own_generator(random_state).randint(2**31 - 1))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def exact_algebra() -> Iterator[None]:
    """Cholesky at every size: GPyTorch would turn to conjugate gradients and random probes at 800 points."""
    with ExitStack() as settings:
        settings.enter_context(gpytorch.settings.fast_computations(False, False, False))
        settings.enter_context(gpytorch.settings.max_cholesky_size(2**62))
        yield


def adam(loss: Callable[[], Tensor], learning_rates: Mapping[nn.Module, float], n_epochs: int) -> list[float]:
    """Minimise a loss of the whole training set by Adam: an epoch is one step.

    Parameters
    ----------
    loss : callable
        The loss at the present parameters.
    learning_rates : mapping of modules to numbers
        What is trained, and Adam's step for it.
    n_epochs : int
        Number of steps.

    Returns
    -------
    list of float
        Loss before each step.
    """
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
    # Checked before the step: parameters that are not finite would only be noticed at the next one, if there is one.
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
    """A tensor of its own: torch refuses negative strides, and warns of arrays that cannot be written to."""
    return torch.tensor(np.ascontiguousarray(array))


def row_blocks(rows: Tensor, size: int) -> list[Tensor]:
    """The rows in order, `size` at a time."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]
