"""Decision trees as plain arrays: fitted by scikit-learn, evaluated and saved without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from distreduce._utils.threads import ELEMENTWISE
from distreduce._utils.typing import Array, Index

LEAF = -1  # feature of a node without children


@dataclass(frozen=True)
class Trees:
    """Trees one after another. A sample goes left where ``x[feature] <= threshold``."""

    feature: Index  # (nodes,); −1 for a leaf
    threshold: Array
    left: Index  # (nodes,), children
    right: Index
    values: Array  # (nodes, v), what a leaf adds to the columns of the prediction
    roots: Index  # (trees,), first node of each tree
    columns: Index  # (trees,), first column that it adds to
    n_columns: int  # of the prediction
    single: bool  # inputs are compared in single precision, as scikit-learn's forests do

    @classmethod
    def of_forest(cls, forest: Sequence[Any]) -> Trees:
        """The trees of a random forest; the values of a classifier are shares of classes."""
        grown = [tree.tree_ for tree in forest]
        values = np.concatenate([tree.value.reshape(tree.node_count, -1) for tree in grown])
        parts = [(t.children_left < 0, t.feature, t.threshold, t.children_left, t.children_right) for t in grown]
        return cls._joined(parts, values, np.zeros(len(grown), dtype=np.intp), values.shape[1], single=True)

    @classmethod
    def of_boosting(cls, model: Any) -> Trees:
        """The trees of HistGradientBoosting; each adds to the score of one class."""
        grown = [(k, tree.nodes) for step in model._predictors for k, tree in enumerate(step)]
        values = np.concatenate([nodes["value"] for _, nodes in grown])[:, None]
        parts = [
            (n["is_leaf"].astype(bool), n["feature_idx"], n["num_threshold"], n["left"], n["right"]) for _, n in grown
        ]
        columns = np.array([k for k, _ in grown], dtype=np.intp)
        return cls._joined(parts, values, columns, len(model._predictors[0]), single=False)

    @classmethod
    def _joined(cls, parts: list[Any], values: Array, columns: Index, n_columns: int, *, single: bool) -> Trees:
        """Number the nodes of all trees through."""
        roots = np.cumsum([0, *(len(part[0]) for part in parts[:-1])]).astype(np.intp)
        leaf, feature, threshold, left, right = (np.concatenate(part) for part in zip(*parts, strict=True))
        shift = np.repeat(roots, [len(part[0]) for part in parts])
        return cls(
            np.where(leaf, LEAF, feature).astype(np.intp),
            np.where(leaf, 0.0, threshold).astype(np.float64),
            np.where(leaf, 0, left + shift).astype(np.intp),
            np.where(leaf, 0, right + shift).astype(np.intp),
            np.ascontiguousarray(values, dtype=np.float64),
            roots,
            columns,
            n_columns,
            single,
        )

    def sums(self, inputs: Array) -> tuple[Array, Array]:
        """Sum over the trees of the values of each sample's leaves (t, n_columns), and the sum of their squares."""
        inputs = np.ascontiguousarray(inputs, dtype=np.float64)
        if self.single:
            inputs = inputs.astype(np.float32).astype(np.float64)
        nodes = self.feature, self.threshold, self.left, self.right, self.values
        total, squares = np.zeros((2, len(inputs), self.n_columns))
        descend = _descend_few if len(inputs) <= UNCOMPILED_INPUTS else _descend
        descend(inputs, *nodes, self.roots, self.columns, total, squares)
        return total, squares


# Up to this many inputs NumPy takes the place of the compiled loop, to the same bits; compiling takes a second.
UNCOMPILED_INPUTS = 500


def _descend_few(  # type: ignore[no-untyped-def]
    inputs, feature, threshold, left, right, values, roots, columns, total, squares
) -> None:
    """All inputs down all trees, one level at a time."""
    rows, node = np.arange(len(inputs))[:, None], np.tile(roots, (len(inputs), 1))
    while (inner := feature[node] >= 0).any():
        lower = inputs[rows, feature[node]] <= threshold[node]  # of leaves too, which stay where they are
        node = np.where(inner, np.where(lower, left[node], right[node]), node)
    for leaf, column in zip(node.T, columns, strict=True):
        total[:, column : column + values.shape[1]] += values[leaf]
        squares[:, column : column + values.shape[1]] += values[leaf] ** 2


@njit(**{**ELEMENTWISE, "fastmath": False})  # without fused multiplications: the sums of `_descend_few`
def _descend(inputs, feature, threshold, left, right, values, roots, columns, total, squares):  # type: ignore[no-untyped-def]
    for tree in range(len(roots)):  # the nodes of one tree stay in the cache for all samples
        for i in range(len(inputs)):
            node = roots[tree]
            while feature[node] >= 0:
                node = left[node] if inputs[i, feature[node]] <= threshold[node] else right[node]
            for c in range(values.shape[1]):
                total[i, columns[tree] + c] += values[node, c]
                squares[i, columns[tree] + c] += values[node, c] ** 2
