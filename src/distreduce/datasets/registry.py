"""All sets that have a name, read from sets.json: origins, hashes, shapes, licences and citations."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from distreduce.datasets import origins
from distreduce.datasets.built_in import BundledSet, GeneratedSet
from distreduce.datasets.file_set import FileSet, RemoteFile


def _file_set(parse: str, remote: list[dict[str, Any]], **facts: Any) -> FileSet:
    """Make a set; `parse` is the name of a function of :mod:`~distreduce.datasets.origins`."""
    return FileSet(parse=getattr(origins, parse), remote=tuple(RemoteFile(**_freeze(file)) for file in remote), **facts)


def _freeze(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}


_SETS = json.loads((files("distreduce.datasets") / "sets.json").read_text(encoding="utf-8"))
FILE_SETS: dict[str, FileSet] = {facts["name"]: _file_set(**_freeze(facts)) for facts in _SETS["files"]}
GENERATED_SETS = {facts["name"]: GeneratedSet(**_freeze(facts)) for facts in _SETS["generators"]}
BUNDLED_SETS = {facts["name"]: BundledSet(**_freeze(facts)) for facts in _SETS["bundled"]}
