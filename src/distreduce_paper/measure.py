"""Seconds, CPU seconds and peak memory of a piece of work, and a description of the machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distreduce._utils.versions import library_versions

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "POT", "torch", "gpytorch", "umap-learn")


@dataclass(eq=False)
class Cost:
    """What a piece of work took; filled in when it ends. `peak_mb`: largest resident set of the process meanwhile."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0


_UNDER_WAY: list[Cost] = []  # a fit is measured inside its cell


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what happens inside. CPU seconds are of all threads of the process."""
    _note_peak()
    _reset_peak()
    cost = Cost()
    _UNDER_WAY.append(cost)
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield cost
    finally:
        cost.seconds += time.perf_counter() - wall
        cost.cpu_seconds += time.process_time() - cpu
        _note_peak()
        _UNDER_WAY.remove(cost)


def charge(earlier: Cost) -> None:
    """Add to all that is under way what was measured before: work done once for several counts in each of them."""
    for cost in _UNDER_WAY:
        cost.seconds += earlier.seconds
        cost.cpu_seconds += earlier.cpu_seconds
        cost.peak_mb = max(earlier.peak_mb, cost.peak_mb)


def _note_peak() -> None:
    """Tell all that is under way, before the system is made to forget it."""
    peak = _peak_mb()
    for cost in _UNDER_WAY:
        cost.peak_mb = max(peak, cost.peak_mb)


def _reset_peak() -> None:
    """Linux keeps the peak of a process's life unless told to forget it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # elsewhere, or not allowed: the peak is that of the process so far


def _peak_mb() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return _life_peak_mb()


def _life_peak_mb() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that affect the results."""
    return library_versions(PACKAGES)
