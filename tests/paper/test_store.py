"""Records are kept wholly or not at all, and one run at a time keeps them."""

from __future__ import annotations

import errno
import json
import os
from contextlib import nullcontext

import pytest

from distreduce.exceptions import StoreError
from distreduce_paper import Cell
from distreduce_paper.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def record(seed: int, **outcome) -> dict:
    return {**Cell("e", "d", "m", seed).as_dict(), **(outcome or {"result": {"score": seed / 3}})}


def test_what_is_added_is_read_again_with_every_digit(store):
    store.add(record(1))
    assert store.results("e") == [record(1)]


def test_what_is_not_there_has_no_records(store):
    assert store.results("e") == [] and store.finished("e") == set()


def test_the_last_record_of_a_cell_counts(store):
    for one in (record(0, error={"type": "E"}), record(1), record(0, result={"score": 9})):
        store.add(one)
    assert store.results("e") == [record(0, result={"score": 9}), record(1)]


def test_failed_cells_are_finished_only_if_asked_for(store):
    store.add(record(0, error={"type": "E"}))
    assert (len(store.finished("e")), len(store.finished("e", also_failed=False))) == (1, 0)


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_torn_last_line_is_not_read(store, kept):
    store.add(record(0))
    line = json.dumps(record(1)).encode()
    with store.path("e").open("ab") as file:
        file.write(line[:kept] if kept > 0 else line)  # -1: all but the end of the line
    assert store.results("e") == [record(0)]


def test_a_record_after_a_torn_line_is_whole(store):
    store.add(record(0))
    with store.path("e").open("ab") as file:
        file.write(b'{"data": "d", "exp')
    with store.writing("e"):
        store.add(record(1))
    assert store.results("e") == [record(0), record(1)]


def test_a_line_that_lacks_only_its_end_is_kept(store):
    store.path("e").write_text(json.dumps(record(0)))
    with store.writing("e"):
        store.add(record(1))
    assert store.results("e") == [record(0), record(1)]


@pytest.mark.parametrize("text", ['{"id": 1}\n{"id": 2}', '{"everything": 1}', "a line", '{"id": 1}\n{"id'])
@pytest.mark.parametrize("name", ["e", "annotations"])
def test_lines_of_somebody_else_are_not_cut(store, name, text):
    store.path(name).write_text(text)
    with pytest.raises(StoreError, match="is not the result of a cell") if name == "e" else nullcontext():
        with store.writing("e"):
            pass
    assert store.path(name).read_text() == text


def test_a_lock_that_is_a_link_is_not_followed(store, tmp_path):
    (tmp_path / "precious.txt").write_text("precious")
    (tmp_path / ".lock").symlink_to(tmp_path / "precious.txt")
    with pytest.raises(StoreError, match="Cannot open the lock file"), store.writing("e"):
        pass
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize("line", [b"<<<<<<< HEAD", b"", b"5", b"{}", b"\xff\xfe", json.dumps(record(0)).encode()[:-1]])
def test_a_line_that_is_no_record_is_named(store, line):
    store.add(record(0))
    with store.path("e").open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(StoreError, match=r"Line 2 of .*e\.jsonl is not the result of a cell .*delete that line"):
        store.results("e")


def test_a_record_without_an_outcome_is_named(store):
    store.add(Cell("e", "d", "m", 0).as_dict())
    with pytest.raises(StoreError, match="neither a result nor an error"):
        store.finished("e")


def test_a_full_disk_leaves_no_part_of_a_record(store, monkeypatch):
    store.add(record(0))
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:10]))
    with pytest.raises(StoreError, match="disk is full"):
        store.add(record(1))
    assert store.path("e").read_text() == json.dumps(record(0), sort_keys=True) + "\n"


def test_an_error_of_the_disk_names_the_file(store, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"e\.jsonl: .*Input/output error"):
        store.add(record(0))


def test_the_record_is_on_the_disk_before_add_returns(store, monkeypatch):
    forced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: forced.append(os.fstat(descriptor).st_size))
    store.add(record(0))
    assert forced == [store.path("e").stat().st_size]


def test_a_second_writer_is_refused(store):
    with store.writing(), pytest.raises(StoreError, match="Another run is writing to .*--results"):
        with Store(store.folder).writing():
            pass


def test_the_folder_is_free_after_an_error(store):
    with pytest.raises(RuntimeError), store.writing():
        raise RuntimeError
    with store.writing():
        pass


def test_a_second_writer_leaves_a_line_that_is_being_written(store):
    with store.writing():
        store.path("e").write_bytes(b'{"torn')
        with pytest.raises(StoreError), Store(store.folder).writing():
            pass
        assert store.path("e").read_bytes() == b'{"torn'


def test_reading_takes_no_lock(store):
    store.add(record(0))
    with store.writing():
        assert Store(store.folder).results("e") == [record(0)]
