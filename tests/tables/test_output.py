"""Files and folders that are written completely or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import recover_folder, whole_file, whole_folder


def content(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_text() for path in folder.rglob("*")}


def old_folder(path):
    path.mkdir()
    (path / "a.txt").write_text("old")


def test_a_folder_appears_with_its_content(tmp_path):
    with whole_folder(tmp_path / "out", ["a.txt"], overwrite=False) as folder:
        (folder / "a.txt").write_text("new")
    assert content(tmp_path) == {"out": False, "out/a.txt": "new"}


def test_a_folder_is_replaced_when_asked(tmp_path):
    old_folder(tmp_path / "out")
    with whole_folder(tmp_path / "out", ["a.txt"], overwrite=True) as folder:
        (folder / "a.txt").write_text("new")
    assert content(tmp_path) == {"out": False, "out/a.txt": "new"}


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path):
    old_folder(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out", ["a.txt"], overwrite=True) as folder:
        (folder / "a.txt").write_text("half")
        raise KeyboardInterrupt
    assert content(tmp_path) == {"out": False, "out/a.txt": "old"}


def test_a_rename_that_fails_brings_the_old_folder_back(tmp_path, monkeypatch):
    old_folder(tmp_path / "out")
    rename = os.rename

    def fail_for_the_new(source, target):
        if Path(target) == tmp_path / "out" and (Path(source) / "b.txt").exists():
            raise OSError("no room")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new)
    with pytest.raises(OSError, match="no room"), whole_folder(tmp_path / "out", ["a.txt"], overwrite=True) as folder:
        (folder / "b.txt").write_text("new")
    assert content(tmp_path) == {"out": False, "out/a.txt": "old"}


def test_an_existing_folder_needs_permission(tmp_path):
    old_folder(tmp_path / "out")
    with pytest.raises(InvalidInputError, match="--overwrite"), whole_folder(tmp_path / "out", [], overwrite=False):
        pass


def test_a_folder_with_files_of_others_is_never_replaced(tmp_path):
    old_folder(tmp_path / "out")
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with (
        pytest.raises(InvalidInputError, match="holds 'thesis.txt'"),
        whole_folder(tmp_path / "out", ["a.txt"], overwrite=True),
    ):
        pass


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_came_into_being_during_the_fit_is_left_alone(tmp_path, overwrite):
    with (
        pytest.raises(InvalidInputError, match=r"during the fit, whose results are in .*out-2"),
        whole_folder(tmp_path / "out", ["a.txt"], overwrite=overwrite) as folder,
    ):
        (folder / "a.txt").write_text("new")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("mine")
    found = {"out": False, "out/thesis.txt": "mine", "out-2": False, "out-2/a.txt": "new"}
    assert content(tmp_path) == found


def test_two_processes_do_not_write_to_one_place(tmp_path):
    with (
        whole_folder(tmp_path / "out", ["a.txt"], overwrite=False),
        pytest.raises(InvalidInputError, match="Another process is writing"),
        whole_folder(tmp_path / "out", ["a.txt"], overwrite=False),
    ):
        pass


@pytest.mark.parametrize("when", ["before the renames", "between the renames"])
def test_what_a_killed_run_left_is_recovered_or_removed(tmp_path, when):
    old_folder(tmp_path / "out")
    code = f"""
import os, signal, sys
from pathlib import Path
from distreduce.tables.output import whole_folder
rename = os.rename
def rename_and_die(source, target):
    rename(source, target)
    os.kill(os.getpid(), signal.SIGKILL)
os.rename = rename_and_die
with whole_folder(Path("out"), ["a.txt"], overwrite=True) as folder:
    (folder / "a.txt").write_text("half")
    if {when == "before the renames"}:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == -9
    said = []
    with whole_folder(tmp_path / "out", ["a.txt"], overwrite=True, say=said.append) as folder:
        assert (tmp_path / "out" / "a.txt").read_text() == "old"
        (folder / "a.txt").write_text("new")
    assert content(tmp_path) == {"out": False, "out/a.txt": "new"} and "killed" in said[0]


def test_a_folder_that_a_killed_run_moved_away_comes_back(tmp_path):
    old_folder(tmp_path / ".out.old-0123456789abcdef.tmp")
    assert "back as it was" in recover_folder(tmp_path / "out", ["a.txt"])[0]
    assert content(tmp_path) == {"out": False, "out/a.txt": "old"} and not recover_folder(tmp_path / "out", [])


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidInputError, match="is not a folder"), whole_folder(tmp_path / "out", [], overwrite=True):
        pass


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(InvalidInputError, match="no/where cannot be written .No such file"),
        whole_folder(tmp_path / "no" / "where", [], overwrite=False),
    ):
        pass


def test_no_permission_is_one_sentence(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)  # tests may run as root, whom nothing is denied
    with (
        pytest.raises(InvalidInputError, match="Permission denied.*another --out"),
        whole_folder(tmp_path / "out", [], overwrite=False),
    ):
        pass


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a.csv", overwrite=True) as hidden:
        hidden.write_text("half")
        raise RuntimeError
    assert content(tmp_path) == {"a.csv": "old"}


def test_an_existing_file_needs_permission(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(InvalidInputError, match="--overwrite"), whole_file(tmp_path / "a.csv", overwrite=False):
        pass


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder"), whole_file(tmp_path, overwrite=True):
        pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with whole_file(pipe, overwrite=False) as stream:
        stream.write("new")
    reader.join()
    assert read == ["new"] and pipe.is_fifo() and len(list(tmp_path.iterdir())) == 1


def test_a_device_is_written_to(tmp_path):
    (tmp_path / "null").symlink_to(os.devnull)
    with whole_file(tmp_path / "null", overwrite=True) as stream:
        stream.write("new")
    assert (tmp_path / "null").is_symlink()


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    (tmp_path / "link").symlink_to("a.csv")
    with pytest.raises(InvalidInputError, match="--overwrite"), whole_file(tmp_path / "link", overwrite=False):
        pass
    with whole_file(tmp_path / "link", overwrite=True) as hidden:
        hidden.write_text("new")
    assert (tmp_path / "link").is_symlink() and content(tmp_path) == {"a.csv": "new", "link": "new"}


@pytest.mark.parametrize("path", [".", ".."])
def test_the_folder_that_one_is_in_is_refused(tmp_path, monkeypatch, path):
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(InvalidInputError, match="you are in"), whole_folder(Path(path), [], overwrite=True):
        pass
