"""SDRKernel: its definition, batches, state, and rejected inputs."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251  # what GPyTorch asks of a kernel; nothing is loaded from a file
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from gp.kernel_cases import TOLERANCE, both_dtypes, numpy_map, rows, two_kernels
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    MultitaskKernel,
    RBFKernel,
    RBFKernelGrad,
    ScaleKernel,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from linear_operator import to_dense
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from distreduce import SDR, DistR
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.gp.kernel import SDRKernel
from distreduce.kernels import RationalQuadratic

# --- its definition


@both_dtypes
def test_it_is_the_base_kernel_on_the_embedding(dtype: torch.dtype) -> None:
    fitted, x, y = numpy_map(), rows(6, 3, dtype=dtype), rows(4, 3, dtype=dtype, seed=2)
    kernel = SDRKernel(fitted).to(dtype)
    kernel.base_kernel.outputscale = 3.0
    kernel.base_kernel.base_kernel.lengthscale = torch.tensor([0.5, 2.0])
    scaled = [fitted(a.numpy().astype(float)) / [0.5, 2.0] for a in (x, y)]
    expected = 3.0 * rbf_kernel(*scaled, gamma=0.5)
    np.testing.assert_allclose(kernel(x, y).to_dense().detach(), expected, atol=3 * TOLERANCE[dtype])


@pytest.mark.parametrize("estimator", [SDR(random_state=0), DistR(random_state=0)], ids=["SDR", "DistR"])
def test_a_fitted_reduction_will_do(estimator: Any) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    places = estimator.fit(X, X[:, 0]).transform(X)
    kernel = SDRKernel(estimator, RBFKernel()).double()
    kernel.base_kernel.lengthscale = 1.5
    expected = rbf_kernel(places, gamma=0.5 / 1.5**2)
    np.testing.assert_allclose(kernel(torch.from_numpy(X)).to_dense().detach(), expected, atol=1e-10)


def test_the_default_base_has_one_length_scale_a_dimension() -> None:
    assert SDRKernel(numpy_map(p=4)).base_kernel.base_kernel.lengthscale.shape == (1, 4)


def test_the_base_kernel_may_choose_dimensions_of_the_embedding() -> None:
    fitted, x = numpy_map(), rows(6, 3)
    kernel = SDRKernel(fitted, RBFKernel(active_dims=[1])).double()
    kernel.base_kernel.lengthscale = 1.0
    expected = rbf_kernel(fitted(x.numpy())[:, [1]], gamma=0.5)
    np.testing.assert_allclose(kernel(x).to_dense().detach(), expected, atol=1e-10)


@both_dtypes
@given(
    x=arrays.arrays(np.float64, (8, 3), elements=st.floats(-5, 5)),
    copies=st.lists(st.integers(0, 7), min_size=4, max_size=4),
)
def test_it_is_positive_semi_definite(dtype: torch.dtype, x: np.ndarray, copies: list[int]) -> None:
    points = torch.tensor(np.vstack([x, x[copies]]), dtype=dtype)
    matrix = SDRKernel(numpy_map()).to(dtype)(points).to_dense().double()
    assert torch.linalg.eigvalsh(matrix).min() > -10 * TOLERANCE[dtype]


@both_dtypes
@pytest.mark.parametrize("second", [None, 2], ids=["with_itself", "with_others"])
def test_diag_is_the_diagonal_of_the_matrix(dtype: torch.dtype, second: int | None) -> None:
    kernel, x = two_kernels(dtype), rows(2, 5, 3, dtype=dtype)
    y = x if second is None else rows(2, 5, 3, dtype=dtype, seed=second)
    expected = kernel(x, y).to_dense().diagonal(dim1=-1, dim2=-2)
    torch.testing.assert_close(kernel(x, y, diag=True), expected, atol=TOLERANCE[dtype], rtol=0.0)


@pytest.mark.parametrize("base", [RBFKernel(), MaternKernel(nu=2.5), LinearKernel()], ids=lambda k: type(k).__name__)
def test_gradients_in_both_inputs(base: gpytorch.kernels.Kernel) -> None:
    kernel = SDRKernel(numpy_map(), base).double()
    points = (rows(4, 3).requires_grad_(), rows(3, 3, seed=2).requires_grad_())
    assert torch.autograd.gradcheck(lambda x, y: kernel(x, y).to_dense(), points)


def test_gradients_of_equal_inputs_are_told_apart() -> None:
    """The matrix at x = y depends on both: neither may be taken for the other."""
    kernel, x = SDRKernel(numpy_map(), RBFKernel()).double(), rows(4, 3)
    points = (x.clone().requires_grad_(), x.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: kernel(a, b).to_dense(), points)


@both_dtypes
def test_gradients_at_the_training_inputs_are_finite(dtype: torch.dtype) -> None:
    fitted = numpy_map()
    points = torch.tensor(fitted.inputs * fitted.unit, dtype=dtype, requires_grad=True)
    kernel = SDRKernel(fitted, MaternKernel(nu=0.5)).to(dtype)
    (gradient,) = torch.autograd.grad(kernel(points).to_dense().sum(), points)
    assert gradient.isfinite().all()


# --- the map is evaluated once


@pytest.mark.parametrize(
    ("inputs", "evaluations"),
    [
        (lambda x: (x,), 1),
        (lambda x: (x, x), 1),
        (lambda x: (x, x.clone()), 1),
        (lambda x: (x.requires_grad_(),), 1),
        (lambda x: (x, x + 1), 2),
        (lambda x: (x, x.clone().requires_grad_()), 2),
    ],
    ids=["one", "same", "equal", "one_with_gradient", "different", "equal_with_gradient"],
)
@pytest.mark.parametrize("diag", [False, True])
def test_the_map_is_evaluated_once_for_equal_inputs(inputs: Any, evaluations: int, diag: bool) -> None:
    kernel, calls = SDRKernel(numpy_map()).double(), []
    kernel.map.register_forward_hook(lambda *_: calls.append(1))
    to_dense(kernel(*inputs(rows(5, 3)), diag=diag))
    assert len(calls) == evaluations


# --- batches


@both_dtypes
def test_a_batch_of_kernels_on_one_set_of_inputs(dtype: torch.dtype) -> None:
    kernel, x = two_kernels(dtype), rows(5, 3, dtype=dtype)
    matrix = kernel(x).to_dense()
    torch.testing.assert_close(matrix, torch.stack([kernel[i](x).to_dense() for i in range(2)]))


@pytest.mark.parametrize("index", [0, slice(1, 2), (1,), torch.tensor([1, 0, 1])], ids=str)
def test_an_index_takes_kernels_out_of_a_batch(index: Any) -> None:
    kernel, x = two_kernels(active_dims=[4, 0, 2]), rows(5, 5)
    torch.testing.assert_close(kernel[index](x).to_dense(), kernel(x).to_dense()[index])


@pytest.mark.parametrize("index", [(0,), (2, 1), (slice(None), 1), (slice(0, 2), slice(1, 2))], ids=str)
def test_an_index_into_a_batch_that_the_base_shares_in_part(index: Any) -> None:
    """Three times a batch of two: the first dimension is the kernel's own, the second the base kernel's."""
    kernel, x = two_kernels().expand_batch(torch.Size([3, 2])), rows(5, 3)
    torch.testing.assert_close(kernel[index](x).to_dense(), kernel(x).to_dense()[index])


def test_an_index_shares_the_map() -> None:
    kernel = two_kernels()
    assert kernel[0].map is kernel.map


@pytest.mark.parametrize("training", [False, True])
def test_an_index_keeps_the_mode(training: bool) -> None:
    assert two_kernels().train(training)[0].training is training


@pytest.mark.parametrize("sizes", [(torch.Size([3, 2]),), (3, 2), ([3, 2],)], ids=str)
def test_expand_batch_repeats_the_kernel(sizes: tuple[Any, ...]) -> None:
    kernel, x = two_kernels(), rows(5, 3)
    torch.testing.assert_close(kernel.expand_batch(*sizes)(x).to_dense(), kernel(x).to_dense().expand(3, 2, 5, 5))


def test_expand_batch_to_a_shape_that_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match="(?i)shape mismatch|broadcast"):
        two_kernels().expand_batch(torch.Size([3]))


def test_parameters_are_trained_through_an_expanded_kernel() -> None:
    kernel = two_kernels()
    kernel.expand_batch(torch.Size([3, 2]))(rows(5, 3)).to_dense().sum().backward()
    assert (kernel.base_kernel.raw_outputscale.grad != 0).all()


@pytest.mark.parametrize("index", [(slice(1, 4), slice(0, 2)), (..., 2, slice(None)), (0, slice(None), 3)], ids=str)
def test_a_part_of_the_lazy_matrix(index: Any) -> None:
    x = rows(5, 3)
    kernel = two_kernels() if len(index) == 3 else SDRKernel(numpy_map()).double()
    torch.testing.assert_close(to_dense(kernel(x)[index]), kernel(x).to_dense()[index])


# --- beside and inside other kernels


@pytest.mark.parametrize("combine", [lambda a, b: a + b, lambda a, b: a * b], ids=["sum", "product"])
@pytest.mark.parametrize("diag", [False, True])
def test_arithmetic_with_a_kernel_on_x(combine: Any, diag: bool) -> None:
    x, ours, other = rows(6, 3), SDRKernel(numpy_map()).double(), MaternKernel(ard_num_dims=3).double()
    found = to_dense(combine(ours, other)(x, diag=diag))
    expected = combine(*(to_dense(kernel(x, diag=diag)) for kernel in (ours, other)))
    torch.testing.assert_close(found, expected)


def test_a_scale_kernel_around_it_takes_over_its_active_dims() -> None:
    x, ours = rows(6, 5), SDRKernel(numpy_map(), active_dims=[4, 0, 2]).double()
    outer = ScaleKernel(ours).double()
    outer.outputscale = 2.0
    torch.testing.assert_close(outer(x).to_dense(), 2.0 * ours(x).to_dense())


def test_a_multitask_kernel_around_it() -> None:
    x, ours = rows(4, 3), SDRKernel(numpy_map()).double()
    tasks = MultitaskKernel(ours, num_tasks=2).double()
    expected = torch.kron(ours(x).to_dense(), tasks.task_covar_module.covar_matrix.to_dense())
    torch.testing.assert_close(tasks(x).to_dense(), expected)


def test_a_base_kernel_with_derivatives_in_the_embedding() -> None:
    fitted, x = numpy_map(), rows(4, 3)
    base = RBFKernelGrad().double()
    expected = base(torch.from_numpy(fitted(x.numpy()))).to_dense()
    torch.testing.assert_close(SDRKernel(fitted, base)(x).to_dense(), expected)


# --- state


def test_only_the_base_kernel_is_trained() -> None:
    names = {name for name, _ in SDRKernel(numpy_map()).named_parameters()}
    assert names == {"base_kernel.raw_outputscale", "base_kernel.base_kernel.raw_lengthscale"}


@both_dtypes
def test_a_state_dict_carries_map_and_parameters(dtype: torch.dtype) -> None:
    """Into a kernel on a map fitted to other data."""
    source, x = SDRKernel(numpy_map(seed=5)).to(dtype), rows(6, 3, dtype=dtype)
    source.base_kernel.outputscale = 3.0
    target = SDRKernel(numpy_map(seed=6)).to(dtype)
    target.load_state_dict(source.state_dict())
    torch.testing.assert_close(target(x).to_dense(), source(x).to_dense(), atol=0.0, rtol=0.0)


def test_a_state_dict_of_a_map_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="size mismatch"):
        SDRKernel(numpy_map(n=20)).load_state_dict(SDRKernel(numpy_map(n=21)).state_dict())


def pickled(kernel: SDRKernel) -> SDRKernel:
    return pickle.loads(pickle.dumps(kernel))  # noqa: S301  # our own bytes


@both_dtypes
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_copy_is_equal_and_stands_alone(copied: Any, dtype: torch.dtype) -> None:
    kernel, x = two_kernels(dtype), rows(6, 3, dtype=dtype)
    before = kernel(x).to_dense()
    other = copied(kernel)
    torch.testing.assert_close(other(x).to_dense(), before, atol=0.0, rtol=0.0)
    other.map.coefficients.zero_()
    torch.testing.assert_close(kernel(x).to_dense(), before, atol=0.0, rtol=0.0)


def test_casting_there_and_back_from_double_keeps_every_digit() -> None:
    """A kernel is made in float32, as all of GPyTorch's; the map's numbers are not rounded on the way to float64."""
    fitted = numpy_map()
    np.testing.assert_array_equal(SDRKernel(fitted).double().map.coefficients, fitted.coefficients)


# --- refusals


def test_an_unfitted_reduction() -> None:
    with pytest.raises(NotFittedError):
        SDRKernel(SDR())


@pytest.mark.parametrize("source", [None, "sdr", np.eye(3)], ids=["None", "str", "array"])
def test_something_that_is_no_reduction(source: Any) -> None:
    with pytest.raises(InvalidTypeError, match="fitted SDR or DistR"):
        SDRKernel(source)


def test_a_base_kernel_of_another_library() -> None:
    with pytest.raises(InvalidTypeError, match="gpytorch Kernel; got RationalQuadratic"):
        SDRKernel(numpy_map(), RationalQuadratic())


@pytest.mark.parametrize("shape", [(5, 2), (5, 4), (5,)], ids=str)
@pytest.mark.parametrize("call", [lambda k, x: k(x), lambda k, x: k(rows(2, 3), x), lambda k, x: k(x, diag=True)])
def test_a_wrong_number_of_features(shape: tuple[int, ...], call: Any) -> None:
    """Refused at the call: the lazy matrix would fail only when some solver evaluates it."""
    with pytest.raises(InvalidInputError, match="fitted to 3 features"):
        call(SDRKernel(numpy_map()), rows(*shape))


def test_a_vector_is_a_column_as_in_gpytorch() -> None:
    kernel = SDRKernel(numpy_map(1)).double()
    torch.testing.assert_close(kernel(rows(5)).to_dense(), kernel(rows(5)[:, None]).to_dense())


def test_a_wrong_number_of_active_dims() -> None:
    with pytest.raises(InvalidInputError, match="names 2 columns, but the map was fitted to 3"):
        SDRKernel(numpy_map(), active_dims=[0, 1])


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument is deprecated:DeprecationWarning")
def test_features_as_batches() -> None:
    with pytest.raises(InvalidInputError, match="last_dim_is_batch"):
        SDRKernel(numpy_map()).double()(rows(5, 3), last_dim_is_batch=True).to_dense()
