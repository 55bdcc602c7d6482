"""From `fit` to a value of J: few frames, files and types, and J is assembled in one place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris

import distreduce
from distreduce import SDR
from distreduce.solver import objective

PACKAGE = str(Path(distreduce.__file__).parent)
MOST_FRAMES = 10
MOST_FILES, MOST_TYPES = 31, 28  # of the package, entered and created from `fit` to the first J (decision 20)


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
def test_j_is_at_most_ten_frames_below_fit(affinity, rng, monkeypatch):
    real = objective.objective
    seen: list[list[str]] = []

    def watched(*args: Any, **options: Any) -> Any:
        frame, names = sys._getframe(1), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        seen.append(names[::-1])
        return real(*args, **options)

    monkeypatch.setattr(objective, "objective", watched)
    X = rng.normal(size=(60, 3))
    SDR(n_prototypes=5, perplexity=8.0, affinity=affinity, random_state=0, tol=1e-2).fit(X, X[:, 0])
    assert seen[0][0] == "fit" and seen[0][-1] == "z_step"
    assert max(len(names) for names in seen) + 1 <= MOST_FRAMES


class _Reached(BaseException):
    """The first value of J is asked for."""


def test_the_way_to_j_is_short():
    X, y = load_iris(return_X_y=True)
    SDR(n_prototypes=10, random_state=0).fit(X, y)  # modules that are imported on first use are not part of the way
    files, types = set(), set()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_filename.startswith(PACKAGE):
            files.add(code.co_filename)
        if code.co_name == "__init__":
            types.add(type(frame.f_locals["self"]))
        if code is objective.objective.__code__:
            raise _Reached

    model = SDR(n_prototypes=10, random_state=0)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with pytest.raises(_Reached):
            model.fit(X, y)
    finally:
        sys.setprofile(before)
    types = {kind for kind in types if kind.__module__.startswith("distreduce.")}
    assert len(files) <= MOST_FILES, sorted(files)
    assert len(types) <= MOST_TYPES, sorted(kind.__qualname__ for kind in types)
