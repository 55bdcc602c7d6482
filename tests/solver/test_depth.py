"""From `fit` to a value of J: few frames, and J is assembled in one place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import distreduce
from distreduce import SDR
from distreduce.solver import objective, steps

PACKAGE = str(Path(distreduce.__file__).parent)
MOST_FRAMES = 10


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
def test_j_is_at_most_ten_frames_below_fit(affinity, rng, monkeypatch):
    seen: list[list[str]] = []

    def watched(*args: Any, **options: Any) -> Any:
        frame, names = sys._getframe(1), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        seen.append(names[::-1])
        return objective.objective(*args, **options)

    monkeypatch.setattr(steps, "objective", watched)
    X = rng.normal(size=(60, 3))
    SDR(n_prototypes=5, perplexity=8.0, affinity=affinity, random_state=0, tol=1e-2).fit(X, X[:, 0])
    assert seen[0][0] == "fit" and seen[0][-1] == "z_step"
    assert max(len(names) for names in seen) + 1 <= MOST_FRAMES
