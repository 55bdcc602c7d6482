"""The ``transform`` of any model that has a kernel map, as one formula of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidTypeError, UnsavableModelError
from distreduce.gp import SDRGPClassifier, SDRGPRegressor
from distreduce.kernels import RBF, Linear, RationalQuadratic
from distreduce.mapping import KernelMap

NAMES = {RBF: "rbf", RationalQuadratic: "rq", Linear: "linear"}


@dataclass(frozen=True)
class PlainMap:
    r"""The whole ``transform``, every scale folded into u and c.

    .. math:: z(x) = \sum_i k(u, c_i)\, L_i, \qquad u = (x - o) / s

    where k is :math:`e^{-d^2/2}` ("rbf"), :math:`(1 + d^2/2a)^{-a}` ("rq") with :math:`d^2 = |u - c|^2`, or
    :math:`\langle u, c\rangle` ("linear").

    Attributes
    ----------
    kernel, alpha : str and float
        Name of k, and a of "rq".
    offset, scale : (d,) arrays
        o and s.
    centres : (n, d) array or None
        c; None if the rows are distances to the training samples, so that d = |u|.
    coefficients : (n, p) array
        L.
    feature_names : (d,) array of str, or None
        Names of the features of the fit.
    """

    kernel: str
    alpha: float
    offset: Array
    scale: Array
    centres: Array | None
    coefficients: Array
    feature_names: NDArray[np.str_] | None = None

    def after(self, offset: Array, scale: Array) -> PlainMap:
        """The map of rows that are moved and divided first: u = ((x − o') / s' − o) / s."""
        return replace(self, offset=offset + scale * self.offset, scale=scale * self.scale)


def plain_map(model: Any) -> PlainMap:
    """The map of SDR, DistR, a GP on SDR, or a pipeline that ends in one after StandardScalers."""
    if not isinstance(model, Pipeline | BaseReduction | SDRGPRegressor | SDRGPClassifier):
        raise InvalidTypeError(f"{type(model).__name__} has no map to export; give SDR, DistR or a GP on SDR.")
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        found = plain_map(model.steps[-1][1])
        for name, step in reversed(model.steps[:-1]):
            found = _after_step(found, name, step)
    elif isinstance(model, BaseReduction):
        found = _from_kernel_map(model.map_)
    else:
        found = plain_map(model.reduction_)
        if isinstance(model, SDRGPRegressor):  # reduces features that it has divided by how little they matter
            found = found.after(np.zeros(model.n_features_in_), model.input_scale_)
    names = getattr(model, "feature_names_in_", None)
    return replace(found, feature_names=None if names is None else names.astype(str))


def _after_step(found: PlainMap, name: str, step: Any) -> PlainMap:
    if step is None or step == "passthrough":
        return found
    if type(step) is not StandardScaler:
        raise UnsavableModelError(
            f"Step {name!r} of the pipeline is a {type(step).__name__}; only StandardScaler can be exported with the "
            "map. Export the last step alone, and apply the others before it."
        )
    d = step.n_features_in_
    return found.after(
        np.zeros(d) if step.mean_ is None or not step.with_mean else step.mean_,
        np.ones(d) if step.scale_ is None else step.scale_,
    )


def _from_kernel_map(fitted: KernelMap) -> PlainMap:
    kernel = fitted.kernel
    if type(kernel) not in NAMES:  # a subclass may compute something else
        raise UnsavableModelError(
            f"The map's input kernel is {kernel!r}, whose formula is not known here; fit with input_kernel 'rbf', 'rq' "
            "or 'linear', or an RBF, RationalQuadratic or Linear of distreduce.kernels."
        )
    centres = fitted.inputs.toarray() if sparse.issparse(fitted.inputs) else fitted.inputs
    d = len(fitted.coefficients) if centres is None else centres.shape[1]
    length = np.full(d, getattr(kernel, "length_scale", 1.0))
    offset = np.zeros(d)
    if centres is not None and not isinstance(kernel, Linear):
        offset = centres.mean(axis=0)  # readers expand squares, which lose the digits of a common offset
        centres = (centres - offset) / length
    return PlainMap(
        kernel=NAMES[type(kernel)],
        alpha=float(getattr(kernel, "alpha", 1.0)),
        offset=fitted.unit * offset,
        scale=fitted.unit * length,
        centres=centres,
        coefficients=fitted.coefficients,
    )
