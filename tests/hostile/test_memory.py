"""Small files that ask for much: refused within a stated amount of memory, in a process that has no more."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distreduce
from distreduce import datasets
from distreduce._utils import files as archives
from distreduce.exceptions import DatasetFileError

MEMORY = 2**30  # bytes that the process may take beyond what it has when everything is imported
LARGE = 600 * 2**20  # bytes
SCRIPT = """
import os, resource, sys
from pathlib import Path
import pyarrow.parquet
from distreduce import persistence
from distreduce.exceptions import DistReduceError
from distreduce_paper.store import Store
from distreduce.interop import load_map
from distreduce.tables.reading import read_table
from distreduce.tables.recipe import read_recipe

readers = {
    "model": persistence.load, "map": load_map, "recipe": read_recipe, "table": lambda path: read_table(path, ["y"]),
    "store": lambda path: Store(path.parent).results(path.stem),
}
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[1]),) * 2)
for line in sys.stdin:
    reader, path = line.split()
    child = os.fork()  # each with all the memory, and without importing everything again
    if child:
        os.waitpid(child, 0)
        continue
    try:
        readers[reader](Path(path))
        print("accepted", flush=True)
    except DistReduceError as error:
        print("refused", flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
    os._exit(0)
"""


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as store:
        for name, content in members.items():
            store.writestr(f"{name}.npy", content)
    return out.getvalue()


def array(shape: str, body: bytes) -> bytes:
    words = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words.encode() + body


def bomb() -> bytes:
    """More than a gigabyte of zeros in six megabytes."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as store,
        store.open("X.npy", "w") as stream,
    ):
        stream.write(array("(167772160, 1)", b""))
        for _ in range(20):
            stream.write(bytes(2**26))
    return out.getvalue()


def equal_cells() -> bytes:
    """A text of a hundred kilobytes in each of half a million rows, stored once."""
    cells = pa.DictionaryArray.from_arrays(pa.array(np.zeros(500_000, dtype="i4")), pa.array(["x" * 100_000]))
    out = io.BytesIO()
    pq.write_table(pa.table({"a": cells, "y": cells}), out, store_schema=False)
    return out.getvalue()


def header(words: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(words) if length is None else length) + words


def huge_tensor() -> bytes:
    return header(json.dumps({"a": {"dtype": "F64", "shape": [2**60], "data_offsets": [0, 2**63]}}).encode())


def large_tensor() -> bytes:
    """The header of a tensor that the process can map into memory, but not copy."""
    about = {"format": "distreduce-model", "version": [2, 0], "class": "SDR", "state": {}}
    words = {
        "a": {"dtype": "F64", "shape": [LARGE // 8], "data_offsets": [0, LARGE]},
        "__metadata__": {"distreduce": json.dumps(about)},
    }
    return header(json.dumps(words).encode())


# What the file is: its reader, its name, and its bytes.
CASES: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "a huge shape": ("table", "t.npz", lambda: archive(X=array("(1000000000000, 2)", b"12345678"))),
    "a huge shape in a map": ("map", "t.npz", lambda: archive(format=array("(1000000000000,)", b""))),
    "zeros, packed": ("table", "t.npz", bomb),
    "equal cells": ("table", "t.parquet", equal_cells),
    "deep JSON": ("recipe", "recipe.json", lambda: b"[" * 10**6),
    "deep records": ("store", "e.jsonl", lambda: b"[" * 10**6 + b"\n"),
    "a long header": ("model", "m", lambda: header(b"{", 2**40)),
    "a deep header": ("model", "m", lambda: header(b'{"a":' * 10**6)),
    "a huge tensor": ("model", "m", huge_tensor),
    "a large tensor": ("model", "m", large_tensor),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits on memory are those of Linux")
def test_a_file_that_asks_for_much_is_refused_within_a_gigabyte(tmp_path: Path) -> None:
    lines = []
    for number, (reader, name, make) in enumerate(CASES.values()):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_bytes(make())
        if make is large_tensor:
            os.truncate(path, path.stat().st_size + LARGE)  # zeros that take no room on the disk
        lines.append(f"{reader} {path}")
    environment = {**os.environ, "PYTHONPATH": str(Path(distreduce.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(MEMORY)]
    done = subprocess.run(
        command, input="\n".join(lines), env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    said = dict(zip(CASES, done.stdout.split(), strict=False))
    assert said == dict.fromkeys(CASES, "refused"), done.stderr


def test_the_limit_grows_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(bytes(1000))
    assert archives.allowed_bytes(tmp_path / "t.npz") == 2**28 + 100_000


def test_an_archive_beyond_the_limit_says_how_much_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((1000, 100)), y=np.zeros(1000))
    monkeypatch.setattr(archives, "ALWAYS", 0)
    with pytest.raises(DatasetFileError, match="would unpack to 808256 bytes"):
        datasets.load(tmp_path / "t.npz")
