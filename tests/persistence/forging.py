"""Changing what a saved file holds: what tests of refusal have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from distreduce._utils.tensor_file import KEY, write_file

ARRAY = {"kind": "array", "dtype": "float64", "order": "C"}
Document = dict[str, Any]
Edit = Callable[[Document, dict[str, np.ndarray]], Any]


def contents(path: Path) -> tuple[Document, dict[str, np.ndarray]]:
    with safe_open(path, framework="numpy") as handle:
        document = json.loads(handle.metadata()[KEY])
    del document["sha256"]
    return document, load_file(path)


def forge(path: Path, edit: Edit) -> None:
    """Change what a file holds, with a checksum that fits: what somebody who means harm would do."""
    document, tensors = contents(path)
    edit(document, tensors)
    write_file(path, document, tensors)


def fitted(document: Document) -> Document:
    return document["state"]["fitted"]


def params(document: Document) -> Document:
    return document["state"]["params"]


def nested(depth: int) -> Any:
    node: Any = 1
    for _ in range(depth):
        node = [node]
    return node


def replaced(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    return lambda _, tensors: tensors.update({name: np.ascontiguousarray(change(tensors[name]))})


def put(name: str, index: Any, value: Any) -> Edit:
    def change(A: np.ndarray) -> np.ndarray:
        A[index] = value
        return A

    return replaced(name, change)
