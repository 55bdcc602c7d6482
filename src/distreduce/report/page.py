"""Write the page of a fit: check the arguments, collect the content, fill the template, write the file atomically.

The page's own script draws the map on a canvas (map.js) because plotly's library alone would add 4.5 MB per page. Our
own page takes 1.9 MB for 50,000 samples with five columns to colour by, and 0.2 MB for 2,000; the map and the predictor
of the form for new rows add at most 4 MB (1 MB for 2,000 rows of 20 columns without trees). It opens at once on a phone
and works by keyboard. All samples are drawn into one image (16 ms for 50,000 samples in headless Chromium on a busy
core), which keeps zooming, colouring and selecting fluid.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from distreduce._utils.files import replacing
from distreduce._utils.typing import Index
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._validate import read_weights
from distreduce.exceptions import InvalidInputError
from distreduce.interop._predictor import Node
from distreduce.plotting.axes import check_reduction
from distreduce.plotting.palette import OKABE_ITO
from distreduce.report.content import Subject, describe_criticisms, encode_page, find_targets, list_prototypes
from distreduce.report.evidence import describe_optimism, list_criticisms
from distreduce.report.facts import collect_facts, collect_warnings, describe_call, describe_end, draw_history
from distreduce.report.held_out import Given, HeldOut, HeldOutClasses, describe_headline
from distreduce.report.new_row import describe_new_row, encode_new_row
from distreduce.report.predictions import describe_predictions, name_models, sort_experts
from distreduce.report.renderer import HERE, as_json, render_page
from distreduce.tables.recipe import ColumnRecipe

SCRIPTS = ("data.js", "marks.js", "map.js", "panel.js", "heat.js", "pointer.js", "save.js",
           "formulas.js", "newrow.js", "main.js")  # fmt: skip


def write_report(
    path: str | os.PathLike[str],
    model: BaseReduction,
    X: Any,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    table: pd.DataFrame | None = None,
    row_numbers: ArrayLike | None = None,
    recipe: ColumnRecipe | None = None,
    predictor: Any = None,
    held_out: HeldOut | HeldOutClasses | Mapping[str, HeldOut | HeldOutClasses] | None = None,
    experts: Mapping[str, float] | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    command: str | None = None,
    notes: Sequence[str] = (),
    split: str = "",
    within: str = "",
    n_rows: int = 0,
) -> Path:
    """Write the interactive page of a fitted reduction: one HTML file that needs no network.

    Equal arguments give equal bytes. The file is replaced atomically, so a reader never sees half of it.

    Parameters
    ----------
    path : path-like
        Where to write; an existing file is replaced.
    model : SDR or DistR
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The samples of the fit, in their order.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Their targets, None or NaN where unknown. The name of a pandas Series is shown.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights in the fit; means and shares of the prototypes are weighted by them.
    table : pandas.DataFrame, optional
        The rows that the samples came from, in the same order. The page shows them beside a prototype and offers their
        columns as colours. By default X itself, unless it holds images or distances.
    row_numbers : array-like of int of shape (n_samples,), optional
        Numbers of the samples on the page, such as those of their rows in a longer file; by default 0, 1, 2, …
    recipe : ColumnRecipe, optional
        How the columns of `table` became X, such as ``recipe_`` of :class:`~distreduce.tables.TablePreparer`. A reader
        can then type a new row and see its place. Without a recipe, this works if X itself is the table.
    predictor : SDRGPRegressor or SDRGPClassifier, optional
        A model fitted to rows of the same columns as X. The page then predicts the rows that its reader types.
    held_out : HeldOut, HeldOutClasses or mapping of str to these, optional
        Predictions for held-out samples, of one model or of several by name; the first is the main one. The page begins
        with a comparison with the model called "no model", or with the mean or the class shares of the held-out y.
    experts : mapping of str to float, optional
        Weight of each expert in the main model, such as ``stack_.weights`` of :class:`~distreduce.gp.SDRGPClassifier`.
    image_shape : (int, int), optional
        Height and width, if each sample is a greyscale image.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command that the page shows as its origin; by default the calls in Python.
    notes : sequence of str, optional
        What a reader should know of the data, such as filled cells or a column that gives the target away.
    split : str, optional
        A sentence that says how the held-out samples were chosen.
    within : str, optional
        The new samples that left-out places hold for, such as "of the same clinic", if the fit knew no groups.
    n_rows : int, optional
        Number of rows that the samples were drawn from, if there are more.

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
    # Check and render everything before the file is touched.
    subject = _check(model, X, y, sample_weight, table, row_numbers, image_shape)
    subject = replace(subject, within=within, n_rows=n_rows, recipe=recipe)
    predictions, named = describe_predictions(held_out), name_models(held_out)  # first: they are checked there
    new_row = encode_new_row(subject, recipe, predictor)
    n, m = model.coupling_.shape
    context = {
        **_describe_fit(subject, named, new_row),
        **describe_new_row(new_row, predictor),
        "title": title or f"{n:,} samples, {m:,} prototypes",
        "warnings": [*collect_warnings(subject), *notes],
        "command": describe_call(subject) if command is None else command,
        "predictions": predictions,
        "split": split,
        "experts": sort_experts(experts or {}),
    }
    text = render_page("page.html.j2", context, package=HERE, styles=("page.css",), scripts=SCRIPTS)
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInputError(f"path={str(target)!r} must name a file in an existing folder; make the folder first.")
    with replacing(target) as hidden:
        # Lone surrogates, which a file name may hold, cannot be encoded: they become "?".
        hidden.write_bytes(text.encode("utf-8", errors="replace"))
    return target


