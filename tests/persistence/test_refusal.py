"""Files that are damaged, foreign or forged are refused by name, whatever is in them."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from persistence.cases import fitted_model
from persistence.forging import ARRAY, Edit, contents, fitted, forge, nested, params, put, replaced
from safetensors.numpy import save_file

from distreduce import SDR, DistR, persistence
from distreduce._utils.tensor_file import KEY, MAX_HEADER, checksum, write_file
from distreduce.exceptions import ModelFileError
from distreduce.persistence import FORMAT_VERSION

FORGERIES: dict[str, tuple[Edit, str]] = {
    "format": (lambda d, t: d.update(format="other"), "format is not"),
    "newer version": (lambda d, t: d.update(version=[FORMAT_VERSION[0] + 1, 0]), "newer than .* upgrade distreduce"),
    "no version": (lambda d, t: d.pop("version"), "no format version"),
    "odd version": (lambda d, t: d.update(version=[True, "0"]), "no format version"),
    "class": (lambda d, t: d.update({"class": "os.system"}), "class is not one of SDR, DistR"),
    "other class": (lambda d, t: d.update({"class": "DistR"}), "does not know"),
    "no state": (lambda d, t: d.pop("state"), "state is not an object"),
    "deep": (lambda d, t: d.update(deep=nested(40)), "nested more than"),
    "unknown parameter": (lambda d, t: params(d).update(__class__=1), "does not know: .'__class__'"),
    "unknown attribute": (lambda d, t: fitted(d).update(transform=1), "does not know: .'transform'"),
    "missing attribute": (lambda d, t: fitted(d).pop("map_"), "lacks .'map_'"),
    "bad parameter": (lambda d, t: params(d).update(alpha=7.0), "'alpha' parameter of SDR must be"),
    "huge parameter": (lambda d, t: params(d).update(eta=10**400), "too large"),
    "bare list": (lambda d, t: params(d).update(init=[1]), "bare list"),
    "unknown kind": (lambda d, t: params(d).update(init={"kind": "pickle"}), "of an unknown kind"),
    "unknown loss": (lambda d, t: params(d).update(target_loss={"kind": "loss", "name": "x"}), "unknown loss"),
    "unknown kernel": (lambda d, t: fitted(d)["map_"]["kernel"].update({"class": "eval"}), "unknown kernel"),
    "kernel field": (lambda d, t: fitted(d)["map_"]["kernel"]["fields"].update(x=1), "does not have the parameters"),
    "kernel text": (lambda d, t: fitted(d)["map_"]["kernel"]["fields"].update(length_scale="1"), "not a number"),
    "kernel value": (lambda d, t: fitted(d)["map_"]["kernel"]["fields"].update(length_scale=-1.0), "must be positive"),
    "map without kernel": (lambda d, t: fitted(d)["map_"].update(kernel=None), "not a kernel"),
    "unit": (lambda d, t: fitted(d)["map_"].update(unit=0.0), "not a positive number"),
    "distances or not": (
        lambda d, t: (fitted(d)["map_"].update(inputs=None),
                      fitted(d)["map_"]["kernel"]["fields"].update(length_scale=1.0)),
        "distances to 24 samples, not 3"),
    "extra tensor": (lambda d, t: t.update(more=np.zeros(3)), "belong to nothing: .'more'"),
    "missing tensor": (lambda d, t: t.pop("fitted.labels_"), "'fitted.labels_' is missing"),
    "tensor type": (replaced("fitted.prototypes_", lambda A: A.astype(int)), "has the type int64, not 'float64'"),
    "array type": (lambda d, t: fitted(d).update(labels_=ARRAY), "has the type int64, not 'float64'"),
    "single or not": (
        lambda d, t: (t.update({"fitted.prototypes_": t["fitted.prototypes_"].astype("f4")}),
                      fitted(d)["prototypes_"].update(dtype="float32")), "is of type float32, not float64"),
    "memory order": (lambda d, t: fitted(d)["prototypes_"].update(order="K"), "memory order"),
    "not finite": (put("fitted.map_.coefficients", (0, 0), np.nan), "map_.coefficients has NaN"),
    "endless input": (put("fitted.map_.inputs", (0, 0), np.inf), "map_.inputs has NaN or infinite values"),
    "endless target": (put("fitted.prototype_targets_", (0, 0), np.inf), "prototype_targets_ has NaN or infinite"),
    "label": (put("fitted.labels_", 0, 5), "labels_ has indices outside"),
    "negative label": (put("fitted.labels_", 0, -1), "labels_ has indices outside"),
    "medoid": (put("fitted.prototype_medoids_", 0, 24), "prototype_medoids_ has indices outside"),
    "column": (put("fitted.coupling_.indices", 0, 5), "column indices out of range"),
    "negative column": (put("fitted.coupling_.indices", 0, -1), "column indices out of range"),
    "row starts": (put("fitted.coupling_.indptr", 1, 2**62), "row starts out of order"),
    "first row": (put("fitted.coupling_.indptr", 0, 1), "row starts out of order"),
    "too few rows": (replaced("fitted.coupling_.indptr", lambda A: A[:-1]), "arrays of the wrong length"),
    "no row starts": (replaced("fitted.coupling_.indptr", lambda A: A[:0]), "arrays of the wrong length"),
    "too few entries": (replaced("fitted.coupling_.data", lambda A: A[:-1]), "arrays of the wrong length"),
    "negative share": (put("fitted.coupling_.data", 0, -1.0), "coupling_ has values less than 0"),
    "share": (put("fitted.coupling_.data", 0, np.nan), "coupling_ has NaN or infinite values"),
    "plan's shape": (lambda d, t: fitted(d)["coupling_"].update(shape=[24, 10**15]), "coupling_ has the shape"),
    "no valid shape": (lambda d, t: fitted(d)["coupling_"].update(shape=[24, -1]), "no valid shape"),
    "start's rows": (put("params.init.indptr", 1, -3), "params.init has row starts out of order"),
    "fewer prototypes": (replaced("fitted.prototypes_", lambda A: A[1:]), "has the shape"),
    "no prototypes": (replaced("fitted.prototypes_", lambda A: A[:0]), "prototypes_ has the shape .0, 2., not .m, p."),
    "fewer weights": (replaced("fitted.prototype_weights_", lambda A: A[1:]), "prototype_weights_ has the shape"),
    "fewer coefficients": (replaced("fitted.map_.coefficients", lambda A: A[:, 1:]), "map_.inputs has the shape"),
    "wider inputs": (replaced("fitted.map_.inputs", lambda A: np.c_[A, A]), "map_.inputs has the shape"),
    "features": (lambda d, t: fitted(d).update(n_features_in_=10**12), "feature_names_in_ has the shape"),
    "names": (lambda d, t: fitted(d).update(feature_names_in_=["a"]), "feature_names_in_ has the shape"),
    "numbered names": (lambda d, t: fitted(d).update(feature_names_in_=[1, 2, 3]), "not a list of names"),
    "target names": (lambda d, t: fitted(d).update(target_names_=[]), "target_names_ has the shape"),
    "task": (lambda d, t: fitted(d).update(task_="x"), "task_ is not one of"),
    "classes or not": (lambda d, t: fitted(d).update(task_="regression"), "classes_ and task_"),
    "classes": (replaced("fitted.classes_", lambda A: A[1:]), "classes_ has the shape"),
    "not characters": (put("fitted.classes_", (0, 0), 0x110000), "not characters"),
    "empty characters": (replaced("fitted.classes_", lambda A: A[:, :0]), "text of length 0"),
    "iterations": (lambda d, t: fitted(d).update(n_iter_=99), "history_ does not have 99 rows"),
    "truth": (lambda d, t: fitted(d).update(converged_=1), "converged_ is not a bool"),
    "history": (replaced("fitted.history_.cka", lambda A: A[:0]), "."),
    "history shape": (replaced("fitted.history_.cka", lambda A: A[:, None]), "history_ does not have"),
    "text code": (lambda d, t: fitted(d)["classes_"].update(code="O"), "classes_ is not text"),
    "sparse index": (replaced("params.init.indices", lambda A: A.astype(float)), "."),
    "sparse index type": (
        lambda d, t: (t.update({"params.init.indices": t["params.init.indices"].astype("u1")}),
                      params(d)["init"]["indices"].update(dtype="uint8")), "params.init is not a sparse matrix"),
    "no array": (lambda d, t: fitted(d).update(labels_=3), "labels_ is not an array"),
    "not a sequence": (
        lambda d, t: (t.update({"params.length_scale": np.array(1.0)}),
                      params(d).update(length_scale={"kind": "list", "items": ARRAY})), "not a sequence"),
    "state of lists": (lambda d, t: d["state"].update(params=[]), "params is not an object"),
    "flat embedding": (replaced("fitted.embedding_", np.ravel), "embedding_ has the shape"),
    "other dimension": (replaced("fitted.embedding_", lambda A: A[:, :1]), "embedding_ has the shape"),
    "flat coefficients": (replaced("fitted.map_.coefficients", np.ravel), "map_.coefficients has the shape"),
    "fewer dimensions": (replaced("fitted.map_.coefficients", lambda A: A[:1]), "map_.coefficients has the shape"),
    "flat targets": (replaced("fitted.prototype_targets_", np.ravel), "prototype_targets_ has the shape"),
    "fewer targets": (replaced("fitted.prototype_targets_", lambda A: A[1:]), "prototype_targets_ has the shape"),
    "labels of another kind": (
        lambda d, t: (t.update({"fitted.labels_": t["fitted.labels_"].astype(float)}),
                      fitted(d).update(labels_=ARRAY)), "not integer"),
    "fewer labels": (replaced("fitted.labels_", lambda A: A[1:]), "labels_ has the shape"),
    "scales": (
        lambda d, t: (t.update({"fitted.map_.kernel.length_scale": np.ones(2)}),
                      fitted(d)["map_"]["kernel"]["fields"].update(length_scale={"kind": "tuple", "items": ARRAY})),
        "one length scale per feature"),
    "endless class": (
        lambda d, t: (t.update({"fitted.classes_": np.array([0, 1, np.inf])}), fitted(d).update(classes_=ARRAY)),
        "classes_ has NaN or infinite values"),
    "history kind": (lambda d, t: fitted(d).update(history_=3), "history_ is not a table"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_file(name: str, saved: Path) -> None:
    edit, reason = FORGERIES[name]
    forge(saved, edit)
    with pytest.raises(ModelFileError, match=f"model.safetensors' cannot be loaded: .*{reason}"):
        SDR.load(saved) if name != "other class" else DistR.load(saved)


def test_forging_nothing_gives_a_file_that_loads(saved: Path) -> None:
    """Or the forgeries above would prove nothing."""
    forge(saved, lambda document, tensors: None)
    assert SDR.load(saved).task_ == "classification"


def test_newer_minor_version_is_read(saved: Path) -> None:
    forge(saved, lambda document, _: document.update(version=[1, 7]))
    assert SDR.load(saved).task_ == "classification"


def test_parameter_of_a_later_version_gets_its_default(saved: Path) -> None:
    forge(saved, lambda document, _: params(document).pop("beta"))
    assert SDR.load(saved).beta == 0.5


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _foreign(path: Path) -> None:
    save_file({"a": np.zeros(3)}, path)


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "No such file"),
    "folder": (lambda path: path.mkdir(), "not a regular file"),
    "empty": (lambda path: path.touch(), "empty or cut off"),
    "text": (lambda path: path.write_text("alpha: 0.2, beta: 0.5"), "not a safetensors file"),
    "pickle": (lambda path: path.write_bytes(b"cos\nsystem\n(S'echo harm'\ntR."), "not a safetensors file"),
    "foreign": (_foreign, "not one of distreduce"),
    "zeros": (lambda path: path.write_bytes(bytes(100)), "."),
    "no JSON": (lambda path: save_file({}, path, {KEY: "{"}), "."),
    "NaN": (lambda path: save_file({}, path, {KEY: '{"format": NaN}'}), "NaN"),
    "list": (lambda path: save_file({}, path, {KEY: "[]"}), "not an object"),
    "deep JSON": (lambda path: save_file({}, path, {KEY: "[" * 200_000}), "."),
    "long number": (lambda path: save_file({}, path, {KEY: "9" * 10_000}), "."),
    "pipe": pytest.param(_pipe, "regular", marks=pytest.mark.skipif(sys.platform == "win32", reason="no pipes")),
}  # type: ignore[dict-item]


@pytest.mark.parametrize("name", FILES)
def test_file_that_is_no_model(name: str, tmp_path: Path) -> None:
    make, reason = getattr(FILES[name], "values", FILES[name])
    make(tmp_path / "thing")
    with pytest.raises(ModelFileError, match=f"thing' cannot be loaded: .*{reason}"):
        persistence.load(tmp_path / "thing")


def test_large_file_is_refused_unread(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="more than max_bytes=1000"):
        SDR.load(saved, max_bytes=1000)


def test_file_of_the_largest_size_is_read(saved: Path) -> None:
    assert SDR.load(saved, max_bytes=saved.stat().st_size).task_ == "classification"


def test_sparse_file_of_a_terabyte(tmp_path: Path) -> None:
    with open(tmp_path / "m", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ModelFileError, match="max_bytes"):
        SDR.load(tmp_path / "m")


def test_header_too_long(tmp_path: Path) -> None:
    with open(tmp_path / "m", "wb") as file:
        file.write(struct.pack("<Q", MAX_HEADER + 1))
        file.truncate(MAX_HEADER + 100)
    with pytest.raises(ModelFileError, match="header has"):
        SDR.load(tmp_path / "m")


def test_json_too_long(saved: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("distreduce._utils.tensor_file.MAX_JSON", 1000)
    with pytest.raises(ModelFileError, match="JSON has"):
        SDR.load(saved)


def test_another_class_than_asked_for(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="holds SDR, not DistR; use SDR.load"):
        DistR.load(saved)


def test_damaged_number_is_noticed(saved: Path) -> None:
    raw = bytearray(saved.read_bytes())
    raw[-1] ^= 1
    saved.write_bytes(raw)
    with pytest.raises(ModelFileError, match="damaged: its checksum does not match"):
        SDR.load(saved)


def test_targets_where_there_are_none(tmp_path: Path) -> None:
    fitted_model("unsupervised").save(tmp_path / "m")
    forge(tmp_path / "m", lambda document, _: fitted(document).update(task_="regression"))
    with pytest.raises(ModelFileError, match="does not know: .'task_'"):
        DistR.load(tmp_path / "m")


def test_distances_with_a_kernel_of_features(tmp_path: Path) -> None:
    fitted_model("distances").save(tmp_path / "m")
    linear = {"kind": "kernel", "class": "Linear", "fields": {}}
    forge(tmp_path / "m", lambda document, _: fitted(document)["map_"].update(kernel=linear))
    with pytest.raises(ModelFileError, match="not a function of a distance"):
        SDR.load(tmp_path / "m")


def test_number_beyond_all_numbers(saved: Path) -> None:
    """1e999 is good JSON and reads as infinity."""
    document, tensors = contents(saved)
    text = json.dumps(document | {"sha256": "x"}).replace('"mu": 1.0', '"mu": 1e999')
    save_file(tensors, saved, {KEY: text})
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        SDR.load(saved)


def test_boolean_that_is_none(tmp_path: Path) -> None:
    """A byte that is neither 0 nor 1 would make an array that is neither true nor false."""
    fitted_model("booleans").save(tmp_path / "m")
    raw = bytearray((tmp_path / "m").read_bytes())
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    raw[-len(raw) + 8 + struct.unpack("<Q", raw[:8])[0] + header["fitted.classes_"]["data_offsets"][0]] = 7
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(ModelFileError, match="not boolean"):
        SDR.load(tmp_path / "m")


def test_tensor_of_a_type_that_numpy_lacks(tmp_path: Path) -> None:
    header = {"__metadata__": {KEY: "{}"}, "a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}
    document = {"format": "distreduce-model", "version": [1, 0], "class": "SDR"}
    header["__metadata__"][KEY] = json.dumps(document | {"sha256": checksum(document, {})})
    text = json.dumps(header).encode()
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(text)) + text + bytes(2))
    with pytest.raises(ModelFileError, match="type BF16"):
        SDR.load(tmp_path / "m")


def test_signalling_nan_in_single_precision(model: Any, saved: Path) -> None:
    """The processor complains when such a number is made a double."""
    model.save(saved, dtype="float32")
    document, tensors = contents(saved)
    tensors["fitted.prototypes_"].view(np.uint32)[0, 0] = 0x7F810000
    write_file(saved, document, tensors)
    with pytest.raises(ModelFileError, match="prototypes_ has NaN or infinite values"):
        SDR.load(saved)


def test_no_message_is_long(saved: Path) -> None:
    forge(saved, lambda document, _: params(document).update({"x" * 100_000: 1}))
    with pytest.raises(ModelFileError) as caught:
        SDR.load(saved)
    assert len(str(caught.value)) < 1000
