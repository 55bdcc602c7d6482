"""Atomic writes, and a lock between processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from distreduce._utils.files import exclusive, replacing, temporary_path


def files_in(folder):
    return [(path.name, path.read_text()) for path in folder.iterdir()]


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert files_in(tmp_path) == [("table.csv", "new")]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert files_in(tmp_path) == [("table.csv", "old")]


def test_a_new_file_may_be_read_by_those_whom_the_mask_allows(tmp_path):
    mask = os.umask(0o027)
    try:
        with replacing(tmp_path / "table.csv") as temporary:
            temporary.write_text("new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) == 0o640


def test_the_rights_of_a_replaced_file_and_the_link_to_it_stay(tmp_path):
    path, link = tmp_path / "table.csv", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o604)
    link.symlink_to(path)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o604)


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(FileExistsError, match="is not a file"), replacing(tmp_path):
        pass


def test_left_overs_of_a_killed_process_can_be_found_by_their_mark(tmp_path):
    assert temporary_path(tmp_path / "model", "mark").match(".mark-*.tmp")


def test_the_second_waits_and_then_gets_the_error_it_gave(tmp_path):
    with exclusive(tmp_path / "lock", OSError()), pytest.raises(KeyError, match="busy"):
        with exclusive(tmp_path / "lock", KeyError("busy"), wait=0.05):
            pass


def test_the_lock_is_free_and_gone_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock", OSError()):
        raise RuntimeError
    assert not (tmp_path / "lock").exists()
    with exclusive(tmp_path / "lock", OSError()):
        assert (tmp_path / "lock").exists()


def test_a_killed_process_holds_no_lock(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from distreduce._utils.files import exclusive\n"
        "with exclusive(Path(sys.argv[1]), OSError()): os._exit(9)"
    )
    path = tmp_path / "lock"
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    with exclusive(path, OSError()):
        pass