def _check(model: Any, X: Any, y: Any, sample_weight: Any, table: Any, row_numbers: Any, image_shape: Any) -> Subject:
    check_reduction(model)
    n = len(model.embedding_)
    samples = X.to_numpy() if isinstance(X, pd.DataFrame) else X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if samples.ndim != 2 or samples.shape != (n, model.n_features_in_):
        raise InvalidInputError(
            f"X must hold the {n} samples of the fit with {model.n_features_in_} features; got shape {samples.shape}."
        )
    if table is not None and (not isinstance(table, pd.DataFrame) or len(table) != n):
        given = f"{len(table)} rows" if isinstance(table, pd.DataFrame) else type(table).__name__
        raise InvalidInputError(f"table must be a pandas.DataFrame with one row per sample ({n}); got {given}.")
    if image_shape is not None and int(np.prod(image_shape)) != samples.shape[1]:
        raise InvalidInputError(
            f"image_shape={tuple(image_shape)} is {int(np.prod(image_shape))} pixels, but X has {samples.shape[1]} "
            "columns; give (height, width) of a greyscale image."
        )
    # Pixels and distances mean nothing cell by cell.
    if table is None and image_shape is None and model.metric != "precomputed":
        table = _make_table(X, samples, model)
    # A y without any known target is treated as none: there is nothing to colour by.
    unknown = y is not None and bool(pd.isna(np.asarray(y, dtype=object)).all())
    weights = None if sample_weight is None else read_weights(sample_weight, model.embedding_)
    rows = _read_row_numbers(row_numbers, n)
    return Subject(model, samples, None if unknown else y, table, rows, image_shape, weights)


def _read_row_numbers(given: Any, n: int) -> Index:
    rows = np.arange(n) if given is None else np.asarray(given)
    if rows.shape != (n,) or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= 2**32:
        raise InvalidInputError(
            f"row_numbers must hold a whole number from 0 to {2**32 - 1} for each of the {n} samples; "
            f"got an array of {rows.dtype} of shape {rows.shape}."
        )
    return rows.astype(np.intp)


def _make_table(X: Any, samples: Any, model: BaseReduction) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    names = getattr(model, "feature_names_in_", [f"x{place}" for place in range(samples.shape[1])])
    if sparse.issparse(samples):
        return pd.DataFrame.sparse.from_spmatrix(samples, columns=list(names))
    return pd.DataFrame(samples, columns=list(names))


def _describe_fit(subject: Subject, named: Mapping[str, Given], new_row: Node | None) -> dict[str, Any]:
    """Return what the template says of the fit, and the data of the script, of which `new_row` is a part."""
    model, found, worst = subject.model, find_targets(subject), list_criticisms(subject.model, subject.y)
    headline = describe_headline(named, subject.target_names()) if named else None
    return {
        "headline": headline,
        "verdicts": [each for each in (headline, describe_optimism(model, subject.within)) if each is not None],
        "facts": collect_facts(subject, named),
        "history": draw_history(subject),
        "ended": describe_end(subject),
        "prototypes": list_prototypes(subject, found),
        "criticisms": describe_criticisms(subject, worst),
        "target_names": [each.believed.name for each in found],
        "supervised": hasattr(model, "prototype_targets_"),
        "fills_axes": getattr(model, "eta", None) == "auto",
        "left_out": hasattr(model, "embedding_left_out_"),
        "with_evidence": subject.with_evidence,
        "images": subject.image_shape is not None,
        "one_to_one": subject.one_to_one,
        "of_numbers": any(each.believed.mean is not None for each in found),
        "with_shapes": any(each.believed.mean is None and len(each.believed.labels) > len(OKABE_ITO) for each in found),
        "heat_maps": [each.shown.name for each in found if each.shown.encode().get("order")],
        "document": as_json(encode_page(subject, found, worst) | {"newRow": new_row}),
    }
