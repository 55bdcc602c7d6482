"""A lock between processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from distreduce._utils.files import exclusive


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
