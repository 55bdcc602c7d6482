"""Write the page: check what is given, collect the content, fill the template, put the file in its place whole.

The map is drawn by the page's own script on a canvas rather than by plotly: plotly's library alone is 4.5 MB a page,
where a whole page of 50,000 samples with five columns to colour by is 1.6 MB with ours, and one of 2,000 some 0.1 MB.
It also opens at once on a phone and can be used by keyboard. The samples are stamped into one image (16 ms for 50,000
in a headless Chromium on a busy core), so that zooming, colouring and selecting stay fluid.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.atomic import replacing
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.plotting.palette import OKABE_ITO
from distreduce.report.columns import Rows
from distreduce.report.content import Subject, choose, distributions, document
from distreduce.report.encode import as_json
from distreduce.report.held_out import HeldOut, HeldOutClasses
from distreduce.report.predictions import predictions
from distreduce.report.words import command_of, facts, history, warnings_of

SCRIPTS = ("draw.js", "marks.js", "map.js", "panel.js", "heat.js", "pointer.js", "main.js")


def write_report(
    path: str | os.PathLike[str],
    model: BaseReduction,
    X: Any,
    y: ArrayLike | None = None,
    *,
    table: pd.DataFrame | None = None,
    row_numbers: ArrayLike | None = None,
    held_out: HeldOut | HeldOutClasses | Mapping[str, HeldOut | HeldOutClasses] | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    command: str | None = None,
) -> Path:
    """Write the interactive page of a fitted reduction: one HTML file that asks the network for nothing.

    Equal arguments give equal bytes. The file is written beside its place and then renamed: a reader never meets half
    of it.

    Parameters
    ----------
    path : path-like
        Where to write; a file that is there is replaced.
    model : SDR or DistR
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The samples of the fit, in their order.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Their targets, None or NaN where unknown. The name of a pandas Series is shown.
    table : pandas.DataFrame, optional
        The rows the samples came from, in the same order: shown beside a prototype, and columns to colour by. By
        default X itself, unless it holds images or distances.
    row_numbers : array-like of int of shape (n_samples,), optional
        The numbers that the page calls the samples by, such as those of their rows in a file of which only some were
        fitted. By default 0, 1, 2, …
    held_out : HeldOut, HeldOutClasses or mapping of str to these, optional
        Predictions for samples that the fit did not see, of one model or of several by name, the first the main one.
    image_shape : (int, int), optional
        Height and width, if a sample is an image in shades of grey.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command that made it, to be shown; by default the calls in Python.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", model, X, y, title="Iris")
    ...     page.read_text("utf-8")[:15]
    '<!DOCTYPE html>'
    """
    subject = _subject(model, X, y, table, row_numbers, image_shape)
    text = _render(subject, held_out, title, command)
    target = Path(path)
    _write(target, text.encode("utf-8", errors="replace"))
    return target


def _subject(model: Any, X: Any, y: Any, table: Any, row_numbers: Any, image_shape: Any) -> Subject:
    if not isinstance(model, BaseReduction):
        raise InvalidTypeError(f"model must be a fitted SDR or DistR; got {type(model).__name__}.")
    check_is_fitted(model)
    n = len(model.embedding_)
    samples = X.to_numpy() if isinstance(X, pd.DataFrame) else X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if samples.ndim != 2 or samples.shape != (n, model.n_features_in_):
        raise InvalidInputError(
            f"X must hold the {n} samples of the fit with {model.n_features_in_} features; got shape {samples.shape}."
        )
    if table is not None and (not isinstance(table, pd.DataFrame) or len(table) != n):
        given = f"{len(table)} rows" if isinstance(table, pd.DataFrame) else type(table).__name__
        raise InvalidInputError(
            f"table must be a pandas.DataFrame with a row for each of the {n} samples; got {given}."
        )
    if image_shape is not None and int(np.prod(image_shape)) != samples.shape[1]:
        raise InvalidInputError(
            f"image_shape={tuple(image_shape)} is {int(np.prod(image_shape))} pixels, but X has {samples.shape[1]} "
            "columns; give (height, width) of an image in shades of grey."
        )
    if table is None and image_shape is None and model.metric != "precomputed":
        table = _table_of(X, samples, model)
    unknown = y is not None and bool(pd.isna(np.asarray(y, dtype=object)).all())
    return Subject(model, samples, None if unknown else y, table, _numbered(row_numbers, n), image_shape)


def _numbered(given: Any, n: int) -> Rows:
    rows = np.arange(n) if given is None else np.asarray(given)
    if rows.shape != (n,) or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= 2**32:
        raise InvalidInputError(
            f"row_numbers must be a whole number from 0 to {2**32 - 1} for each of the {n} samples; "
            f"got an array of {rows.dtype} of shape {rows.shape}."
        )
    return rows.astype(np.intp)


def _table_of(X: Any, samples: Any, model: BaseReduction) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    names = getattr(model, "feature_names_in_", [f"x{place}" for place in range(samples.shape[1])])
    if sparse.issparse(samples):
        return pd.DataFrame.sparse.from_spmatrix(samples, columns=list(names))
    return pd.DataFrame(samples, columns=list(names))


def _render(subject: Subject, held_out: Any, title: str, command: str | None) -> str:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    choice = choose(subject.model)
    found = distributions(subject, choice)
    script = "\n".join(_file(name) for name in SCRIPTS)
    n, m = subject.model.coupling_.shape
    return environment.from_string(_file("page.html.j2")).render(
        title=title or f"{n:,} samples, {m:,} prototypes",
        facts=facts(subject),
        warnings=warnings_of(subject, choice),
        command=command_of(subject, command),
        history=history(subject),
        predictions=predictions(held_out),
        prototypes=_lines(subject, choice.prototypes, found),
        target_names=[each.name for each in found],
        supervised=hasattr(subject.model, "prototype_targets_"),
        one_to_one=subject.one_to_one,
        of_numbers=any(each.mean is not None for each in found),
        with_shapes=any(each.mean is None and len(each.labels) > len(OKABE_ITO) for each in found),
        heat_maps=[each.name for each in found if each.node().get("order")],
        document=as_json(document(subject, choice, found)),
        style=Markup(_file("style.css")),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own files
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


def _lines(subject: Subject, prototypes: Any, found: list[Any]) -> list[dict[str, Any]]:
    """A line a prototype, for the table that says what the map shows."""
    model = subject.model
    counts = np.bincount(model.labels_, minlength=len(model.prototypes_))
    return [
        {
            "number": int(k),
            "weight": f"{100 * model.prototype_weights_[k]:.2f} %",
            "count": f"{counts[k]:,}",
            "medoid": int(subject.row_numbers[model.prototype_medoids_[k]]),
            "targets": [each.in_words(place) for each in found],
        }
        for place, k in enumerate(prototypes)
    ]


def _file(name: str) -> str:
    return files("distreduce.report").joinpath(name).read_text("utf-8")


def _write(target: Path, content: bytes) -> None:
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInputError(
            f"path={str(target)!r} must name a file in a folder that exists; make the folder first."
        )
    with replacing(target) as hidden:
        hidden.write_bytes(content)
