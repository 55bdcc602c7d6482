"""A file is written whole or not at all, and only if it can be read again."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from persistence.cases import GROUPS, NUMBERS, X, fitted_model
from persistence.forging import forge, params
from sklearn.exceptions import NotFittedError

import distreduce
from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, persistence
from distreduce.exceptions import InvalidInputError, ModelFileError, ModelSaveError, UnsavableModelError
from distreduce.kernels import RBF
from distreduce.losses import SquaredLoss


class OwnKernel(RBF):
    """A subclass brings code that the file cannot."""


class OwnLoss(SquaredLoss):
    """The same for a loss."""


class OwnModel(SDR):
    """And for a model."""


UNSAVABLE = {
    "random_state": (np.random.RandomState(0), "set_params"),
    "input_kernel": (lambda A, B=None: RBF()(A, B), "input_kernel"),
    "target_kernel": (OwnKernel(), "OwnKernel"),
    "target_loss": (OwnLoss(), "OwnLoss"),
    "length_scale": ([object()], "length_scale"),
    "init": (np.array([None, 1], dtype=object), "object"),
    "mu": (float("nan"), "finite"),
    "alpha": (7.0, "alpha"),
}


@pytest.mark.parametrize("name", UNSAVABLE)
def test_unsavable_parameter_is_named_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    value, words = UNSAVABLE[name]
    model = SDR(n_prototypes=5, random_state=0).fit(X, NUMBERS).set_params(**{name: value})
    with pytest.raises(UnsavableModelError, match=f"(?s){name}.*{words}|{words}.*{name}|{words}"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_the_advice_for_a_random_state_works(tmp_path: Path) -> None:
    model = SDR(n_prototypes=5, random_state=np.random.RandomState(0)).fit(X, NUMBERS)
    model.set_params(random_state=None).save(tmp_path / "m")
    assert SDR.load(tmp_path / "m").random_state is None


def test_own_kernel_in_the_map(tmp_path: Path) -> None:
    model = DistR(n_prototypes=5, input_kernel=OwnKernel(), random_state=0).fit(X).set_params(input_kernel="rbf")
    with pytest.raises(UnsavableModelError, match="map_.kernel"):
        model.save(tmp_path / "m")


def test_labels_of_an_odd_type(tmp_path: Path) -> None:
    model = SDR(n_prototypes=5, random_state=0, task="classification").fit(X, GROUPS)
    model.classes_ = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]")
    with pytest.raises(UnsavableModelError, match="classes_ is an array of type datetime64"):
        model.save(tmp_path / "m")


def test_subclass(tmp_path: Path) -> None:
    with pytest.raises(UnsavableModelError, match="OwnModel cannot be saved"):
        OwnModel(n_prototypes=5, random_state=0).fit(X, NUMBERS).save(tmp_path / "m")


def test_class_of_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(UnsavableModelError, match="dict cannot be saved"):
        persistence.save({}, tmp_path / "m")


def test_unfitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        SDR().save(tmp_path / "m")


def test_unknown_precision(model: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="dtype='float16'"):
        model.save(tmp_path / "m", dtype="float16")


def test_numbers_too_large_for_single_precision(tmp_path: Path) -> None:
    model = SDR(n_prototypes=5, random_state=0).fit(X, 1e60 * NUMBERS)
    with pytest.raises(UnsavableModelError, match="float32.*prototype_targets_ has NaN or infinite values"):
        model.save(tmp_path / "m", dtype="float32")


def test_equal_models_are_equal_files(model: Any, tmp_path: Path) -> None:
    for name in "ab":
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


BAD_PLACES = {
    "missing parent": "{}/none/m",
    "parent is a file": "{}/file/m",
    "a folder": "{}/folder",
    "a device": os.devnull,
    "no name": "",
    "nul": "{}/a\0b",
    "long name": "{}/" + 300 * "m",
}


@pytest.mark.parametrize("case", BAD_PLACES)
def test_places_that_cannot_be_written_to(case: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    path = BAD_PLACES[case].format(tmp_path)
    with pytest.raises(ModelSaveError, match="was not saved"):
        fitted_model("regression").save(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("step", ["open", "chmod", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"])
def test_failure_leaves_the_old_file(step: str, error: BaseException, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "m"
    path.write_text("old")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(ModelSaveError if isinstance(error, OSError) else KeyboardInterrupt):
        fitted_model("regression").save(path)
    monkeypatch.undo()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("m", "old")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files fails inside the write, as a full disk does."""
    (tmp_path / "m").write_text("old")
    source = str(Path(distreduce.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r}); import resource, numpy as np; from distreduce import DistR\n"
        "from distreduce.exceptions import ModelSaveError\n"
        "model = DistR(n_prototypes=3, random_state=0).fit(np.random.RandomState(0).randn(20, 2))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"try:\n    model.save({str(tmp_path / 'm')!r})\n"
        "except ModelSaveError as error:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, os.listdir(tmp_path), (tmp_path / "m").read_text()) == ("refused\n", ["m"], "old")


def test_write_protected_file(model: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """By the answer of the system: the superuser, whom tests may run as, is never refused."""
    (tmp_path / "m").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK))
    with pytest.raises(ModelSaveError, match="write-protected"):
        model.save(tmp_path / "m")


@pytest.mark.skipif(sys.platform == "win32", reason="no access rights of this kind")
def test_access_rights_are_those_of_any_new_file(model: Any, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    model.save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(sys.platform == "win32", reason="no access rights of this kind")
def test_access_rights_of_a_replaced_file_stay(model: Any, saved: Path) -> None:
    saved.chmod(0o640)
    model.save(saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640


def test_symbolic_link_stays_one(model: Any, saved: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(saved)
    fitted_model("regression").save(link)
    assert (link.is_symlink(), SDR.load(saved).task_) == (True, "regression")


def test_too_many_names(tmp_path: Path, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("distreduce._utils.tensor_file.MAX_JSON", 1000)
    with pytest.raises(UnsavableModelError, match="feature names"):
        model.save(tmp_path / "m")


@pytest.mark.parametrize(
    "estimator", [SDR(), DistR(), *(kind(experts=[], gp_steps=3) for kind in (SDRGPRegressor, SDRGPClassifier))]
)
def test_the_path_of_a_checkpoint_is_not_saved(estimator: Any, tmp_path: Path) -> None:
    """Or a stranger's file would choose where the next fit writes."""
    model = estimator.set_params(random_state=0, checkpoint=tmp_path / "secret-place").fit(X, GROUPS)
    model.save(tmp_path / "m")
    assert b"secret-place" not in (tmp_path / "m").read_bytes()
    assert persistence.load(tmp_path / "m").checkpoint is None


def test_the_path_of_a_checkpoint_in_a_file_is_ignored(saved: Path) -> None:
    forge(saved, lambda document, _: params(document).update(checkpoint="/etc/passwd"))
    assert SDR.load(saved).checkpoint is None


@pytest.mark.filterwarnings("error")
def test_parameters_of_earlier_versions_are_renamed_silently(saved: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(SDR, "_renamed", {"old_name": lambda value, _: {"beta": value / 2}}, raising=False)
    forge(saved, lambda document, _: params(document).update(old_name=0.5))
    assert SDR.load(saved).beta == 0.25


def test_old_parameters_of_the_wrong_type_are_rejected(saved: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(SDR, "_renamed", {"old_name": lambda value, _: {"beta": value / 2}}, raising=False)
    forge(saved, lambda document, _: params(document).update(old_name="x"))
    with pytest.raises(ModelFileError, match="parameters cannot be translated"):
        SDR.load(saved)
