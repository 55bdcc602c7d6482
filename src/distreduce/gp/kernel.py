"""SDRKernel: a GPyTorch kernel on the embedding of a fitted reduction."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from distreduce.estimators import SDR, DistR
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.gp.torch_map import TorchMap
from distreduce.mapping import KernelMap


class SDRKernel(Kernel):
    r"""A kernel on x that applies a base kernel to the embedding.

    .. math:: k(x, x') = k_{\text{base}}(z(x), z(x')), \qquad z(x) = K(x, X)\,L

    The map z is frozen (buffers); the parameters of the base kernel are trained. Use it wherever GPyTorch or BoTorch
    accepts a kernel: in exact and variational models (inducing points live in the space of x), in batches, sums and
    products. The map needs inputs on the scale it was fitted on: with an input transform (``Normalize`` of BoTorch),
    fit the reduction to the transformed inputs.

    Parameters
    ----------
    sdr_or_map : SDR, DistR, KernelMap or TorchMap
        A fitted reduction or its ``map_``. A TorchMap is not copied, so that several kernels can share it.
    base_kernel : gpytorch.kernels.Kernel, optional
        Kernel on the p-dimensional embedding; ``ScaleKernel(RBFKernel(ard_num_dims=p))`` by default.
    active_dims : sequence of int, optional
        Columns of x that the map was fitted to, if x has further columns.
    batch_shape : torch.Size, optional
        Batch shape of the default base kernel; a given base kernel is used for every batch.
    **kwargs
        Passed on to ``gpytorch.kernels.Kernel``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> kernel = SDRKernel(SDR(random_state=0).fit(X, X[:, 0])).double()
    >>> kernel(torch.from_numpy(X)).shape
    torch.Size([30, 30])
    """

    def __init__(
        self,
        sdr_or_map: SDR | DistR | KernelMap | TorchMap,
        base_kernel: Kernel | None = None,
        active_dims: Any = None,
        batch_shape: torch.Size | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(active_dims=active_dims, batch_shape=batch_shape, **kwargs)
        self.map = _torch_map(sdr_or_map)
        if self.active_dims is not None and len(self.active_dims) != self.map.n_features:
            raise InvalidInputError(
                f"active_dims names {len(self.active_dims)} columns, but the map was fitted to "
                f"{self.map.n_features} features; give one column per feature."
            )
        if base_kernel is None:
            shape = self._batch_shape
            rbf = RBFKernel(ard_num_dims=self.map.n_components, batch_shape=shape)
            base_kernel = ScaleKernel(rbf, batch_shape=shape)
        elif not isinstance(base_kernel, Kernel):
            raise InvalidTypeError(f"base_kernel must be a gpytorch Kernel; got {type(base_kernel).__name__}.")
        self.base_kernel = base_kernel

    def __call__(self, x1: Tensor, x2: Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Lazy covariance of x1 and x2; a wrong number of features raises InvalidInputError now, not at evaluation."""
        # With active_dims, GPyTorch selects the columns later, and `forward` sees the selected ones.
        if self.active_dims is None:
            for x in (x1,) if x2 is None else (x1, x2):
                self.map.check(x.unsqueeze(1) if x.dim() == 1 else x)  # GPyTorch reads a vector as one column
        return super().__call__(x1, x2, *args, **kwargs)

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> Any:
        """Covariance k_base(z(x1), z(x2)), or its diagonal; equal inputs are mapped once."""
        if last_dim_is_batch:
            raise InvalidInputError(
                "SDRKernel does not accept last_dim_is_batch: the map needs all features together. For an additive "
                "kernel over the embedding, sum base kernels that have active_dims."
            )
        # Training calls with equal inputs: one pass through the map, unless their gradients must be separated.
        z1 = self._places(x1)
        same = x1 is x2 or (not x1.requires_grad and not x2.requires_grad and torch.equal(x1, x2))
        z2 = z1 if same else self._places(x2)
        return self.base_kernel(z1, z2, diag=diag, **params)

    def num_outputs_per_input(self, x1: Tensor, x2: Tensor) -> int:
        """Number of outputs of the base kernel at points of the embedding."""
        p = self.map.n_components
        z1, z2 = (x.new_empty(()).expand(*x.shape[:-1], p) for x in (x1, x2))  # views of one number: only shapes matter
        return int(self.base_kernel.num_outputs_per_input(z1, z2))

    def prediction_strategy(self, *args: Any, **kwargs: Any) -> Any:
        """Prediction strategy of the base kernel, whose structure (such as low rank) this covariance shares."""
        return self.base_kernel.prediction_strategy(*args, **kwargs)

    def expand_batch(self, *sizes: Any) -> SDRKernel:
        """This kernel for a larger batch shape; map and parameters are shared, not copied."""
        shape = torch.Size(sizes if isinstance(sizes[0], int) else sizes[0])
        torch.broadcast_shapes(shape, self.batch_shape)  # type: ignore[no-untyped-call]  # raises if they do not fit
        return self if shape == self.batch_shape else self._with(self.base_kernel, shape)

    def __getitem__(self, index: Any) -> SDRKernel:
        """The kernels of some batches. They share the map, which has no batches and may be large."""
        if not self.batch_shape:
            return self
        base, shape = self.base_kernel, self.base_kernel.batch_shape
        # Number of the base kernel's batch for each chosen one: it may have fewer batches than this kernel.
        chosen = torch.arange(shape.numel()).reshape(shape).expand(self.batch_shape)[index]
        if shape:
            base = base[torch.unravel_index(chosen, shape)]
        return self._with(base, chosen.shape)

    def _with(self, base_kernel: Kernel, batch_shape: torch.Size) -> SDRKernel:
        new = SDRKernel(self.map, base_kernel, active_dims=self.active_dims, batch_shape=batch_shape)
        new.training = self.training  # a new module is in training mode
        return new

    def _places(self, x: Tensor) -> Tensor:
        z: Tensor = self.map(x)
        # A base kernel with fewer batch dimensions than this kernel answers with as many as its inputs have.
        shape = torch.broadcast_shapes(z.shape[:-2], self._batch_shape)  # type: ignore[no-untyped-call]
        return z.expand(*shape, *z.shape[-2:])


def _torch_map(source: SDR | DistR | KernelMap | TorchMap) -> TorchMap:
    if isinstance(source, TorchMap):
        return source
    if isinstance(source, KernelMap):
        return TorchMap(source)
    if isinstance(source, (SDR, DistR)):
        check_is_fitted(source)
        return TorchMap(source.map_)
    raise InvalidTypeError(
        f"sdr_or_map must be a fitted SDR or DistR, or its map_; got {type(source).__name__}. "
        "Of a pipeline, give the reduction, and transform the inputs by the steps before it."
    )
