"""Clocks, thread limits, and the exponent of a growth law."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from threadpoolctl import threadpool_limits

Result = TypeVar("Result")


def threads_of(number: int) -> str:
    return f"{number} thread{'s' if number > 1 else ''}"


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of the call, and its seconds."""
    began = time.perf_counter()
    result = call()
    return result, time.perf_counter() - began


def median_seconds(call: Callable[[], Any], repeats: int = 9, budget: float = 5.0) -> float:
    """Median over `repeats` calls after one that is not counted; at least three, then no more than `budget` seconds."""
    call()
    taken: list[float] = []
    # Short calls are repeated in full; long ones stop at the budget.
    while len(taken) < repeats and (len(taken) < 3 or sum(taken) < budget):
        taken.append(timed(call)[1])
    return float(np.median(taken))


@contextmanager
def yardstick_threads(n_threads: int) -> Iterator[None]:
    """Let BLAS (POT's products) and torch use `n_threads`."""
    before = torch.get_num_threads()
    with threadpool_limits(limits=n_threads):
        torch.set_num_threads(n_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def yardstick_seconds(call: Callable[[], Any], n_threads: int, repeats: int = 9) -> tuple[float, int]:
    """Median seconds with one thread or with `n_threads`, whichever is less (small tensors gain nothing), and which."""
    taken = []
    for threads in sorted({1, n_threads}):
        with yardstick_threads(threads):
            taken.append((median_seconds(call, repeats), threads))
    return min(taken)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Slope of log seconds against log size by least squares, and its standard error (NaN for two points)."""
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    # Two parameters are fitted, slope and intercept, so two points leave no freedom.
    residual = y - y.mean() - slope * x
    free = len(x) - 2
    return slope, float(np.sqrt(residual @ residual / free / (x @ x))) if free > 0 else float("nan")
