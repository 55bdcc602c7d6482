"""recipe.json: a recipe as plain JSON; every value is checked when it is read back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from distreduce._utils.tensor_file import RefusedError, require
from distreduce.exceptions import ModelFileError
from distreduce.tables.cells import DATE_FORMATS
from distreduce.tables.columns import MAX_LEVELS, MAX_RARE, Boolean, Category, Column, Date, Dropped, Number
from distreduce.tables.recipe import POLICIES, ColumnRecipe

FORMAT, VERSION = "distreduce recipe", 1
MAX_BYTES = 64 * 2**20
KINDS: dict[str, Any] = {rule.kind: rule for rule in (Number, Boolean, Category, Date, Dropped)}


def _is_finite(value: Any) -> bool:
    """Return whether it is a number that float64 can hold; JSON allows integers of any length."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _are_levels(value: Any) -> bool:
    """Check for different texts, at most as many as a fit keeps: each becomes a column of X, in memory."""
    return _are_texts(value) and len(value) <= MAX_LEVELS and len(set(value)) == len(value)


def _are_rare(value: Any) -> bool:
    """Check for a list of texts, which may be empty."""
    return value == [] or (_are_texts(value) and len(value) <= MAX_RARE)


# The test that a field of a rule must pass, by its name.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str), "reason": lambda value: isinstance(value, str),
    "unit": lambda value: isinstance(value, str),
    "layout": lambda value: isinstance(value, str) and value in DATE_FORMATS,
    "center": _is_finite, "fill": _is_finite, "scale": _is_positive,
    "flag": lambda value: isinstance(value, bool), "other": lambda value: isinstance(value, bool),
    "levels": _are_levels, "rare": _are_rare,
    "cycles": lambda value: isinstance(value, list) and all(map(_is_positive, value)),
}  # fmt: skip


def write_recipe(recipe: ColumnRecipe, path: Path) -> None:
    """Write a recipe as JSON."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "task": recipe.task,
        "targets": recipe.targets,
        "missing": recipe.missing,
        "image_shape": recipe.image_shape,
        "id_column": recipe.id_column,
        "files": dict(recipe.files),
        "columns": [{"kind": rule.kind, **asdict(rule)} for rule in recipe.rules],
    }
    # allow_nan=False: NaN is not JSON, and no rule may hold it.
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_recipe(path: Path) -> ColumnRecipe:
    """Read what :func:`write_recipe` wrote; raise ModelFileError with the reason for anything else."""
    try:
        # A recipe may come from a stranger: bound the memory, and check every field.
        require(path.stat().st_size <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
        return _parse_recipe(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ModelFileError(f"There is no {path}; name a folder that `distreduce fit` wrote.") from error
    except (RefusedError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path} is not a recipe of distreduce ({error}); fit again.") from error


def _parse_recipe(content: Any) -> ColumnRecipe:
    require(isinstance(content, dict) and content.get("format") == FORMAT, "its format is another one")
    version = content.get("version")
    require(version == VERSION, f"its version is {version!r}, this distreduce reads {VERSION}")
    require(content.get("task") in ("regression", "classification", None), "its task is unknown")
    require(content.get("missing") in POLICIES, "its policy for missing values is unknown")
    # JSON has lists where the recipe has tuples.
    targets, shape, columns = content.get("targets"), content.get("image_shape"), content.get("columns")
    require(_are_texts(targets) or (targets == [] and content.get("task") is None), "it has no targets")
    valid = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int and side > 0 for side in shape)
    require(shape is None or valid, "its image shape is not two positive integers")
    require(isinstance(columns, list), "it has no columns")
    id_column, files = content.get("id_column"), content.get("files", {})  # older recipes have neither
    require(id_column is None or isinstance(id_column, str), "its id column is not a name")
    require(isinstance(files, dict) and all(isinstance(sha, str) for sha in files.values()), "its files are not text")
    rules = tuple(_parse_rule(column) for column in columns)
    # Together: X needs a column, and columns are found by name.
    require(any(not isinstance(rule, Dropped) for rule in rules), "it uses no column")
    require(len({rule.name for rule in rules}) == len(rules), "it names a column twice")
    image_shape = (shape[0], shape[1]) if shape else None
    return ColumnRecipe(rules, tuple(targets), content.get("task"), content["missing"], image_shape, id_column, files)


def _parse_rule(content: Any) -> Column:
    require(isinstance(content, Mapping) and str(content.get("kind")) in KINDS, "it has a column of an unknown kind")
    kind = KINDS[content["kind"]]
    names = {field.name for field in fields(kind)}
    # Exactly the fields of the class: others would reach its constructor. Older recipes lack two of them.
    given = set(content) - {"kind"}
    require(
        given <= names <= given | {"unit", "rare"}, f"a column of kind {kind.kind!r} has other fields than it should"
    )
    for name in given:
        require(CHECKS[name](content[name]), f"{name!r} of column {content.get('name')!r} is {content[name]!r:.40}")
    return kind(**{name: _convert(content[name]) for name in given})


def _convert(value: Any) -> Any:
    """Return integers as floats, because they may be too long for NumPy, and lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_convert, value))
    return float(value) if type(value) is int else value
