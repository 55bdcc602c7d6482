from __future__ import annotations

import os
import stat

import pytest

from distreduce._utils.atomic import replacing


def files_in(folder):
    return [(path.name, path.read_text()) for path in folder.iterdir()]


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replacing(path) as hidden:
        hidden.write_text("new")
    assert files_in(tmp_path) == [("table.csv", "new")]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as hidden:
        hidden.write_text("half")
        raise RuntimeError
    assert files_in(tmp_path) == [("table.csv", "old")]


def test_a_new_file_may_be_read_by_those_whom_the_mask_allows(tmp_path):
    mask = os.umask(0o027)
    try:
        with replacing(tmp_path / "table.csv") as hidden:
            hidden.write_text("new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) == 0o640
