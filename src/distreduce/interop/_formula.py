"""The ``transform`` of a model with a kernel map as one formula of plain arrays, for exported files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.files import replacing
from distreduce._utils.typing import Array, FilePath
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidTypeError, ModelSaveError, UnsavableModelError
from distreduce.gp import SDRGPClassifier, SDRGPRegressor
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import KernelMap

KERNEL_NAMES: dict[type, str] = {RBF: "rbf", RationalQuadratic: "rq", Linear: "linear"}


@dataclass(frozen=True)
class MapFormula:
    r"""A complete ``transform``, with every scale folded into u and c.

    .. math:: z(x) = \sum_i k(u, c_i)\, L_i, \qquad u = (x - o) / s

    where k is :math:`e^{-d^2/2}` ("rbf"), :math:`(1 + d^2/2a)^{-a}` ("rq") with :math:`d^2 = |u - c|^2`, or
    :math:`\langle u, c\rangle` ("linear"). With a predictor ŷ of the classes, :math:`d^2 = |u - c|^2 + |v - q|^2` with
    :math:`v = \mathrm{softmax}(\hat y(x)) / r`. The notes of :func:`distreduce.interop.save_map` describe the fields.
    """

    kernel: str
    alpha: float  # a
    offset: Array  # o (d,)
    scale: Array  # s (d,)
    centres: Array | None  # c (n, d); None if rows are distances to the training samples, so that d = |u|
    coefficients: Array  # L (n, p)
    feature_names: NDArray[np.str_] | None = None
    predictor: MapFormula | None = None  # ŷ
    predicted: Array | None = None  # q (n, c)
    reach: float | None = None  # r

    def after(self, offset: Array, scale: Array) -> MapFormula:
        """Return the formula for rows that are standardised first: u = ((x − o') / s' − o) / s."""
        predictor = None if self.predictor is None else self.predictor.after(offset, scale)
        return replace(self, offset=offset + scale * self.offset, scale=scale * self.scale, predictor=predictor)


def map_formula(model: Any) -> MapFormula:
    """Return the formula of SDR, DistR, a GP on SDR, or a pipeline of StandardScalers that ends in one."""
    if not isinstance(model, Pipeline | BaseReduction | SDRGPRegressor | SDRGPClassifier):
        raise InvalidTypeError(f"{type(model).__name__} has no map to export; give SDR, DistR or a GP on SDR.")
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        found = map_formula(model.steps[-1][1])
        # From the last scaler to the first: each acts before what has been found so far.
        for name, step in reversed(model.steps[:-1]):
            found = _after_step(found, name, step)
    elif isinstance(model, BaseReduction):
        found = _from_kernel_map(model.map_)
    else:
        # It reduces scaled features.
        found = map_formula(model.reduction_).after(np.zeros(model.n_features_in_), model.input_scale_)
    names = getattr(model, "feature_names_in_", None)
    return replace(found, feature_names=None if names is None else names.astype(str))


def _after_step(found: MapFormula, name: str, step: Any) -> MapFormula:
    if step is None or step == "passthrough":
        return found
    if type(step) is not StandardScaler:
        raise UnsavableModelError(
            f"Step {name!r} of the pipeline is a {type(step).__name__}; only StandardScaler can be exported with the "
            "map. Export the last step alone, and apply the others before it."
        )
    # With with_mean=False a scaler still has a mean_, which it does not subtract.
    d = step.n_features_in_
    return found.after(
        np.zeros(d) if step.mean_ is None or not step.with_mean else step.mean_,
        np.ones(d) if step.scale_ is None else step.scale_,
    )


def _from_kernel_map(fitted: KernelMap) -> MapFormula:
    kernel = fitted.kernel
    if type(kernel) not in KERNEL_NAMES:  # not isinstance: a subclass may compute something else
        raise UnsavableModelError(
            f"The map's input kernel is {kernel!r}, whose formula is unknown; fit with input_kernel 'rbf', 'rq' "
            "or 'linear', or an RBF, RationalQuadratic or Linear of distreduce.kernels."
        )
    centres = fitted.inputs.toarray() if sparse.issparse(fitted.inputs) else fitted.inputs
    d = len(fitted.coefficients) if centres is None else centres.shape[1]  # distances: one column per sample
    # One length per feature, whether the kernel has a single one or a tuple.
    length, predictions = np.asarray(getattr(kernel, "length_scale", 1.0)), fitted.predictions
    predictor = predicted = reach = None
    if predictions is not None:
        reach = float(length[d] if length.ndim else length)  # the same for all classes
        predicted, predictor = predictions.shares / reach, _from_kernel_map(predictions.predictor)
    length = np.full(d, length[:d] if length.ndim else length)
    offset = np.zeros(d)
    if centres is not None and not isinstance(kernel, Linear):
        offset = centres.mean(axis=0)  # readers expand |u − c|², which loses the digits of a common offset
        centres = (centres - offset) / length
    return MapFormula(
        kernel=KERNEL_NAMES[type(kernel)],
        alpha=float(getattr(kernel, "alpha", 1.0)),
        offset=fitted.unit * offset,
        scale=fitted.unit * length,
        centres=centres,
        coefficients=fitted.coefficients,
        predictor=predictor,
        predicted=predicted,
        reach=reach,
    )


def write_map(path: FilePath, fill: Callable[[Any], object]) -> None:
    """Write a file atomically; `fill` gets the open file."""
    try:
        with replacing(path) as temporary, temporary.open("xb") as file:
            fill(file)
    except OSError as error:
        raise ModelSaveError(
            f"{os.fspath(path)!r} was not saved: {error}. Nothing was written there; choose a folder that "
            "exists, may be written to and has room."
        ) from error
