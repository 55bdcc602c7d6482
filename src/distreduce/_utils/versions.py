"""The version of the package, of the libraries under it, and the machine, for files that record what wrote them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    # A process may be bound to some of the machine's cores.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def machine() -> str:
    """Describe the machine in one line: processor, cores, memory, operating system."""
    return f"{_processor()}, {available_cores()} cores, {_memory_gib():.0f} GiB, {platform.system()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or a processor without a name there
        return platform.processor() or platform.machine()


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    except (AttributeError, ValueError, OSError):
        return float("nan")
