"""Damage and forgery at random: a file is refused by name, or gives a model that works."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from persistence.cases import X, fitted_model, predictions
from persistence.forging import contents

from distreduce import SDR, DistR, persistence
from distreduce._utils.tensor_file import write_file
from distreduce.exceptions import ModelFileError

GP_KINDS = [
    "GPRegressor, several targets",
    "SDRGPRegressor",
    "SDRGPRegressor, warped",
    "GPClassifier, numbers",
    "SDRGPClassifier, two texts of Python",
]
OF_EVERY_KIND = pytest.mark.parametrize("name", GP_KINDS)
MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def saved_gp(name: str, tmp_path: Path) -> Path:
    """A GP model in a file."""
    fitted_model(name).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def check_that_it_works(model: Any) -> None:
    with np.errstate(all="ignore"):
        if isinstance(model, SDR | DistR):
            assert model.map_(X).shape == (len(X), model.prototypes_.shape[1])
            assert len(model.summary()) == np.count_nonzero(model.prototype_weights_ > 0)
        else:
            names = getattr(model, "feature_names_in_", None)  # forged ones, maybe
            assert len(predictions(model, X if names is None else pd.DataFrame(X, columns=names))) in (2, len(X))


def loaded_or_none(path: Path) -> Any:
    """Load within little memory, or be refused; a model that is loaded must work."""
    tracemalloc.start()
    try:
        model = persistence.load(path)
        check_that_it_works(model)
        return model
    except ModelFileError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 30e6


def damage(path: Path, data: st.DataObject) -> None:
    """Flip, cut, drop or add bytes: what is left is refused, or is the same model."""
    good = path.read_bytes()
    raw = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1) | st.integers(0, 3000))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "drop", "append"]))
        if kind == "flip" and place < len(raw):
            raw[place] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del raw[place:]
        elif kind == "drop":
            del raw[place : place + data.draw(st.integers(1, 16))]
        else:
            place = place if kind == "insert" else len(raw)
            raw[place:place] = data.draw(st.binary(min_size=1, max_size=16))
        if not raw:
            break
    damaged = path.with_name("damaged")
    damaged.write_bytes(raw)
    model = loaded_or_none(damaged)
    if model is not None:  # a capital in "1E-06" changes a byte and nothing else
        model.save(damaged)
    assert model is None or damaged.read_bytes() == good


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["array", "csr", "kernel", "text", "tuple", "float64", "int64", "F", 2**62, -1, 0]),
    lambda leaves: st.lists(leaves, max_size=3)
    | st.dictionaries(st.sampled_from(["kind", "dtype", "x"]), leaves, max_size=3),
    max_leaves=4,
)  # fmt: skip


def branches(node: Any) -> list[tuple[Any, Any]]:
    """Every place of a tree, as the container and the key in it."""
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [(node, key) for key, _ in items] + [place for _, part in items for place in branches(part)]


def forge_json(path: Path, data: st.DataObject) -> None:
    """Other values, or none, anywhere in the JSON."""
    document, tensors = contents(path)
    for _ in range(data.draw(st.integers(1, 2))):
        node, key = data.draw(st.sampled_from(branches(document)))
        if data.draw(st.booleans()):
            node[key] = data.draw(JSON)
        else:
            del node[key]
    write_file(path.with_name("forged"), document, tensors)
    loaded_or_none(path.with_name("forged"))


def forge_tensor(path: Path, data: st.DataObject) -> None:
    """Other bytes, another type or another shape in a tensor."""
    document, tensors = contents(path)
    name = data.draw(st.sampled_from(sorted(tensors)))
    shape = data.draw(st.just(tensors[name].shape) | st.lists(st.integers(0, 6), max_size=3).map(tuple))
    dtype = data.draw(
        st.just(tensors[name].dtype) | st.sampled_from(["f8", "f4", "i8", "i4", "u4", "u1", "?"]).map(np.dtype)
    )
    size = int(np.prod(shape)) * dtype.itemsize
    raw = data.draw(st.binary(min_size=min(size, 64), max_size=min(size, 64)))
    filled = np.frombuffer((raw * (size // 64 + 1))[:size], dtype="u1")
    tensors[name] = (filled % 2).astype("?") if dtype == "?" else filled.view(dtype).reshape(shape)
    write_file(path.with_name("forged"), document, tensors)
    loaded_or_none(path.with_name("forged"))


@MANY
@given(data=st.data())
def test_damaged_bytes_are_refused_or_do_no_damage(saved: Path, data: st.DataObject) -> None:
    damage(saved, data)


@MANY
@given(data=st.data())
def test_forged_json_loads_or_is_refused(saved: Path, data: st.DataObject) -> None:
    forge_json(saved, data)


@MANY
@given(data=st.data())
def test_forged_tensors_load_or_are_refused(saved: Path, data: st.DataObject) -> None:
    forge_tensor(saved, data)


@OF_EVERY_KIND
@SOME
@given(data=st.data())
def test_damaged_gp_is_refused_or_does_no_damage(name: str, saved_gp: Path, data: st.DataObject) -> None:
    damage(saved_gp, data)


@OF_EVERY_KIND
@SOME
@given(data=st.data())
def test_forged_json_of_a_gp_loads_or_is_refused(name: str, saved_gp: Path, data: st.DataObject) -> None:
    forge_json(saved_gp, data)


@OF_EVERY_KIND
@SOME
@given(data=st.data())
def test_forged_tensors_of_a_gp_load_or_are_refused(name: str, saved_gp: Path, data: st.DataObject) -> None:
    forge_tensor(saved_gp, data)


@OF_EVERY_KIND
def test_cut_between_any_two_parts(name: str, saved_gp: Path) -> None:
    raw = saved_gp.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    starts = [8 + length + part["data_offsets"][0] for key, part in header.items() if key != "__metadata__"]
    for place in {0, 8, length, *starts, len(raw) - 1} - {len(raw)}:  # where a tensor without numbers may begin
        saved_gp.write_bytes(raw[:place])
        assert loaded_or_none(saved_gp) is None, place


@OF_EVERY_KIND
def test_no_number_in_any_tensor(name: str, saved_gp: Path) -> None:
    """The targets of prototypes may be missing, and the history is only looked at."""
    document, tensors = contents(saved_gp)
    for key, tensor in tensors.items():
        if tensor.size and tensor.dtype.kind == "f" and "prototype_targets_" not in key and "history_" not in key:
            forged = tensor.copy()
            forged.flat[0] = np.nan
            write_file(saved_gp, document, tensors | {key: forged})
            assert loaded_or_none(saved_gp) is None, key


@OF_EVERY_KIND
def test_swapped_tensors(name: str, saved_gp: Path) -> None:
    document, tensors = contents(saved_gp)
    names = sorted(tensors)
    for one, other in zip(names, names[1:] + names[:1], strict=True):
        write_file(saved_gp, document, tensors | {one: tensors[other], other: tensors[one]})
        model = loaded_or_none(saved_gp)
        alike = (tensors[one].shape, tensors[one].dtype) == (tensors[other].shape, tensors[other].dtype)
        assert model is None or alike, (one, other)


@OF_EVERY_KIND
def test_state_of_another_class(name: str, saved_gp: Path) -> None:
    document, tensors = contents(saved_gp)
    for other in persistence.REGISTRY.keys() - {document["class"]}:
        write_file(saved_gp, document | {"class": other}, tensors)
        assert loaded_or_none(saved_gp) is None, other
