"""What `distreduce fit` refuses, in one sentence, and what it leaves behind."""

from __future__ import annotations

import errno
import os

import pytest
from cli.messy_table import QUICK

from distreduce import SDR
from distreduce.cli import fitted_folder

GOOD = "a,b,y\n" + "".join(f"{i * i % 7},{i % 5 / 3},{i / 3}\n" for i in range(20))
BINARY = bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("t.csv", GOOD, ["-t", "z"], "t.csv has no column 'z'. It has a, b, y."),
        ("t.csv", GOOD.replace("y", "price"), ["-t", "prise"], "Did you mean 'price'?"),
        ("t.csv", GOOD, [], "to predict (--target COLUMN, or target=… in Python). It has a, b, y."),
        ("t.csv", "", ["-t", "y"], "t.csv is empty."),
        ("t.csv", "a,b,y\n", ["-t", "y"], "t.csv has column names but no rows."),
        ("t.csv", "y\n1\n2\n", ["-t", "y"], "one column"),
        ("t.csv", BINARY, ["-t", "y"], "looks like a binary file"),
        ("t.csv", b"PK\x03\x04" + BINARY, ["-t", "y"], "Excel workbook"),
        ("t.doc", BINARY, ["-t", "y"], "ends in none of"),
        ("t.parquet", BINARY, ["-t", "y"], "cannot be read as parquet"),
        ("t.npz", BINARY, [], "not a zip archive"),
        ("t.csv", "a,b,y\n1,2,3\n4,5,3\n", ["-t", "y"], "single value"),
        ("t.csv", "a,b,y\n1,2,u\n4,5,u\n", ["-t", "y"], "single value ('u')"),
        ("t.csv", "a,b,y\n1,2,\n4,5,\n", ["-t", "y"], "no values at all"),
        ("t.csv", "a,b,y\n1,2,5\n1,2,6\n", ["-t", "y"], "No column of t.csv can be used"),
        ("t.csv", GOOD + ",1,2\n", ["-t", "y", "--missing", "refuse"], "missing values in 'a' (1)"),
        ("t.csv", GOOD + "1,2,3,4\n", ["-t", "y"], "line 22 has 4 cells, but there are 3 columns"),
        ("t.csv", GOOD, ["-t", "y", "--drop", "c"], "no feature 'c'"),
        ("t.csv", GOOD, ["-t", "y", "--prototypes", "30"], "--prototypes 30 is more than the 20 rows"),
        ("t.csv", GOOD, ["-t", "y", "--perplexity", "30"], "--perplexity 30 must be below"),
        ("t.csv", GOOD, ["-t", "z", "--checkpoint", "no/where"], "checkpoint='no/where' cannot be written"),
        ("t.csv", GOOD, ["-t", "z", "--checkpoint", "t.csv"], "Cannot resume from 't.csv'"),
        ("t.csv", GOOD, ["-t", "y", "--out", "no/where"], "no/where cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(call, tmp_path, name, content, options, said):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = call("fit", name, *options)
    assert (code, err.count("\n")) == (1, 1) and err.startswith("distreduce: ") and said in err
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_full_disk_is_one_sentence(call, tmp_path, monkeypatch):
    def write(*_args, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a file that is open raises it, without a name

    (tmp_path / "t.csv").write_text(GOOD)
    monkeypatch.setattr(fitted_folder, "write_recipe", write)
    code, _, err = call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    assert (code, err) == (1, "distreduce: No space left on device.\n") and not (tmp_path / "distreduce-t").exists()


@pytest.mark.parametrize(("name", "said"), [("none.csv", "There is no file none.csv"), (".", "is a folder")])
def test_a_path_that_is_not_a_table(call, name, said):
    code, _, err = call("fit", name, "--target", "y")
    assert code == 1 and said in err


@pytest.mark.parametrize(
    "options", [["--missing", "guess"], ["--prototypes", "1"], ["--max-rows", "5"], ["--seed", "-1"], ["--eta", "-1"]]
)
def test_wrong_usage_is_exit_code_2(call, tmp_path, options):
    (tmp_path / "t.csv").write_text(GOOD)
    assert call("fit", "t.csv", "--target", "y", *options)[0] == 2


def test_an_earlier_result_needs_overwrite(call, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    before = (tmp_path / "distreduce-t/metrics.json").read_bytes()
    code, _, err = call("fit", "t.csv", "--target", "y", "--components", "1", *QUICK)
    assert code == 1 and "--overwrite" in err and (tmp_path / "distreduce-t/metrics.json").read_bytes() == before


def test_overwrite_replaces_the_earlier_result(call, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    call("fit", "t.csv", "--target", "y", "--components", "1", "--overwrite", *QUICK)
    assert SDR.load(tmp_path / "distreduce-t/model.safetensors").n_components == 1


def test_a_fit_that_breaks_leaves_the_earlier_result(call, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    before = {path.name: path.read_bytes() for path in (tmp_path / "distreduce-t").iterdir()}

    def fail(*_):
        raise MemoryError("Unable to allocate 10 GiB")

    monkeypatch.setattr("distreduce.cli._study.fit_picture", fail)
    code, _, err = call("fit", "t.csv", "--target", "y", "--overwrite", *QUICK)
    assert code == 1 and "lower --max-rows" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "distreduce-t").iterdir()} == before
