"""Seconds, CPU seconds and peak memory of a piece of work, and a description of the machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distreduce._utils.threads import available_cores
from distreduce._utils.versions import library_versions

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "POT", "torch", "gpytorch", "umap-learn")


@dataclass(eq=False)
class Cost:
    """What a piece of work took; `peak_mb` is the largest resident set of the process during it."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0


_RUNNING: list[Cost] = []  # nested measurements: a fit is measured inside its cell


@contextmanager
def measure() -> Iterator[Cost]:
    """Measure the body of the ``with`` statement. CPU seconds are those of all threads of the process."""
    # Measurements around this one keep the peak so far, before the system forgets it.
    _update_peaks()
    _reset_peak()
    cost = Cost()
    _RUNNING.append(cost)
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield cost
    finally:
        cost.seconds += time.perf_counter() - wall  # added, because `charge` may have counted work already
        cost.cpu_seconds += time.process_time() - cpu
        _update_peaks()
        _RUNNING.remove(cost)


def charge(earlier: Cost) -> None:
    """Add an earlier cost to all running measurements: work that several cells share counts in each of them."""
    for cost in _RUNNING:
        cost.seconds += earlier.seconds
        cost.cpu_seconds += earlier.cpu_seconds
        cost.peak_mb = max(earlier.peak_mb, cost.peak_mb)


def _update_peaks() -> None:
    """Pass the peak to all running measurements, before the system resets it."""
    peak = _peak_mb()
    for cost in _RUNNING:
        cost.peak_mb = max(peak, cost.peak_mb)


def _reset_peak() -> None:
    """Reset the peak, which Linux otherwise keeps for the lifetime of the process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # 5 resets VmHWM, the peak of the resident set
    except OSError:
        pass  # not Linux, or not permitted: the peak is that of the process so far


def _peak_mb() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        # VmHWM, unlike getrusage, follows the reset.
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return _lifetime_peak_mb()


def _lifetime_peak_mb() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1024**2 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that affect the numbers."""
    return library_versions(PACKAGES)


@cache
def describe_machine() -> str:
    """Describe the machine in one line: processor, cores, memory, system."""
    return f"{_processor()}, {available_cores()} cores, {_memory_gib():.0f} GiB, {platform.system()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    except (AttributeError, ValueError, OSError):
        return float("nan")
