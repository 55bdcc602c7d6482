"""The version of distreduce, and those of the libraries beside it."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

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
