"""recipe.json: the recipe as plain JSON, every value checked when it is read back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from distreduce._utils.tensor_reader import RefusedError, require
from distreduce.exceptions import ModelFileError
from distreduce.tables.guess import MOST_LEVELS
from distreduce.tables.recipe import POLICIES, Recipe
from distreduce.tables.rules import Boolean, Category, Date, Dropped, Number, Rule
from distreduce.tables.values import DATE_FORMATS

FORMAT, VERSION = "distreduce recipe", 1
MAX_BYTES = 64 * 2**20
KINDS: dict[str, Any] = {rule.kind: rule for rule in (Number, Boolean, Category, Date, Dropped)}


def _finite(value: Any) -> bool:
    """A number that float64 can hold; JSON allows whole numbers of any length."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _positive(value: Any) -> bool:
    return _finite(value) and value > 0


def _levels(value: Any) -> bool:
    """Different texts, no more than a fit keeps: each is a column of X, and a small file must not ask for millions."""
    if not isinstance(value, list) or not 0 < len(value) <= MOST_LEVELS:
        return False
    return all(map(_text, value)) and len(set(value)) == len(value)


# What a field of a rule must be, by its name.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "name": _text, "reason": _text, "layout": lambda value: _text(value) and value in DATE_FORMATS,
    "center": _finite, "fill": _finite, "scale": _positive,
    "flag": lambda value: isinstance(value, bool), "other": lambda value: isinstance(value, bool),
    "levels": _levels, "cycles": lambda value: isinstance(value, list) and all(map(_positive, value)),
}  # fmt: skip


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write the recipe as JSON."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "task": recipe.task,
        "targets": recipe.targets,
        "missing": recipe.missing,
        "image_shape": recipe.image_shape,
        "columns": [{"kind": rule.kind, **asdict(rule)} for rule in recipe.rules],
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_recipe(path: Path) -> Recipe:
    """Read what :func:`write_recipe` wrote; anything else is a :class:`ModelFileError` that says why."""
    try:
        require(path.stat().st_size <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
        return _recipe(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ModelFileError(f"There is no {path}; name a folder that `distreduce fit` wrote.") from error
    except (RefusedError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path} is no recipe of distreduce ({error}); fit again.") from error


def _recipe(content: Any) -> Recipe:
    require(isinstance(content, dict) and content.get("format") == FORMAT, "its format is another")
    version = content.get("version")
    require(version == VERSION, f"its version is {version!r}, this distreduce reads {VERSION}")
    require(content.get("task") in ("regression", "classification"), "its task is not known")
    require(content.get("missing") in POLICIES, "its way with missing values is not known")
    targets, shape, columns = content.get("targets"), content.get("image_shape"), content.get("columns")
    require(isinstance(targets, list) and bool(targets) and all(map(_text, targets)), "it names no targets")
    good = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int and side > 0 for side in shape)
    require(shape is None or good, "its image shape is none")
    require(isinstance(columns, list), "it has no columns")
    rules = tuple(_rule(column) for column in columns)
    require(any(not isinstance(rule, Dropped) for rule in rules), "it uses no column")
    require(len({rule.name for rule in rules}) == len(rules), "it names a column twice")
    image_shape = (shape[0], shape[1]) if shape else None
    return Recipe(rules, tuple(targets), content["task"], content["missing"], image_shape)


def _rule(content: Any) -> Rule:
    require(isinstance(content, Mapping) and str(content.get("kind")) in KINDS, "it has a column of no known kind")
    kind = KINDS[content["kind"]]
    names = {field.name for field in fields(kind)}
    require(set(content) == names | {"kind"}, f"a column of kind {kind.kind!r} has other fields than it should")
    for name in names:
        require(CHECKS[name](content[name]), f"{name!r} of column {content.get('name')!r} is {content[name]!r:.40}")
    return kind(**{name: _value(content[name]) for name in names})


def _value(value: Any) -> Any:
    """Numbers as floats: whole ones may be too long for NumPy."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    return float(value) if type(value) is int else value
