"""The feature networks: shapes, scaling, blocks, and which rows are images."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from distreduce.exceptions import InvalidInputError
from distreduce_paper.baselines import _networks
from distreduce_paper.baselines._networks import (
    FeatureNetwork,
    convolutional_network,
    multilayer_perceptron,
    read_image_shape,
)


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(7, 16 * 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def network() -> FeatureNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return FeatureNetwork(convolutional_network((16, 20), (30,), 4))


def test_perceptron_has_the_layers_of_wilson() -> None:
    layers = multilayer_perceptron(13, (1000, 500, 50), 2)
    shapes = [tuple(p.shape) for p in layers.parameters() if p.ndim == 2]
    assert shapes == [(1000, 13), (500, 1000), (50, 500), (2, 50)]


def test_convolutions_see_an_image_as_height_by_width() -> None:
    network = convolutional_network((16, 20), (), 1)
    seen: list[torch.Tensor] = []
    network[0][1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))  # type: ignore[index]
    network(torch.arange(320.0)[None])
    torch.testing.assert_close(seen[0][0, 0], torch.arange(320.0).reshape(16, 20), rtol=0, atol=0)


def test_training_features_fill_the_unit_interval(network: FeatureNetwork, images: torch.Tensor) -> None:
    Z = network(images)
    torch.testing.assert_close(torch.stack([Z.min(), Z.max()]), torch.tensor([-1.0, 1.0]).double())


def test_new_rows_are_scaled_by_the_bounds_of_the_training_rows(network: FeatureNetwork, images: torch.Tensor) -> None:
    frozen = network.freeze(images)
    torch.testing.assert_close(network.features(images[2:4]), frozen[2:4], rtol=0, atol=1e-12)


def test_dead_network_gives_finite_features() -> None:
    network = multilayer_perceptron(3, (), 2)
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.isfinite(FeatureNetwork(network)(torch.ones(4, 3))).all()


def gradient(network: FeatureNetwork, images: torch.Tensor) -> torch.Tensor:
    network.zero_grad()
    network.raw(images).square().sum().backward()
    return torch.cat([p.grad.ravel() for p in network.network.parameters() if p.grad is not None])


def test_gradient_in_blocks_equals_the_gradient_of_all(
    network: FeatureNetwork, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    network.double()
    whole = gradient(network, images)
    monkeypatch.setattr(_networks, "_BLOCK_NUMBERS", 3000)  # three rows a block
    torch.testing.assert_close(gradient(network, images), whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("image_shape", "n_features", "expected"),
    [
        ("auto", 784, (28, 28)),
        ("auto", 256, (16, 16)),
        ("auto", 225, None),  # a square, but too small for the convolutions
        ("auto", 320, None),
        ((16, 20), 320, (16, 20)),
        (None, 784, None),
    ],
)
def test_rows_that_are_images(image_shape: Any, n_features: int, expected: Any) -> None:
    assert read_image_shape(image_shape, n_features) == expected


def test_shape_of_another_number_of_pixels_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="560 pixels, but X has 784 features"):
        read_image_shape((28, 20), 784)


def test_image_too_small_for_the_convolutions_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 16"):
        read_image_shape((8, 8), 64)
