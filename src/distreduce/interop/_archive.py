"""The map as an ``.npz`` archive, and the reader that needs NumPy alone."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from distreduce._utils.atomic import replacing
from distreduce.exceptions import ModelSaveError
from distreduce.interop._plain import plain_map

Path = str | os.PathLike[str]


def save_map(model: Any, path: Path) -> None:
    """Write the map of a model as an ``.npz`` archive of plain arrays, for :func:`load_map` or any reader of NumPy's.

    Parameters
    ----------
    model : SDR, DistR, SDRGPRegressor, SDRGPClassifier or Pipeline
        A fitted model; a pipeline may have StandardScalers before it. Sparse training inputs are written dense.
    path : str or path-like
        The file, under this very name; it appears whole or not at all.

    Raises
    ------
    UnsavableModelError
        The input kernel is a Python function, or a step of the pipeline is not known here.
    ModelSaveError
        The file could not be written; one that was there before is untouched.

    Notes
    -----
    The map is z(x) = Σ_i k(u, c_i) L_i with u = (x − offset) / scale. The arrays, for d features, n training inputs and
    p dimensions:

    - ``format``, ``version``: "distreduce-map" and 1;
    - ``kernel``: "rbf", ``k = exp(−|u − c|²/2)``; "rq", ``k = (1 + |u − c|²/2a)^−a`` with a the number ``alpha``; or
      "linear", ``k = ⟨u, c⟩``;
    - ``offset``, ``scale``: (d,), with all scaling in them: a StandardScaler's, the GPs' and the length scales;
    - ``centres``: (n, d), c; absent after ``metric="precomputed"``, when x are distances to the training samples and
      ``|u|`` takes the place of ``|u − c|``;
    - ``coefficients``: (n, p), L;
    - ``feature_names``: (d,), if the fit had them.

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
    arrays: dict[str, Any] = {name: value for name, value in vars(plain_map(model)).items() if value is not None}
    arrays |= {"format": "distreduce-map", "version": 1}
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))


# This function is copied to places that have NumPy and nothing else: it must use nothing of this package.
def load_map(path: Any) -> Callable[[Any], Any]:
    """Read what distreduce's save_map wrote: a function from rows (n, d) to their places (n, p)."""
    with np.load(path, allow_pickle=False) as store:
        found = {name: store[name] for name in store.files}
    if str(found.get("format")) != "distreduce-map" or found["version"] != 1:
        raise ValueError(f"{path} holds no map of version 1; read it with a newer load_map of distreduce.")
    kernel, a, L = (found[name] for name in ("kernel", "alpha", "coefficients"))
    c: Any = found.get("centres")

    def transform(X: Any) -> Any:
        u = (np.asarray(X, dtype=np.float64) - found["offset"]) / found["scale"]
        if kernel == "linear":
            return u @ (c.T @ L)
        d2 = u**2 if c is None else np.maximum((u**2).sum(1)[:, None] + (c**2).sum(1) - 2 * u @ c.T, 0)
        return (np.exp(-d2 / 2) if kernel == "rbf" else (1 + d2 / (2 * a)) ** -a) @ L

    return transform


def write_whole(path: Path, fill: Callable[[Any], object]) -> None:
    """A new file beside `path` that takes its place once it is complete."""
    try:
        with replacing(pathlib.Path(path)) as hidden, hidden.open("xb") as file:
            fill(file)
    except OSError as error:
        raise ModelSaveError(
            f"The map was not saved to {os.fspath(path)!r}: {error}. Nothing was written there; choose a folder that "
            "exists, may be written to and has room."
        ) from error
