"""All that one fit could change for everybody else in the process."""

from __future__ import annotations

import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_info


def _default_device() -> str:
    """torch 2.2 has no function for it."""
    return str(torch.get_default_device() if hasattr(torch, "get_default_device") else torch.empty(0).device)


PARTS: dict[str, Callable[[], Any]] = {
    "numpy's generator": lambda: (
        str(np.random.mtrand._rand.get_state(legacy=False)["state"]["key"].tolist())
        + str(np.random.mtrand._rand.get_state()[2:])
    ),
    "numpy's errors": np.geterr,
    "numpy's printing": lambda: str(np.get_printoptions()),
    "Python's generator": random.getstate,
    "torch's generator": lambda: torch.get_rng_state().numpy().tobytes(),
    "torch's threads": lambda: (torch.get_num_threads(), torch.get_num_interop_threads()),
    "torch's type": lambda: (torch.get_default_dtype(), _default_device()),
    "torch's modes": lambda: (torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()),
    "filters of warnings": lambda: list(warnings.filters),
    "matplotlib's settings": lambda: (dict(mpl.rcParams), mpl.get_backend()),
    "matplotlib's open figures": plt.get_fignums,
    "environment": lambda: dict(os.environ),
    "logging": lambda: (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
    "logging of the package": lambda: (logging.getLogger("distreduce").level, logging.getLogger("distreduce").handlers),
    "thread limits": lambda: sorted((pool["filepath"], pool["num_threads"]) for pool in threadpool_info()),
    "pandas' options": lambda: {name: pd.get_option(name) for name in ("mode.copy_on_write", "display.precision")},
    "folder": os.getcwd,
    "paths of modules": lambda: list(sys.path),
    "recursion limit": sys.getrecursionlimit,
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "signals": lambda: [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
    "hooks": lambda: (sys.excepthook, threading.excepthook, sys.stdout, sys.stderr),
    "threads of ours": lambda: sorted(t.name for t in threading.enumerate() if not t.daemon),
}


def snapshot() -> dict[str, Any]:
    """Every part, as it is now."""
    return {name: read() for name, read in PARTS.items()}


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of the parts that are not as they were."""
    return [name for name in before if before[name] != after[name]]
