"""What the regressor and the classifier of deep kernel learning share: parameters, training, prediction in chunks."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from distreduce._utils.typing import Array
from distreduce.baselines._gp_heads import ClassificationHead, RegressionHead
from distreduce.baselines._networks import FeatureNetwork
from distreduce.baselines._torch_training import adam, as_tensor, row_blocks

_CHUNK = 512


class BaseDKL(BaseEstimator):
    """Parameters and training of deep kernel learning."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like"],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "network_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "pretrained": ["boolean"],
        "pretraining_epochs": [Interval(Integral, 1, None, closed="left")],
        "pretraining_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    # Declared for the type checker: the constructors of the estimators set them.
    n_components: int
    n_epochs: int
    learning_rate: float | str
    network_learning_rate: float
    pretrained: bool
    pretraining_epochs: int
    pretraining_learning_rate: float

    def _train(self, X: Tensor, features: FeatureNetwork, head: RegressionHead | ClassificationHead) -> None:
        """Train network and GP together on the marginal likelihood."""
        rate = (0.01 if self.pretrained else 0.1) if self.learning_rate == "auto" else float(self.learning_rate)
        rates: dict[nn.Module, float] = {features: self.network_learning_rate, head: rate}
        self.loss_curve_ = adam(lambda: head.loss(features(X)), rates, self.n_epochs)
        with torch.no_grad():
            head.condition_on(features.freeze(X))

    def _pretrain(
        self, X: Tensor, y: Tensor, features: FeatureNetwork, n_outputs: int, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        """Train the network alone under a linear output layer, which is then dropped."""
        output = nn.Linear(self.n_components, n_outputs, dtype=torch.float64)
        rates = dict.fromkeys((features, output), self.pretraining_learning_rate)
        adam(lambda: loss(output(features.raw(X)), y), rates, self.pretraining_epochs)


def in_chunks(function: Callable[[Tensor], tuple[Tensor, ...]], X: Array) -> tuple[Array, ...]:
    """Apply a function to some rows of X at a time, without gradients, and join what it returns."""
    with torch.no_grad():
        parts = [function(rows) for rows in row_blocks(as_tensor(X), _CHUNK)]
    return tuple(torch.cat(columns).numpy() for columns in zip(*parts, strict=True))
