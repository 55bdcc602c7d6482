"""Checkpoints of two unfinished fits, and the fit that goes on from what a file says."""

from __future__ import annotations

import re
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from hostile.originals import table

from distreduce import SDR
from distreduce.solver import loop as solve

FINGERPRINT = rb"fingerprint\W+([0-9a-f]{64})"


class Killed(BaseException):
    """Ends a fit as nothing can that it would catch."""


def _model(affinity: str, path: Path) -> SDR:
    """A short fit, of few and small iterations."""
    steps: dict[str, Any] = {"max_inner_iter": 5, "max_iter": 3, "tol": 0.0}
    few = {"n_prototypes": 4, "perplexity": 4.0, "n_jobs": 1, "random_state": 0}
    return SDR(affinity=affinity, checkpoint=path, **steps, **few)


def _fit(model: SDR) -> SDR:
    X = table()[["size", "rooms"]].to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three iterations are too few
        return model.fit(X, X[:, 0])


@cache
def checkpoints() -> list[bytes]:
    """A dense fit's and a sparse one's, killed in their second iteration."""
    return [_killed(affinity) for affinity in ("dense", "sparse")]


def _killed(affinity: str) -> bytes:
    real = solve._advance

    def dies(steps: Any, at: Any) -> Any:
        if at.iteration == 1:
            raise Killed
        return real(steps, at)

    with tempfile.TemporaryDirectory() as folder, patch.object(solve, "_advance", dies):
        path = Path(folder) / "fit.checkpoint"
        try:
            _fit(_model(affinity, path))
        except Killed:
            return path.read_bytes()
    raise AssertionError("the fit was to be killed")


def go_on(path: Path) -> None:
    """The sparse fit if the file names it, or else the dense one; all that it ends with is finite."""
    sparse = re.search(FINGERPRINT, checkpoints()[1])
    assert sparse is not None
    affinity = "sparse" if sparse[1] in path.read_bytes() else "dense"
    model = _fit(_model(affinity, path))
    for name in ("embedding_", "prototypes_", "prototype_targets_"):
        assert np.isfinite(getattr(model, name)).all(), name
