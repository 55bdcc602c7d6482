"""Checkpoints: a fit that was stopped anywhere goes on and ends with the same bits; bad files and disks are told of."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trust.faults import CLASSES, MODELS, NUMBERS, X, numbers

from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
from distreduce._utils import tensor_file as _file
from distreduce.exceptions import CheckpointError, CheckpointWarning, InvalidInputError
from distreduce.solver import checkpoint
from distreduce.solver import loop as solve

pytestmark = pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
KINDS = pytest.mark.parametrize("kind", MODELS)
STEPS: dict[str, Any] = {"max_inner_iter": 6, "tol": 0.0, "max_iter": 5}  # many small iterations


class Killed(BaseException):
    """What nothing may catch."""


def bits(model: Any) -> bytes:
    """Every fitted number but the seconds."""
    model.history_["seconds"] = 0.0
    return numbers(model).tobytes() + model.labels_.tobytes() + model.coupling_.indices.tobytes()


@cache
def undisturbed(kind: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bits(MODELS[kind](**STEPS).fit(X, NUMBERS))


def killed_at(monkeypatch: Any, iteration: int) -> None:
    """The fit dies in this outer iteration."""
    real = solve._advance

    def dies(steps: Any, at: Any) -> Any:
        if at.iteration + 1 == iteration:
            steps.t_step(at.state.coupled.plan, at.state.prototypes)  # in the middle of it
            raise Killed
        return real(steps, at)

    monkeypatch.setattr(solve, "_advance", dies)


def fit(kind: str, path: Path, **options: Any) -> Any:
    return MODELS[kind](checkpoint=path, **{**STEPS, **options}).fit(X, NUMBERS)


@KINDS
def test_a_checkpoint_changes_no_bit(kind, tmp_path):
    assert bits(fit(kind, tmp_path / "file")) == undisturbed(kind)


@KINDS
@pytest.mark.parametrize("iteration", [1, 3, 5])
def test_a_killed_fit_goes_on_to_the_same_bits(kind, iteration, tmp_path, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_at(patched, iteration)
        fit(kind, tmp_path / "file")
    assert bits(fit(kind, tmp_path / "file")) == undisturbed(kind)


@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_only_the_iteration_that_was_killed_is_done_again(kind, tmp_path, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_at(patched, 4)
        fit(kind, tmp_path / "file")
    real, done = solve._advance, []
    monkeypatch.setattr(solve, "_advance", lambda steps, at: done.append(at.iteration + 1) or real(steps, at))
    fit(kind, tmp_path / "file")
    assert done[0] == 4


@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_a_finished_fit_is_not_done_again(kind, tmp_path, monkeypatch):
    expected = bits(fit(kind, tmp_path / "file"))
    monkeypatch.setattr(solve, "_advance", lambda *_: pytest.fail("an iteration was done"))
    assert bits(fit(kind, tmp_path / "file")) == expected


@pytest.mark.parametrize("model", [SDRGPRegressor, SDRGPClassifier])
def test_gp_estimators_hand_it_to_their_reduction(model, tmp_path, monkeypatch):
    y = CLASSES if model is SDRGPClassifier else NUMBERS
    options = {"n_components": 2, "n_prototypes": 8, "perplexity": 10.0, "random_state": 0}
    options |= {"experts": [], "gp_steps": 5}
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_at(patched, 1)
        model(checkpoint=tmp_path / "file", **options).fit(X, y)
    found, expected = (model(checkpoint=path, **options).fit(X, y) for path in (tmp_path / "file", None))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))


# Files that are not the right ones.
OTHERS: dict[str, Any] = {
    "a parameter": lambda path: fit("SDR, dense", path, eta=1.0),
    "the seed": lambda path: fit("SDR, dense", path, random_state=1),
    "the class": lambda path: fit("DistR, dense", path),
    "a row": lambda path: MODELS["SDR, dense"](checkpoint=path, **STEPS).fit(X + 1e-9, NUMBERS),
    "a target": lambda path: MODELS["SDR, dense"](checkpoint=path, **STEPS).fit(X, NUMBERS**2),
    "weights": lambda path: MODELS["SDR, dense"](checkpoint=path, **STEPS).fit(X, NUMBERS, np.arange(1, 121)),
    "the way": lambda path: fit("SDR, sparse", path),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_fit_is_refused(other, tmp_path):
    fit("SDR, dense", tmp_path / "file")
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(CheckpointError, match="other data.*Delete it"):
        OTHERS[other](tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before


@pytest.mark.parametrize("free", [{"n_jobs": 2}, {"verbose": 0}])
def test_parameters_that_change_no_bit_do_not_matter(free, tmp_path):
    fit("SDR, dense", tmp_path / "file")
    assert bits(fit("SDR, dense", tmp_path / "file", **free)) == undisturbed("SDR, dense")


@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_a_spoilt_checkpoint_is_refused(kind, tmp_path):
    path, rng = tmp_path / "file", np.random.default_rng(0)
    fit(kind, path)
    raw = path.read_bytes()
    for _ in range(20):
        spoilt = bytearray(raw)
        spoilt[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(spoilt[: rng.integers(len(raw))] if rng.random() < 0.3 else spoilt))
        with pytest.raises(CheckpointError, match="Delete it"):
            fit(kind, path)


FORGERIES: dict[str, Any] = {
    "a row that ends before it starts": ("plan.indptr", lambda rows: rows[::-1]),
    "a prototype that is not there": ("plan.indices", lambda columns: columns + 8),
    "a negative mass": ("plan.data", lambda masses: -masses),
    "no number": ("prototypes", lambda places: places * np.nan),
    "a prototype less": ("prototypes", lambda places: places[1:]),
    "another affinity": ("transported", lambda table: table[1:, 1:]),
    "a history of other length": ("history.cka", lambda column: column[1:]),
    "no history": ("history.objective", lambda column: column[:0]),
    "a history of no numbers": ("history.objective", lambda column: column * np.nan),
    "twice the mass": ("plan.data", lambda masses: 2 * masses),
    "an affinity that is one number": ("transported", lambda table: table[0, 0]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_checkpoint_with_a_checksum_that_fits_is_refused(forgery, tmp_path):
    path, (name, change) = tmp_path / "file", FORGERIES[forgery]
    fit("SDR, sparse", path)
    with _file.open_file(path, _file.MAX_BYTES) as (document, handle):
        tensors = _file.read_tensors(handle, document)
    tensors[name] = np.array(change(tensors[name]), order="C")
    _file.write_file(path, {key: value for key, value in document.items() if key != "sha256"}, tensors)
    with pytest.raises(CheckpointError, match="Delete it"):
        fit("SDR, sparse", path)


def test_a_memory_mapped_table_has_the_checkpoint_of_the_array(tmp_path, monkeypatch):
    expected = bits(fit("SDR, sparse", tmp_path / "file"))
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(solve, "_advance", lambda *_: pytest.fail("an iteration was done"))
    model = MODELS["SDR, sparse"](checkpoint=tmp_path / "file", **STEPS)
    assert bits(model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), NUMBERS)) == expected


def test_a_model_with_a_checkpoint_can_be_saved(tmp_path):
    model = fit("SDR, dense", tmp_path / "file")
    model.save(tmp_path / "model")
    assert SDR.load(tmp_path / "model").checkpoint is None  # a model file must not choose where to write


def test_a_model_is_no_checkpoint(tmp_path):
    SDR(n_prototypes=5, random_state=0).fit(X, NUMBERS).save(tmp_path / "file")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        fit("SDR, dense", tmp_path / "file")


def test_without_a_seed_there_is_nothing_to_go_on_from(tmp_path):
    with pytest.raises(InvalidInputError, match="random_state=0"):
        SDR(checkpoint=tmp_path / "file").fit(X, NUMBERS)


# Places where nothing can be written, told before any work.
@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr("distreduce.estimators._setup.merge_duplicates", lambda *_, **__: pytest.fail("work was done"))


@pytest.mark.usefixtures("no_work")
class TestBeforeAnyWork:
    def test_a_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(CheckpointError, match="folder that exists"):
            fit("SDR, dense", tmp_path / "missing" / "file")

    def test_a_folder_in_the_place_of_the_file(self, tmp_path):
        with pytest.raises(CheckpointError, match="not a file"):
            fit("SDR, dense", tmp_path)

    def test_a_folder_that_may_not_be_written_to(self, tmp_path, monkeypatch):
        """Of a user who is root, rights do not hold; what the system would say is said for it."""

        def refuse(*_: Any) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(Path, "write_bytes", refuse)
        with pytest.raises(CheckpointError, match="Read-only"):
            fit("SDR, dense", tmp_path / "file")

    def test_a_disk_that_is_full(self, tmp_path, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
        with pytest.raises(CheckpointError, match="0 MB left"):
            fit("SDR, dense", tmp_path / "file")


def test_what_a_killed_fit_left_unfinished_is_removed(tmp_path):
    left = tmp_path / f".{checkpoint.mark(tmp_path / 'file')}-0123.tmp"
    left.touch()
    fit("SDR, dense", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# Disks that fail in mid-fit: the fit goes on.
@pytest.fixture
def failing_disk(monkeypatch):
    """No checkpoint after the first two can be written."""

    def break_it(error: int) -> list[Any]:
        real, calls = _file.save_file, []

        def save(*args: Any, **options: Any) -> Any:
            calls.append(args)
            if len(calls) > 2:
                raise OSError(error, os.strerror(error))
            return real(*args, **options)

        monkeypatch.setattr(_file, "save_file", save)
        return calls

    return break_it


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_a_disk_that_fails_costs_no_work(kind, error, failing_disk, tmp_path):
    failing_disk(error)
    with pytest.warns(CheckpointWarning, match=f"{os.strerror(error)}.*goes on") as caught:
        model = fit(kind, tmp_path / "file")
    assert bits(model) == undisturbed(kind)
    assert sum(one.category is CheckpointWarning for one in caught) == 1


def test_the_checkpoint_before_a_full_disk_is_still_good(failing_disk, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        real, calls = _file.save_file, failing_disk(errno.ENOSPC)
        with pytest.warns(CheckpointWarning):
            fit("SDR, dense", tmp_path / "file")
        patched.setattr(_file, "save_file", real)
        assert bits(fit("SDR, dense", tmp_path / "file")) == undisturbed("SDR, dense") and len(calls) > 2


def test_a_warning_made_an_error_comes_after_the_fit(failing_disk, tmp_path):
    failing_disk(errno.ENOSPC)
    model = MODELS["SDR, dense"](checkpoint=tmp_path / "file", **STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", CheckpointWarning)
        with pytest.raises(CheckpointWarning):
            model.fit(X, NUMBERS)
    assert bits(model) == undisturbed("SDR, dense")
