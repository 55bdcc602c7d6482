"""The feature networks of deep kernel learning: a perceptron for tables, a LeNet for images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from distreduce.exceptions import InvalidInputError
from distreduce_paper.baselines._torch_training import row_blocks

# Two 5 × 5 convolutions, each followed by a pooling that halves the side, leave no pixel of a smaller image.
_SMALLEST_SIDE = 16
# Numbers in a block of rows, where a row counts as at least a thousand (the width of the first hidden layer). This
# bounds the memory of a pass, in which the convolutions of an image take about twenty times its size.
_BLOCK_NUMBERS = 2**20


class FeatureNetwork(nn.Module):
    """z(x): a network whose outputs are scaled so that those of the training inputs fill [−1, 1].

        z(x) = 2 (h(x) − min h) / (max h − min h) − 1

    with one minimum and one maximum over all training inputs and all outputs of the network h. During training they
    follow the network; :meth:`freeze` fixes them for new inputs.
    """

    lowest: Tensor
    highest: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        # Buffers, so that the bounds are in the state_dict; until `freeze` they mean no scaling.
        self.register_buffer("lowest", torch.tensor(-1.0, dtype=torch.float64))
        self.register_buffer("highest", torch.tensor(1.0, dtype=torch.float64))

    def forward(self, X: Tensor) -> Tensor:
        """Features of training inputs, scaled by their own bounds."""
        raw = self.raw(X)
        return self._scale(raw, raw.min(), raw.max())

    def raw(self, X: Tensor) -> Tensor:
        """h(X) in float64, in blocks; several blocks are recomputed for the gradient, to save memory."""
        dtype = next(self.network.parameters()).dtype
        blocks = row_blocks(X.to(dtype), max(1, _BLOCK_NUMBERS // max(1000, X.shape[1])))
        # Checkpointing costs a second forward pass, so it is for several blocks with gradients only.
        if len(blocks) == 1 or not torch.is_grad_enabled():
            return torch.cat([self.network(block) for block in blocks]).double()
        return torch.cat([checkpoint(self.network, block, use_reentrant=False) for block in blocks]).double()

    def freeze(self, X: Tensor) -> Tensor:
        """Fix the bounds to those of the training inputs X and return their features.

        From now on the network computes in float64, so that the features of a row do not depend on its batch.
        """
        self.double().requires_grad_(False)
        raw = self.raw(X)
        self.lowest, self.highest = raw.min(), raw.max()
        return self._scale(raw, self.lowest, self.highest)

    def features(self, X: Tensor) -> Tensor:
        """Features of new inputs, scaled by the bounds of :meth:`freeze`."""
        return self._scale(self.raw(X), self.lowest, self.highest)

    @staticmethod
    def _scale(raw: Tensor, lowest: Tensor, highest: Tensor) -> Tensor:
        # A dead network returns the same number for every input: its features are then all −1, not NaN.
        span = (highest - lowest).clamp_min(torch.finfo(raw.dtype).tiny)
        return 2.0 * (raw - lowest) / span - 1.0


def multilayer_perceptron(n_features: int, hidden: Sequence[int], n_components: int) -> nn.Module:
    """Fully connected network d – hidden … – p with ReLU between the layers."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise([n_features, *hidden]):
        layers += [nn.Linear(n_in, n_out, dtype=torch.float64), nn.ReLU()]
    last = [n_features, *hidden][-1]
    return nn.Sequential(*layers, nn.Linear(last, n_components, dtype=torch.float64))


def convolutional_network(image_shape: tuple[int, int], hidden: Sequence[int], n_components: int) -> nn.Module:
    """Two 5 × 5 convolutions of 20 and 50 channels, each with 2 × 2 max pooling, then the fully connected layers.

    In float32: a convolution in float64 is many times slower on a CPU.
    """
    # A 5 × 5 convolution without padding takes four pixels off a side, a pooling halves the rest.
    height, width = ((((side - 4) // 2) - 4) // 2 for side in image_shape)
    convolutions = nn.Sequential(
        nn.Unflatten(1, (1, *image_shape)),
        # ReLU after the pooling gives the same numbers (it is monotone) on a quarter of the pixels.
        *(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.ReLU()),
        nn.Flatten(),
    )
    return nn.Sequential(convolutions, multilayer_perceptron(50 * height * width, hidden, n_components)).float()


def read_image_shape(image_shape: Any, n_features: int) -> tuple[int, int] | None:
    """Height and width of the images in the rows, or None if the rows are not images.

    "auto" treats rows as square images if their number of features is the square of a number of at least 16.
    """
    if image_shape is None:
        return None
    side = isqrt(n_features)
    if isinstance(image_shape, str):
        return (side, side) if side**2 == n_features and side >= _SMALLEST_SIDE else None
    height, width = image_shape
    if height * width != n_features:
        raise InvalidInputError(
            f"image_shape={image_shape!r} means {height * width} pixels, but X has {n_features} features: "
            "give the shape of one image, or None."
        )
    if min(height, width) < _SMALLEST_SIDE:
        raise InvalidInputError(
            f"image_shape={image_shape!r} is too small for the convolutions: both sides must be at least "
            f"{_SMALLEST_SIDE}. Use image_shape=None for a network without convolutions."
        )
    return height, width
