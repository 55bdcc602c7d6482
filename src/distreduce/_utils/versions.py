"""The version of distreduce, and the libraries beside it: their versions, and those that may be missing."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from distreduce.exceptions import MissingDependencyError

__version__ = "0.1.0"


def library_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of distreduce, Python and those `packages` that are installed."""
    found = {"distreduce": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def import_optional(name: str, advice: str) -> Any:
    """Import a module that need not be installed; raise MissingDependencyError with the advice if it is not."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(advice) from error
