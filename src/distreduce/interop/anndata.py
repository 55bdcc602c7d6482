"""SDR on annotated data (AnnData): a function in the style of scanpy, which writes its results into the object.

scanpy is not needed, and anndata is imported only when :func:`sdr` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from distreduce._utils.versions import import_optional
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["sdr"]


def sdr(
    adata: AnnData,
    labels: str | Sequence[str],
    *,
    use_rep: str | None = None,
    n_prototypes: int | None = None,
    key_added: str = "sdr",
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Reduce observations, supervised by columns of ``obs``, and write the result into `adata`.

    Parameters
    ----------
    adata : AnnData
        Annotated data, in memory.
    labels : str or sequence of str
        Target column of ``obs``. Text, booleans and categories are classes; numbers are continuous, unless you pass
        ``task="classification"``. Missing values mark unlabelled observations. Several columns must hold numbers.
    use_rep : str, optional
        Key of ``obsm`` to reduce, such as ``"X_pca"``; ``adata.X`` by default. Dense or sparse; it is not rescaled.
    n_prototypes : int, optional
        Number of prototypes; by default one per observation (pure dimensionality reduction).
    key_added : str, default="sdr"
        Name of the results. As in scanpy, the default writes ``obsm["X_sdr"]``, any other name ``obsm[key_added]``.
    copy : bool, default=False
        Whether to leave `adata` unchanged and return a copy with the results.
    **parameters
        Other parameters of :class:`distreduce.SDR`. As in scanpy, ``random_state`` is 0 unless given.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``. The results are, under the default name,

        - ``obsm["X_sdr"]``: embedding of each observation as fitted;
        - ``obsm["X_sdr_left_out"]``: where it would lie had it not been in the fit; draw these;
        - ``obs["sdr_prototype"]``: its prototype, categorical; ``"k"`` is row k of the arrays below;
        - ``uns["sdr"]``: ``prototypes`` (m, p), ``weights`` (m,), ``targets`` (m, c) with their ``target_names`` (c,),
          ``medoids`` (m,) as names of observations, ``evidence`` (the frame ``prototype_evidence_``),
          ``neighbor_scores``, ``cka``, ``converged``, and the ``params`` that are not None.

        All of them can be saved in an h5ad file. If the fit fails, `adata` is unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> names = [f"flower {i}" for i in range(150)]
    >>> flowers = AnnData(X, obs=pd.DataFrame({"species": pd.Categorical(y)}, index=names))
    >>> sdr(flowers, "species", n_prototypes=10)
    >>> flowers.obsm["X_sdr"].shape, flowers.uns["sdr"]["medoids"].shape
    ((150, 2), (10,))
    """
    _check(adata)
    columns = [labels] if isinstance(labels, str) else list(labels)
    targets = _targets(adata, columns)
    settings = {"random_state": 0, "task": _task(targets), **parameters}  # values of the caller come last, and win
    y = targets.iloc[:, 0] if len(columns) == 1 else targets
    # Fit before anything is written: if this fails, adata is unchanged.
    model = SDR(n_prototypes=n_prototypes, **settings).fit(_representation(adata, use_rep), y)
    written = adata.copy() if copy else adata
    _write(written, model, key_added, {"labels": columns, "use_rep": use_rep})
    return written if copy else None


def _check(adata: object) -> None:
    advice = "distreduce.interop.anndata needs anndata, which is not installed: pip install 'distreduce[anndata]'."
    if not isinstance(adata, import_optional("anndata", advice).AnnData):
        raise InvalidTypeError(f"adata must be an AnnData object; got {type(adata).__name__}.")
    if adata.isbacked:
        raise InvalidInputError("adata is backed by a file; read it into memory first: adata = adata.to_memory().")


def _targets(adata: AnnData, columns: list[str]) -> pd.DataFrame:
    """Return the target columns, with NaN where a label is unknown."""
    missing = [name for name in columns if name not in adata.obs]
    if missing or not columns:
        known = ", ".join(map(str, adata.obs.columns)) or "none"
        wrong = f"labels: obs has no column {missing[0]!r}" if missing else "labels names no column of obs"
        raise InvalidInputError(f"{wrong}; its columns are {known}.")
    # As objects, or pandas would turn integer categories into floats where one is missing.
    return adata.obs[columns].apply(lambda column: column.astype(object) if column.dtype == "category" else column)


def _task(targets: pd.DataFrame) -> str:
    """Return the task: numeric columns are continuous, all others are classes. The values do not matter."""
    numeric = [
        pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        for _, column in targets.items()
    ]
    if not all(numeric) and len(numeric) > 1:
        raise InvalidInputError(
            f"labels: {targets.columns[numeric.index(False)]!r} does not hold numbers; several columns must, and "
            "classes come from one column."
        )
    return "regression" if all(numeric) else "classification"


def _representation(adata: AnnData, use_rep: str | None) -> Any:
    # As in scanpy, "X" is adata.X unless obsm has an entry of that name.
    if use_rep is None or (use_rep == "X" and "X" not in adata.obsm):
        if adata.X is None:
            raise InvalidInputError("adata.X is empty; name the entry of obsm to reduce with use_rep.")
        return adata.X
    if use_rep not in adata.obsm:
        raise InvalidInputError(
            f"use_rep={use_rep!r} is not a key of obsm, which has {', '.join(adata.obsm.keys()) or 'none'}."
        )
    found = adata.obsm[use_rep]  # an array, a sparse matrix or a frame
    return found.to_numpy() if isinstance(found, pd.DataFrame) else found


def _write(adata: AnnData, model: SDR, key: str, params: dict[str, Any]) -> None:
    prototypes = [str(k) for k in range(len(model.prototypes_))]
    place = "X_sdr" if key == "sdr" else key
    adata.obsm[place], adata.obsm[f"{place}_left_out"] = model.embedding_, model.embedding_left_out_
    adata.obs[f"{key}_prototype"] = pd.Categorical.from_codes(model.labels_, prototypes)
    adata.uns[key] = {
        "params": _writable({**model.get_params(deep=False), **params}),
        "prototypes": model.prototypes_,
        "weights": model.prototype_weights_,
        "targets": model.prototype_targets_,
        "target_names": np.array(model.target_names_, dtype=object),
        "medoids": adata.obs_names.to_numpy(dtype=object)[model.prototype_medoids_],
        # The names of the rows and columns of a frame in an h5ad file are texts.
        "evidence": model.prototype_evidence_.set_axis(pd.Index(prototypes, name="prototype")),
        "neighbor_scores": dict(model.neighbor_scores_),
        "cka": float(model.history_["cka"].iloc[-1]),
        "converged": bool(model.converged_),
    }


def _writable(params: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters for h5ad files, which hold numbers, text and arrays: objects become text, None is left out."""
    kept = {name: value for name, value in params.items() if value is not None}
    plain = (str, bool, int, float, np.number, np.ndarray)
    arrays = {name: np.asarray(value) for name, value in kept.items() if isinstance(value, list | tuple)}
    return {name: value if isinstance(value, plain) else repr(value) for name, value in {**kept, **arrays}.items()}
