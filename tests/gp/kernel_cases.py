"""A map, inputs and kernels for the tests of SDRKernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from distreduce.gp.kernel import SDRKernel
from distreduce.kernels import RBF
from distreduce.mapping import KernelMap

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def numpy_map(d: int = 3, *, n: int = 20, p: int = 2, seed: int = 0) -> KernelMap:
    rng = np.random.default_rng(seed)
    return KernelMap(RBF(np.linspace(1.0, 2.0, d)), rng.normal(size=(n, d)), rng.normal(size=(n, p)), unit=2.0)


def rows(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 1) -> torch.Tensor:
    return torch.tensor(2.0 * np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def two_kernels(dtype: torch.dtype = torch.float64, **options: Any) -> SDRKernel:
    """A batch of two that differ in every parameter."""
    kernel = SDRKernel(numpy_map(), batch_shape=torch.Size([2]), **options).to(dtype)
    kernel.base_kernel.outputscale = torch.tensor([0.5, 2.0])
    kernel.base_kernel.base_kernel.lengthscale = torch.tensor([[[1.0, 2.0]], [[0.7, 0.3]]])
    return kernel
