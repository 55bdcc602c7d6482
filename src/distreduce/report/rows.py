"""The samples that the panel shows for a prototype: its medoid and nearest samples, as rows of the table or images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from distreduce.estimators._base import BaseReduction
from distreduce.report.columns import Node, Rows
from distreduce.report.encode import cell_text, pack

MAX_ROW_COLUMNS = 100
MAX_CELLS = 400_000
N_NEAREST = 5


def find_nearest(model: BaseReduction, prototypes: Rows, n_nearest: int = N_NEAREST) -> list[list[int]]:
    """Return, for each prototype, its medoid and the nearest of its other samples, by distance in the embedding.

    If every sample is its own prototype, the nearest of all samples.
    """
    Z = model.embedding_
    if model.coupling_.shape[0] == model.coupling_.shape[1]:
        search = NearestNeighbors(n_neighbors=min(n_nearest + 1, len(Z))).fit(Z)
        candidates = list(search.kneighbors(model.prototypes_[prototypes], return_distance=False))
    else:
        order = np.argsort(model.labels_, kind="stable")
        edges = np.searchsorted(model.labels_[order], np.arange(len(model.prototypes_) + 1))
        candidates = []
        for k in prototypes:
            members = order[edges[k] : edges[k + 1]]
            distances = ((Z[members] - model.prototypes_[k]) ** 2).sum(axis=1)
            candidates.append(members[np.argsort(distances, kind="stable")])
    medoids = model.prototype_medoids_[prototypes]
    return [
        [int(medoid), *(int(row) for row in rows if row != medoid)][: n_nearest + 1]
        for medoid, rows in zip(medoids, (rows[: n_nearest + 1] for rows in candidates), strict=True)
    ]


def collect_rows(
    nearest: list[list[int]],
    X: Any,
    targets: list[Any],
    table: pd.DataFrame | None,
    row_numbers: Rows,
    image_shape: tuple[int, int] | None,
) -> Node:
    """Return the rows that `nearest` names, each once, with their numbers, targets, cells and images."""
    wanted = sorted({row for rows in nearest for row in rows})
    place = {row: k for k, row in enumerate(wanted)}
    node: Node = {"nearest": [[place[row] for row in rows] for rows in nearest], "rows": row_numbers[wanted].tolist()}
    node["targets"] = [[_target_text(column[row]) for row in wanted] for column in targets]
    if table is not None:
        part = table.iloc[wanted, : max(1, min(MAX_ROW_COLUMNS, MAX_CELLS // len(wanted)))]
        node["columns"] = [str(name) for name in part.columns]
        node["leftOut"] = table.shape[1] - part.shape[1]
        node["cells"] = [[cell_text(value) for value in part.iloc[:, c].tolist()] for c in range(part.shape[1])]
        if not isinstance(table.index, pd.RangeIndex):
            node["names"] = [cell_text(name) for name in part.index]
    return node if image_shape is None else node | {"images": _encode_images(X, wanted, image_shape)}


def _target_text(value: Any) -> str:
    return "not known" if pd.isna(value) else cell_text(value)


def _encode_images(X: Any, wanted: list[int], shape: tuple[int, int]) -> Node:
    pixels = X[wanted].toarray() if sparse.issparse(X) else np.asarray(X[wanted], dtype=np.float64)
    low, high = float(pixels.min()), float(pixels.max())
    shades = np.round((pixels - low) / ((high - low) or 1.0) * 255)
    return {"height": shape[0], "width": shape[1], "pixels": pack(shades, "u1")}
