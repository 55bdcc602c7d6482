"""A line of the store as a record, every field checked: the file may come from anybody."""

from __future__ import annotations

import json
from typing import Any

from distreduce_paper.cell import Cell

Record = dict[str, Any]
COSTS = ("seconds", "cpu_seconds", "peak_mb")
# What a table has of every cell; a parameter or a result of the same name would take its place.
COLUMNS = ("experiment", "data", "method", "seed", "quick", *COSTS, "machine")


def parsed(line: bytes) -> Record:
    """The record of a line; a ValueError that says why if it is none."""
    try:
        record = json.loads(line, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    _require(isinstance(record, dict), "it is no object")
    missing = sorted({*Cell.__dataclass_fields__} - {*record})
    _require(not missing, f"it lacks {missing}")
    _require(all(isinstance(record[name], str) for name in ("experiment", "data", "method")), "a name is no text")
    _require(type(record["seed"]) is int and type(record["quick"]) is bool, "its seed or its quick is none")
    scalar = str | int | float | bool | None
    parameters = record["parameters"]
    _require(isinstance(parameters, dict), "its parameters are no object")
    _require(all(isinstance(value, scalar) for value in parameters.values()), "a parameter is no single value")
    _require("result" in record or "error" in record, "it has neither a result nor an error")
    result = {} if "error" in record else record["result"]
    _require(isinstance(result, dict), "its result is no object")
    taken = sorted({*COLUMNS} & {*parameters, *result})
    _require(not taken, f"a parameter or a result is called {taken}")
    costs = [record[name] for name in COSTS if name in record]
    _require(all(isinstance(cost, int | float) for cost in costs), "a cost is no number")
    return record


def _whole(digits: str) -> int:
    """Numbers of any length are JSON, and too much for a table."""
    _require(len(digits) < 19, f"it holds the number {digits:.40}")
    return int(digits)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)
