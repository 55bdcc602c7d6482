"""The out-of-sample map z(x) = K(x, X) L as a torch module: differentiable in x, on any device, in a state_dict."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import KernelMap

# Differences are exact but need a loop over the features; above this number a matrix product is several times faster.
_DIRECT_FEATURES = 64


class TorchMap(torch.nn.Module):
    r"""A fitted map, frozen, for tensors of shape (..., n, d).

    .. math:: z(x) = \sum_i k\big(x / u,\; x_i\big)\, L_i \in \mathbb{R}^p

    with the training inputs :math:`x_i` (in units of u), the coefficients L and the input kernel k (RBF, also ARD,
    rational quadratic, linear). All numbers are buffers: they move with ``.to``, are in the ``state_dict``, and are
    not trained. They stay in float64, and z has the dtype of x, until the module itself is cast.

    Parameters
    ----------
    fitted : KernelMap
        ``SDR().fit(X, y).map_``.

    Raises
    ------
    InvalidInputError
        The map takes distances (``metric="precomputed"``) or sparse rows, or its kernel is a Python function.

    Examples
    --------
    >>> from distreduce import SDR
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = SDR(random_state=0).fit(X, X[:, 0])
    >>> z = TorchMap(model.map_)(torch.from_numpy(X))
    >>> bool(np.allclose(z, model.transform(X)))
    True
    """

    inputs: Tensor
    coefficients: Tensor
    unit: Tensor
    length_scale: Tensor
    alpha: Tensor
    predicted: Tensor

    def __init__(self, fitted: KernelMap) -> None:
        super().__init__()
        _check_features(fitted)
        kernel = fitted.kernel
        self.kernel_type = type(kernel)
        self._keep("inputs", fitted.inputs)
        self._keep("coefficients", fitted.coefficients)
        self._keep("unit", fitted.unit)
        self.predictor: TorchMap | None = None
        width = self.n_features
        if fitted.predictions is not None:  # further features
            self._keep("predicted", fitted.predictions.shares)
            self.predictor = TorchMap(fitted.predictions.predictor)
            width += self.predictor.n_components
        # Only the buffers of this kernel, so that load_state_dict rejects the state of another kernel.
        if isinstance(kernel, (RBF, RationalQuadratic)):
            # One per feature in any case, so that maps with and without ARD can load each other's state.
            self._keep("length_scale", np.broadcast_to(kernel.length_scale, width))
        if isinstance(kernel, RationalQuadratic):
            self._keep("alpha", kernel.alpha)

    @property
    def n_features(self) -> int:
        """Number d of input features."""
        return self.inputs.shape[1]

    @property
    def n_components(self) -> int:
        """Dimension p of the embedding."""
        return self.coefficients.shape[1]

    def forward(self, x: Tensor) -> Tensor:
        """Place z(x) (..., n, p) of the rows of x (..., n, d), in the dtype of x."""
        self.check(x)
        dtype = torch.promote_types(x.dtype, self.inputs.dtype)
        # Flatten the batches: with batch dimensions torch would copy the training inputs for each of them.
        flat, inputs = x.reshape(-1, self.n_features).to(dtype), self.inputs.to(dtype)
        rows = flat / self.unit
        if self.predictor is not None:
            shares = torch.softmax(self.predictor(flat), dim=1)
            rows, inputs = torch.hstack([rows, shares]), torch.hstack([inputs, self.predicted.to(dtype)])
        z = self._similarity(rows, inputs) @ self.coefficients.to(dtype)
        return z.to(x.dtype).reshape(*x.shape[:-1], self.n_components)

    def check(self, x: Tensor) -> None:
        """Raise InvalidInputError unless x has rows of as many floating-point features as the map was fitted to."""
        if x.dim() < 2 or x.shape[-1] != self.n_features:
            raise InvalidInputError(
                f"x has shape {tuple(x.shape)}, but the map was fitted to {self.n_features} features: give "
                f"(..., n, {self.n_features}), or choose the columns with active_dims."
            )
        if not x.is_floating_point():
            raise InvalidInputError(f"x holds {x.dtype} numbers; give floating-point ones, such as x.double().")

    def _similarity(self, rows: Tensor, inputs: Tensor) -> Tensor:
        """K(rows, X) (n, n_train), by the formulas of `distreduce.kernels` on inputs divided by the length scale."""
        if self.kernel_type is Linear:
            return rows @ inputs.mT
        sq_distances = squared_distances(rows / self.length_scale, inputs / self.length_scale)
        if self.kernel_type is RBF:
            return torch.exp(-0.5 * sq_distances)
        return (1.0 + sq_distances / (2.0 * self.alpha)) ** -self.alpha

    def _keep(self, name: str, value: Any) -> None:
        # A copy: load_state_dict writes in place, and must not write into the estimator's arrays.
        self.register_buffer(name, torch.tensor(np.array(value, dtype=np.float64)))


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """|a_i − b_j|² (n, m) between rows, twice differentiable in a even where it is zero; b is a constant."""
    result: Tensor = _SquaredDistances.apply(a, b)  # type: ignore[no-untyped-call]
    return result


class _SquaredDistances(torch.autograd.Function):
    """torch.cdist squared, with ∂/∂a_i Σ_j g_ij |a_i − b_j|² = 2 (a_i Σ_j g_ij − Σ_j g_ij b_j).

    The derivative of cdist has no derivative, and autograd of summed squared differences would hold n·m·d numbers.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        if a.shape[-1] <= _DIRECT_FEATURES:
            return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
        origin = b.mean(dim=-2, keepdim=True)  # expanded squares lose the digits of a common offset
        return torch.cdist(a - origin, b - origin, compute_mode="use_mm_for_euclid_dist").square()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        a, b = ctx.saved_tensors
        return 2.0 * (a * gradient.sum(dim=-1, keepdim=True) - gradient @ b), None


def _check_features(fitted: KernelMap) -> None:
    """Raise InvalidInputError unless the map takes dense features and its kernel has a known formula."""
    if fitted.inputs is None:
        raise InvalidInputError(
            "The map was fitted with metric='precomputed' and takes distances to the training samples, not features; "
            "fit with metric='euclidean' to build a kernel on it."
        )
    if sparse.issparse(fitted.inputs):
        raise InvalidInputError("The map was fitted to sparse rows, which torch cannot map; fit it to X.toarray().")
    if type(fitted.kernel) not in (RBF, RationalQuadratic, Linear):  # a subclass may compute something else
        raise InvalidInputError(
            f"The map's input kernel is {fitted.kernel!r}, whose formula is not known here; fit with input_kernel "
            "'rbf', 'rq' or 'linear', or an RBF, RationalQuadratic or Linear of distreduce.kernels."
        )
