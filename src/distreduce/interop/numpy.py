"""The map of a model as an ``.npz`` archive, with a reader that needs only NumPy."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from distreduce._utils.files import DAMAGE, Arrays, read_arrays
from distreduce._utils.tensor_file import require
from distreduce._utils.typing import FilePath
from distreduce.exceptions import ModelFileError
from distreduce.interop import _map_reader, _predictor_reader
from distreduce.interop._formula import KERNEL_NAMES, MapFormula, map_formula, write_map
from distreduce.interop._predictor import RowPool, encode_predictor, encode_rule, require_stacks
from distreduce.tables.recipe import ColumnRecipe


def save_map(model: Any, path: FilePath) -> None:
    """Save the map of a model as an ``.npz`` archive of plain arrays, for :func:`load_map` or any reader of such files.

    Parameters
    ----------
    model : SDR, DistR, SDRGPRegressor, SDRGPClassifier or Pipeline
        A fitted model, or a pipeline of StandardScalers that ends in one. Sparse training inputs are stored dense.
    path : str or path-like
        The file, written atomically. No suffix is added.

    Raises
    ------
    UnsavableModelError
        The input kernel is a Python function, or the pipeline has a step other than StandardScaler.
    ModelSaveError
        The file could not be written. An existing file is unchanged.

    Notes
    -----
    The map is z(x) = Σ_i k(u, c_i) L_i with u = (x − offset) / scale. The archive holds, for d features, n training
    inputs and p dimensions:

    - ``format``, ``version``: "distreduce-map" and 1, or 3 if there are predictions;
    - ``kernel``: "rbf", ``k = exp(−|u − c|²/2)``; "rq", ``k = (1 + |u − c|²/2a)^−a`` with a the number ``alpha``; or
      "linear", ``k = ⟨u, c⟩``;
    - ``offset``, ``scale``: (d,), which include the scaling of StandardScaler and GP, and the length scales;
    - ``centres``: (n, d), c; absent after ``metric="precomputed"``, when x are distances to the training samples and
      ``|u|`` takes the place of ``|u − c|``;
    - ``coefficients``: (n, p), L;
    - ``feature_names``: (d,), if the model was fitted with feature names;
    - ``predicted``: (n, c), in version 3, q; ``|u − c|²`` is then ``|u − c|² + |v − q|²`` with v = softmax(ŷ) / r;
    - ``reach``: r;
    - ``predictor_kernel``, ``predictor_offset`` and so on: the map from x to ŷ, in the same form.

    Examples
    --------
    >>> import tempfile
    >>> from distreduce import SDR
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = SDR(random_state=0).fit(X, X[:, 0])
    >>> path = tempfile.mkdtemp() + "/map.npz"
    >>> save_map(model, path)
    >>> bool(np.allclose(load_map(path)(X), model.transform(X)))
    True
    """
    formula = map_formula(model)
    arrays = _arrays(formula) | {"format": "distreduce-map", "version": 1}
    if formula.predictor is not None:
        arrays |= {f"predictor_{name}": value for name, value in _arrays(formula.predictor).items()} | {"version": 3}
    write_map(path, lambda file: np.savez_compressed(file, **arrays))


def save_predictor(predictor: Any, path: FilePath, recipe: ColumnRecipe | None = None) -> None:
    """Save a predictor as one JSON file of plain arrays, for :func:`load_predictor`, which needs only NumPy.

    Parameters
    ----------
    predictor : SDRGPRegressor or SDRGPClassifier
        A fitted model without experts of your own.
    path : str or path-like
        The file, written atomically. It holds training samples.
    recipe : ColumnRecipe, optional
        How the columns of a table become features, such as ``recipe_`` of :class:`~distreduce.tables.TablePreparer` or
        ``load_folder("houses").recipe``. The loaded predictor then takes a mapping from the names of the columns to
        their cells: numbers (dates as days since 1970), true or false, and levels; None or NaN where missing.

    Raises
    ------
    InvalidInputError
        The recipe makes another number of features than the predictor was fitted to.
    UnsavableModelError
        The predictor has parts of your own.
    ModelSaveError
        The file could not be written. An existing file is unchanged.

    Notes
    -----
    The loaded predictor returns arrays by name: ``mean``, ``std``, ``q05``, ``q50`` and ``q95``, or ``probabilities``
    of its ``classes``.

    Examples
    --------
    >>> import tempfile
    >>> from distreduce import SDRGPRegressor
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = SDRGPRegressor(experts=["linear"], gp_steps=2, random_state=0).fit(X, X[:, 0])
    >>> path = tempfile.mkdtemp() + "/predictor.json"
    >>> save_predictor(model, path)
    >>> bool(np.allclose(load_predictor(path)(X)["mean"], model.predict(X)))
    True
    """
    require_stacks(predictor, recipe)
    pool = RowPool(np.abs(predictor.novelty_.inputs * predictor.input_scale_).max(axis=0))
    node = encode_predictor(predictor, pool)
    columns = None if recipe is None else [encode_rule(rule) for rule in recipe.used]
    content = json.dumps({"columns": columns, "predictor": node, "pool": pool.encode()}, allow_nan=False)
    checksum = hashlib.sha256(content.encode()).hexdigest()
    found = {"format": "distreduce-predictor", "version": 1, "sha256": checksum, "content": content}
    write_map(path, lambda file: file.write(json.dumps(found).encode()))


def _arrays(formula: MapFormula) -> dict[str, Any]:
    return {name: value for name, value in vars(formula).items() if value is not None and name != "predictor"}


@wraps(_map_reader.load_map)
def load_map(path: Any) -> Callable[[Any], Any]:
    try:
        found = read_arrays(Path(path))
        # The reader itself rejects other formats and versions.
        if str(found.get("format")) == "distreduce-map" and found.get("version") in (1, 3):
            _check(found)
            _check_predictor(found)
        return _map_reader.load_map(path)
    except DAMAGE as error:
        raise _refuse(path, "a map", error) from error


@wraps(_predictor_reader.load_predictor)
def load_predictor(path: Any) -> Callable[[Any], dict[str, Any]]:
    try:
        return _predictor_reader.load_predictor(path)
    except DAMAGE as error:
        raise _refuse(path, "a predictor", error) from error


def _refuse(path: Any, what: str, error: Exception) -> ModelFileError:
    reason = str(error) or type(error).__name__
    return ModelFileError(f"{os.fspath(path)!r} is not {what} that can be read: {reason:.500}")


def _check(found: Arrays) -> None:
    """Check the shapes and values that the notes of `save_map` promise."""
    require(str(found["kernel"]) in KERNEL_NAMES.values(), "its kernel is unknown")
    for name in ("alpha", "offset", "scale", "coefficients", "centres", "predicted", "reach"):
        value = found.get(name, np.ones(1))  # an absent array passes
        require(value.dtype == np.float64 and bool(np.isfinite(value).all()), f"{name} has NaN or infinite values")
    coefficients, d = found["coefficients"], found["offset"].size
    require(coefficients.ndim == 2 and coefficients.size > 0 and d > 0, "coefficients or offset are empty")
    shapes: dict[str, tuple[int, ...]] = {"alpha": (), "reach": (), "centres": (len(coefficients), d)}
    for name, shape in (shapes | dict.fromkeys(("offset", "scale", "feature_names"), (d,))).items():
        require(name not in found or found[name].shape == shape, f"{name} does not have the shape {shape}")
    require(bool((found["scale"] > 0).all()) and bool(found["alpha"] > 0), "a scale is not positive")
    # Only a function of distances can do without centres, with one feature per training sample.
    distances = found["kernel"] != "linear" and d == len(coefficients)
    require("centres" in found or distances, "it has no centres")


def _check_predictor(found: Arrays) -> None:
    """Check that there is a predictor of version 3 and no other, and that it fits the map."""
    inner = {name.removeprefix("predictor_"): value for name, value in found.items() if name.startswith("predictor_")}
    has = found["version"] == 3
    parts = [bool(inner), "predicted" in found, "reach" in found]
    require(parts == [has] * 3, "it has a part of a predictor")
    if has:
        _check(inner)
        require(bool(found["reach"] > 0), "its reach is not positive")
        fits = inner["offset"].shape == found["offset"].shape and "centres" in inner and "centres" in found
        shape = (len(found["coefficients"]), inner["coefficients"].shape[1])
        require(fits and found["kernel"] != "linear", "its predictor does not take the features of the map")
        require(found["predicted"].shape == shape, f"predicted does not have the shape {shape}")
