"""The map in torch: equal to NumPy's, differentiable everywhere, in the state_dict, and clear about its limits."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_friedman1

from distreduce import SDR
from distreduce.exceptions import InvalidInputError
from distreduce.gp.torch_map import TorchMap, squared_distances
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import KernelMap

FEATURES = [3, 80]  # on both sides of the change from differences to a matrix product
KERNELS = {
    "rbf": lambda d: RBF(np.sqrt(d)),
    "ard": lambda d: RBF(np.linspace(0.5, 2.0, d) * np.sqrt(d)),
    "rq": lambda d: RationalQuadratic(alpha=0.7, length_scale=1.3 * np.sqrt(d)),
    "linear": lambda d: Linear(),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
narrow_and_wide = pytest.mark.parametrize("d", FEATURES)


def numpy_map(kernel: str, d: int, *, n: int = 20, p: int = 2, unit: float = 4.0, seed: int = 0) -> KernelMap:
    rng = np.random.default_rng(seed)
    return KernelMap(KERNELS[kernel](d), rng.normal(size=(n, d)), rng.normal(size=(n, p)), unit)


def new_rows(d: int, *shape: int, unit: float = 4.0) -> torch.Tensor:
    return torch.from_numpy(unit * np.random.default_rng(1).normal(size=(*shape, d)))


# --- values


@every_kernel
@narrow_and_wide
def test_it_is_the_map_of_numpy(kernel: str, d: int) -> None:
    fitted, x = numpy_map(kernel, d), new_rows(d, 15)
    np.testing.assert_allclose(TorchMap(fitted)(x), fitted(x.numpy()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [{}, {"length_scale": "ard"}, {"length_scale": [3.0, 5.0, 8.0, 13.0, 21.0]}, {"input_kernel": "rq"}]
    + [{"input_kernel": "linear"}, {"input_kernel": RBF(9.0)}, {"n_prototypes": 7, "map_reg": 1e-6}],
    ids=str,
)
def test_it_is_the_transform_of_a_fitted_reduction(options: dict[str, object]) -> None:
    X, y = make_friedman1(60, n_features=5, random_state=0)
    X = 100.0 * X  # a unit other than one
    model = SDR(random_state=0, **options).fit(X[:40], y[:40])
    np.testing.assert_allclose(TorchMap(model.map_)(torch.from_numpy(X)), model.transform(X), atol=1e-10)


@narrow_and_wide
def test_a_common_offset_costs_no_digits(d: int) -> None:
    """1e5 length scales away from zero, squares expanded without care would keep five digits in all."""
    fitted, x = numpy_map("rbf", d, unit=1.0), new_rows(d, 15, unit=1.0) + 1e5
    inputs = fitted.inputs + 1e5
    sq_distances = ((x.numpy()[:, None, :] - inputs[None, :, :]) ** 2).sum(axis=2)
    expected = np.exp(-0.5 * sq_distances / d) @ fitted.coefficients
    found = TorchMap(KernelMap(fitted.kernel, inputs, fitted.coefficients))(x)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_few_features_cost_no_digits_even_far_from_the_centre() -> None:
    """Two groups 1e6 length scales apart: no common origin would save expanded squares."""
    inputs = np.random.default_rng(0).normal(size=(10, 3)) + 1e6 * (np.arange(10) % 2)[:, None]
    coefficients, x = np.eye(10), torch.from_numpy(inputs + 0.5)
    sq_distances = ((x.numpy()[:, None, :] - inputs[None, :, :]) ** 2).sum(axis=2)
    found = TorchMap(KernelMap(RBF(), inputs, coefficients))(x)
    np.testing.assert_allclose(found, np.exp(-0.5 * sq_distances), atol=1e-10)


@given(
    a=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2), b=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)
)
def test_squared_distances_are_those_of_python(a: list[float], b: list[float]) -> None:
    found = float(squared_distances(torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)))
    assert found == pytest.approx((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, rel=1e-12, abs=1e-300)


@every_kernel
@narrow_and_wide
def test_single_precision_rows_lose_only_their_own_digits(kernel: str, d: int) -> None:
    """Buffers stay in float64, so float32 rows are mapped as exactly as they are given, and come back in float32."""
    fitted, x = numpy_map(kernel, d), new_rows(d, 15).float()
    z = TorchMap(fitted)(x)
    assert z.dtype == torch.float32
    np.testing.assert_allclose(z, fitted(x.numpy()), rtol=1e-6, atol=1e-6)


@every_kernel
@narrow_and_wide
def test_a_module_cast_to_single_precision(kernel: str, d: int) -> None:
    fitted, x = numpy_map(kernel, d), new_rows(d, 15)
    np.testing.assert_allclose(TorchMap(fitted).float()(x.float()), fitted(x.numpy()), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("module", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rows", [torch.float32, torch.float64], ids=str)
def test_places_have_the_dtype_of_the_rows(module: torch.dtype, rows: torch.dtype) -> None:
    assert TorchMap(numpy_map("ard", 3)).to(module)(new_rows(3, 4).to(rows)).dtype == rows


@pytest.mark.parametrize("shape", [(7,), (2, 7), (3, 1, 7), (2, 0), (1,)], ids=str)
def test_batches_are_mapped_row_by_row(shape: tuple[int, ...]) -> None:
    fitted, x = numpy_map("ard", 3), new_rows(3, *shape)
    expected = fitted(x.numpy().reshape(-1, 3)).reshape(*shape, 2)
    np.testing.assert_allclose(TorchMap(fitted)(x), expected, rtol=1e-12, atol=1e-12)


def test_rows_of_any_memory_layout() -> None:
    fitted, x = numpy_map("rbf", 3), new_rows(3, 5)
    np.testing.assert_allclose(TorchMap(fitted)(x.T.contiguous().T), fitted(x.numpy()), rtol=1e-12, atol=1e-12)


# --- derivatives


@every_kernel
@narrow_and_wide
def test_first_derivatives(kernel: str, d: int) -> None:
    assert torch.autograd.gradcheck(TorchMap(numpy_map(kernel, d)), new_rows(d, 2, 3).requires_grad_())


@every_kernel
@narrow_and_wide
def test_second_derivatives(kernel: str, d: int) -> None:
    assert torch.autograd.gradgradcheck(TorchMap(numpy_map(kernel, d)), new_rows(d, 2).requires_grad_())


@every_kernel
def test_derivatives_are_finite_differences_of_the_numpy_map(kernel: str) -> None:
    fitted, x = numpy_map(kernel, 3), new_rows(3, 1)
    jacobian = torch.autograd.functional.jacobian(TorchMap(fitted), x)[0, :, 0, :]
    steps = 1e-5 * np.eye(3)
    differences = [(fitted(x.numpy() + h) - fitted(x.numpy() - h))[0] / 2e-5 for h in steps]
    np.testing.assert_allclose(jacobian, np.transpose(differences), rtol=1e-7, atol=1e-8)


@every_kernel
@narrow_and_wide
def test_derivatives_at_training_points(kernel: str, d: int) -> None:
    """There a distance is zero, where a square root has no derivative."""
    fitted = numpy_map(kernel, d)
    points = torch.from_numpy(fitted.inputs[:3] * fitted.unit).requires_grad_()
    assert torch.autograd.gradcheck(TorchMap(fitted), points)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@narrow_and_wide
def test_derivatives_at_training_points_are_finite(dtype: torch.dtype, d: int) -> None:
    fitted = numpy_map("rq", d)
    points = torch.tensor(fitted.inputs * fitted.unit, dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(TorchMap(fitted).to(dtype)(points).sum(), points)
    assert gradient.isfinite().all()


def test_functional_transforms_give_the_jacobian_of_each_row() -> None:
    mapping, x = TorchMap(numpy_map("rbf", 3)), new_rows(3, 4)
    each = torch.func.vmap(torch.func.jacrev(lambda row: mapping(row[None])[0]))(x)
    whole = torch.autograd.functional.jacobian(mapping, x)
    torch.testing.assert_close(each, torch.stack([whole[i, :, i] for i in range(4)]))


# --- a torch module


@every_kernel
def test_nothing_is_trained(kernel: str) -> None:
    assert list(TorchMap(numpy_map(kernel, 3)).parameters()) == []


@every_kernel
def test_state_of_another_map_makes_it_that_map(kernel: str) -> None:
    x, other = new_rows(3, 5), numpy_map(kernel, 3, seed=5, unit=2.0)
    mapping = TorchMap(numpy_map(kernel, 3))
    mapping.load_state_dict(TorchMap(other).state_dict())
    np.testing.assert_allclose(mapping(x), other(x.numpy()), rtol=1e-12, atol=1e-12)


def test_state_passes_between_one_length_scale_and_many() -> None:
    x, other = new_rows(3, 5), numpy_map("ard", 3, seed=5)
    mapping = TorchMap(numpy_map("rbf", 3))
    mapping.load_state_dict(TorchMap(other).state_dict())
    np.testing.assert_allclose(mapping(x), other(x.numpy()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("source", "target"), [("rbf", "rq"), ("rq", "rbf"), ("rbf", "linear"), ("linear", "rq")])
def test_state_of_another_kernel_is_refused(source: str, target: str) -> None:
    with pytest.raises(RuntimeError, match="Missing key|Unexpected key"):
        TorchMap(numpy_map(target, 3)).load_state_dict(TorchMap(numpy_map(source, 3)).state_dict())


def test_loading_a_state_leaves_the_estimator_alone() -> None:
    fitted = numpy_map("rbf", 3)
    before = copy.deepcopy(fitted)
    TorchMap(fitted).load_state_dict(TorchMap(numpy_map("rbf", 3, seed=9)).state_dict())
    np.testing.assert_array_equal(fitted.coefficients, before.coefficients)


# --- what it cannot do


def euclidean(A: np.ndarray, B: np.ndarray | None = None) -> np.ndarray:
    return RBF()(A, B)


class Doubled(RBF):
    """Computes something other than the class it comes from."""


@pytest.mark.parametrize("kernel", [euclidean, Doubled()], ids=["function", "subclass"])
def test_a_kernel_of_unknown_formula(kernel: object) -> None:
    with pytest.raises(InvalidInputError, match="fit with input_kernel"):
        TorchMap(KernelMap(kernel, np.eye(3), np.eye(3)))


def test_a_map_of_sparse_rows() -> None:
    with pytest.raises(InvalidInputError, match="toarray"):
        TorchMap(KernelMap(RBF(), sparse.csr_array(np.eye(3)), np.eye(3)))


def test_a_map_of_distances() -> None:
    with pytest.raises(InvalidInputError, match="metric='euclidean'"):
        TorchMap(KernelMap(RBF(), None, np.eye(3)))


@pytest.mark.parametrize("shape", [(5, 2), (5, 4), (3,), ()], ids=str)
def test_rows_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="fitted to 3 features"):
        TorchMap(numpy_map("rbf", 3))(torch.zeros(shape))


def test_whole_numbers() -> None:
    with pytest.raises(InvalidInputError, match="x.double"):
        TorchMap(numpy_map("rbf", 3))(torch.zeros(5, 3, dtype=torch.int64))
