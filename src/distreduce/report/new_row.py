"""What the page needs to place and predict a row that its reader types: column recipe, map and predictor as arrays.

``formulas.js`` evaluates what is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.exceptions import UnsavableModelError
from distreduce.interop._formula import map_formula
from distreduce.interop._predictor import CONDITIONED, Node, RowPool, deflate, encode_map, encode_predictor, encode_rule
from distreduce.report.content import Subject, find_view
from distreduce.tables.columns import Category, Number, Used
from distreduce.tables.recipe import ColumnRecipe

MAX_FIELDS = 60  # columns that a reader can be asked to fill in
MAX_SIZE = 4_000_000  # characters of base64 that map and predictor may add to the page


def encode_new_row(subject: Subject, recipe: ColumnRecipe | None, predictor: Any) -> Node | None:
    """Return fields, map and predictor; None if a reader cannot type such rows (images, distances, many columns)."""
    model, X, table, prototypes = subject.model, subject.X, subject.table, subject.selection.prototypes
    if table is None or sparse.issparse(X) or model.metric == "precomputed":
        return None
    rules = _number_rules(X, table) if recipe is None else recipe.used
    if len(rules) > MAX_FIELDS or any(rule.name not in table for rule in rules):
        return None
    try:
        formula = map_formula(model)
    except UnsavableModelError:  # a kernel of the user's own
        return None
    codes = [rule.read(table[rule.name]) for rule in rules]
    medoids = np.column_stack(codes)[model.prototype_medoids_[prototypes]]
    found = {
        "fields": [_encode_field(rule, own) for rule, own in zip(rules, codes, strict=True)],
        "missing": "impute" if recipe is None else recipe.missing,
        "medoids": [[None if np.isnan(code) else float(code) for code in row] for row in medoids],
        "places": deflate(model.prototypes_[prototypes], "f8"),
        "axes": find_view(subject).axes.tolist(),
        "width": X.shape[1],
    }
    # Without the predictor if it is too large.
    for each in (predictor, None):
        pool = RowPool(np.abs(np.asarray(X, dtype=np.float64)).max(axis=0))
        formulas = {"map": encode_map(formula, pool), "predictor": encode_predictor(each, pool)}
        formulas["pool"] = pool.encode()
        if _count_characters(formulas) <= MAX_SIZE:
            return found | formulas
    return None


def describe_new_row(found: Node | None, predictor: Any) -> dict[str, Any]:
    """Return what the template says about the form."""
    node = None if found is None else found["predictor"]
    why = "The predictor is too large for a page, or has parts of your own: ask predict itself"
    # Only variances of exact GPs are approximated.
    stacks = [] if node is None or "classes" in node else node["stacks"]
    experts = [each for stack in stacks for each in stack["experts"]]
    few = all(each.get("weights") is None or each["size"] <= CONDITIONED for each in experts)
    return {
        "new_row": found is not None,
        "predicts": node is not None,
        "no_prediction": why if predictor is not None else "There is no predictor in this page",
        "approximates": "" if few else CONDITIONED,
    }


def _number_rules(X: Any, table: pd.DataFrame) -> list[Used]:
    """Return rules that take the columns of X as they are; none if the table has other columns."""
    names = [str(name) for name in table.columns]
    if len(names) != X.shape[1] or not all(map(pd.api.types.is_numeric_dtype, table.dtypes)):
        return [Number(name="", center=0.0, scale=1.0, fill=0.0)]
    fills = np.median(np.asarray(X, dtype=np.float64), axis=0).tolist()
    return [Number(name=name, center=0.0, scale=1.0, fill=fill) for name, fill in zip(names, fills, strict=True)]


def _encode_field(rule: Used, codes: Array) -> Node:
    """Return what the form shows of a column and how it is encoded."""
    known = codes[~np.isnan(codes)]
    if isinstance(rule, Category):
        levels = known[known < len(rule.levels)].astype(int)  # those of the fit, not "another"
        return encode_rule(rule) | {"typical": int(np.bincount(levels, minlength=1).argmax())}
    numbers = {"low": known.min(), "high": known.max(), "typical": np.quantile(known, 0.5, method="lower")}
    node = {name: float(value) for name, value in numbers.items()} | {"whole": bool((known % 1 == 0).all())}
    return encode_rule(rule) | node


def _count_characters(node: Any) -> int:
    if isinstance(node, Mapping):
        return len(node["data"]) if "data" in node else sum(map(_count_characters, node.values()))
    return sum(map(_count_characters, node)) if isinstance(node, list) else 0
