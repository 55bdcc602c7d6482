"""Models saved by earlier versions load and predict as they did.

Each folder of ``golden`` holds one file per class and ``expected.npz``, what each said of the samples ``new``, made by
``PYTHONPATH=src:tests python tests/persistence/make_golden.py`` when its version and format were current. A file here
is never made again: if one cannot be read any more, the reader is wrong.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from persistence.make_golden import CURRENT, FOLDER, MODELS, said
from safetensors.numpy import load_file

from distreduce import persistence


def arrays(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_file(path).items()}


FILES = sorted(FOLDER.glob("*/*.safetensors"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_predictions_of_an_earlier_version(path: Path) -> None:
    """To rounding, which another BLAS or NumPy does in another order and the solves of a GP enlarge (2e-11 so far)."""
    with np.load(path.parent / "expected.npz", allow_pickle=False) as expected:
        found = said(persistence.load(path), expected["new"])
        assert_allclose(found, expected[path.stem], rtol=1e-12, atol=1e-9 * np.abs(expected[path.stem]).max())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_golden_file_saves_to_the_same_arrays(path: Path, tmp_path: Path) -> None:
    """Everything in the file is understood, or it would be lost on the way; newer formats may add to it."""
    persistence.load(path).save(tmp_path / "again")
    assert arrays(path).items() <= arrays(tmp_path / "again").items()


def test_every_class_has_a_golden_file() -> None:
    of_this_version = {type(persistence.load(path)).__name__ for path in FILES if path.parent == CURRENT}
    assert of_this_version == {*persistence.REGISTRY}


def test_every_golden_model_is_there() -> None:
    assert {path.stem for path in FILES if path.parent == CURRENT} == {*MODELS}
