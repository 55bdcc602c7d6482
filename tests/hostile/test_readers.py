"""Files from strangers: a reader gives what it read or an error with a name, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hostile.readers import READERS
from hostile.trial import ACCEPTED, HostileFileError, outcome, warm_up
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUICK = [name for name in READERS if not name.startswith("commands")]
OF_EVERY_READER = pytest.mark.parametrize("name", QUICK)
SOME = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(name: str, tmp_path: Path) -> Iterator[Path]:
    """An empty folder, everything imported that the reader needs."""
    warm_up(READERS[name], tmp_path)
    yield tmp_path


@OF_EVERY_READER
@SOME
@given(seed=st.integers(0, 2**32 - 1))
def test_a_spoilt_file_is_read_or_refused_by_name(name: str, folder: Path, seed: int) -> None:
    outcome(READERS[name], READERS[name].input(np.random.default_rng(seed)), folder)


@OF_EVERY_READER
@SOME
@given(raw=st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused_by_name(name: str, folder: Path, raw: bytes) -> None:
    outcome(READERS[name], raw, folder)


@OF_EVERY_READER
def test_a_real_file_is_accepted(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostile.readers.crc32", lambda raw: 2)  # with all columns, whichever library wrote the file
    assert ACCEPTED in {outcome(READERS[name], raw, folder) for raw in READERS[name].originals()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READERS if name.startswith("commands")])
def test_a_command_ends_with_a_sentence(name: str, folder: Path) -> None:
    found = {outcome(READERS[name], READERS[name].input(np.random.default_rng(seed)), folder) for seed in range(8)}
    assert found <= {ACCEPTED, "CommandRefusedError"}


@pytest.mark.parametrize(
    "bad",
    [
        lambda path: open(path.parent.parent / "outside", "w").close(),
        lambda path: eval("1 + 1"),  # noqa: S307 (what must be seen)
        lambda path: {}["an error without a name"],
        lambda path: np.load(path, allow_pickle=True),
    ],
    ids=["writes", "runs", "unnamed error", "unpickles"],
)
def test_what_a_reader_must_not_do_is_seen(bad: object, tmp_path: Path) -> None:
    from dataclasses import replace

    from hostile.archives import Trap

    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    reader = replace(READERS["npz"], read=bad)
    (tmp_path / "inner").mkdir()
    with pytest.raises(HostileFileError), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)  # the trap writes where we are
        outcome(reader, (tmp_path / "trap.npy").read_bytes(), tmp_path / "inner")
