"""Files that once brought an error without a name, a wrong answer or a long wait."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.commands import run
from hostile.readers import GOLDEN, maps, recipes, stores, table
from persistence.forging import forge, put

from distreduce import persistence
from distreduce.cli import main as cli
from distreduce.exceptions import DatasetFileError, InvalidInputError, ModelFileError, StoreError
from distreduce.interop import load_map
from distreduce.tables.cells import parse_days
from distreduce.tables.reading import read_chunks, read_table
from distreduce.tables.recipe import read_recipe
from distreduce.tables.text_file import unique_names
from distreduce_paper import load_experiment
from distreduce_paper.store import Store, load_frame


def edited_store(folder: Path, **fields: Any) -> Store:
    first, *others = stores()[0].splitlines()
    record = {name: value for name, value in {**json.loads(first), **fields}.items() if value != "none"}
    (folder / "neighbours.jsonl").write_bytes(json.dumps(record).encode() + b"\n" + b"\n".join(others) + b"\n")
    return Store(folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": [1]}, {"parameters": {"k": [1]}}, {"seed": "0"}, {"seed": 10**30}, {"quick": 1}, {"data": {}},
        {"result": [1]}, {"result": {"data": [1]}}, {"seconds": "long"}, {"seconds": "none"}, {"machine": "none"},
        {"result": "none"},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_of_another_kind_is_named(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        load_frame(load_experiment("neighbours"), edited_store(tmp_path, **fields))


def test_deep_records_are_named(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b"[" * 10**5 + b"\n")
    with pytest.raises(StoreError, match="nested too deep"):
        Store(tmp_path).results("e")


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/b", "a\\b", "a\0b"])
def test_a_record_cannot_choose_a_file_outside_of_the_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with pytest.raises(StoreError, match="cannot name a file"):
        Store(folder).add({**json.loads(stores()[0].splitlines()[0]), "experiment": name})


@pytest.mark.parametrize(
    ("position", "field", "value"),
    [(0, "center", 10**400), (0, "scale", -(10**400)), (1, "levels", [str(i) for i in range(31)]), (2, "layout", "%"),
     (2, "layout", "(?P<")],
    ids=["long number", "long negative number", "many levels", "half a layout", "half a pattern"],
)  # fmt: skip
def test_a_recipe_with_a_value_that_cannot_be_used(position: int, field: str, value: Any, tmp_path: Path) -> None:
    content = json.loads(recipes()[0])
    content["columns"][position][field] = value
    (tmp_path / "recipe.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=field):
        read_recipe(tmp_path / "recipe.json")


def test_cells_that_cannot_be_scaled_are_named(tmp_path: Path) -> None:
    content = json.loads(recipes()[0])
    content["columns"][0]["scale"] = 1e-300
    (tmp_path / "recipe.json").write_text(json.dumps(content))
    recipe = read_recipe(tmp_path / "recipe.json")
    with pytest.raises(InvalidInputError, match="'size' of new.csv has numbers too far"):
        recipe.matrix(table().assign(size=1e300), "new.csv")


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfea", b"a,b\x8f\x90\n1,2\n", b'""\n""\n', b'a,"b\n1,2\n'],
    ids=["half of UTF-16", "no Windows-1252 either", "nothing in quotes", "an open quote"],
)
def test_text_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises((DatasetFileError, InvalidInputError), match=r"t\.csv"):
        list(read_chunks(tmp_path / "t.csv"))


def test_many_equal_names_take_no_time() -> None:
    began = time.monotonic()
    names, _ = unique_names(["a"] * 30_000)
    assert len(set(names)) == 30_000
    assert time.monotonic() - began < 10  # the longest line that is looked at took hours


def test_equal_names_are_numbered_past_names_that_look_numbered(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,a,a (2),a,,\n1,2,3,4,5,6\n")
    (part,) = read_chunks(tmp_path / "t.csv")
    assert list(part.columns) == ["a", "a (3)", "a (2)", "a (4)", "column 5", "column 6"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [((["a", "a", "y"], [[1, 2], [1, 2], [3, 4]]), "two columns called 'a'"),
     ((["a", "y"], [[b"\xff", b"\x00"], [3, 4]]), "holds bytes")],
    ids=["equal names", "bytes"],
)  # fmt: skip
def test_a_parquet_table_that_cannot_be_used(columns: tuple[list[str], list[Any]], words: str, tmp_path: Path) -> None:
    names, values = columns
    pq.write_table(pa.table([pa.array(value) for value in values], names=names), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=words):
        read_table(tmp_path / "t.parquet", ["y"])


def test_dates_beyond_nanoseconds_are_days(tmp_path: Path) -> None:
    column = pa.array([0, 10**11, 2 * 10**11], pa.timestamp("s"))
    pq.write_table(pa.table({"a": column, "y": [1, 2, 3]}), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", ["y"]).features["a"]
    np.testing.assert_allclose(parse_days(found, "ISO8601"), np.array([0, 10**11, 2 * 10**11]) / 86400)


def test_parquet_columns_keep_their_kinds(tmp_path: Path) -> None:
    written = table().astype({"town": "category"}).assign(sold=pd.to_datetime(table()["sold"]))
    written.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet", ["price"]).frame, written)


@pytest.mark.parametrize(
    "change",
    [{"scale": np.zeros(2)}, {"offset": np.zeros(3)}, {"kernel": "exec"}, {"coefficients": np.zeros(3)},
     {"alpha": np.array("x")}, {"centres": np.full((4, 2), np.nan)}, {"centres": np.array(1.0)}],
    ids=str,
)  # fmt: skip
def test_a_map_with_an_array_of_another_kind(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "map.npz").write_bytes(maps()[0])
    with np.load(tmp_path / "map.npz") as store:
        arrays = dict(store)
    np.savez(tmp_path / "map.npz", **{**arrays, **change})
    with pytest.raises(ModelFileError, match=r"map\.npz"):
        load_map(tmp_path / "map.npz")


def test_a_model_that_would_divide_by_next_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes((GOLDEN / "sdr-gp-regressor.safetensors").read_bytes())
    forge(tmp_path / "model", put("fitted.input_scale_", 0, 1e-310))
    with pytest.raises(ModelFileError, match="not greater than 1e-200"):
        persistence.load(tmp_path / "model")


def test_an_error_is_one_line_whatever_the_file_is_called(tmp_path: Path) -> None:
    code, said = run(["transform", str(tmp_path), str(tmp_path / "a\x1b[2Jb\nc.csv"), "--out", str(tmp_path / "o.csv")])
    assert (code, said.count("\n"), "\x1b" in said) == (1, 1, False)


def test_an_error_is_not_longer_than_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli._fail("x" * 10**6)
    assert len(capsys.readouterr().err) < 2100
