"""Forged files of the binary formats: right where a reader looks first, wrong behind it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np
from hostile.mutations import Rng, node, spoil_tree, text
from safetensors.numpy import load, save

from distreduce._utils.tensor_file import KEY, checksum

NAMES = ("X", "y", "labels", "format", "version", "kernel", "alpha", "offset", "scale", "centres", "coefficients")
TYPES = ("<f8", "<f4", "<i8", "<u1", "|b1", "|O", "<U3", "|S5", "<M8[ns]", "<c16", "|V8", "<f2", ">f8", "<x9", "(")
SHAPES = ("()", "(0,)", "(1,)", "(3, 4)", "(2**40,)", "(1000000000000,)", "(99999999999, 99999999999)", "(-1,)", "3",
          "(2, 2, 2, 2)", "(True,)", "(4294967296, 4294967296)", "(1,)*99", "[" * 200)  # fmt: skip
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class Trap:
    """Leaves a file behind where a pickle of it is loaded: no reader may."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("outside", "w"))


def forge_model(raw: bytes, rng: Rng) -> bytes:
    """A safetensors file that lies in its header, or a model with a checksum that fits and content that does not."""
    if rng.random() < 0.3:
        return _lying_header(raw, rng)
    (length,) = struct.unpack("<Q", raw[:8])
    document = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"][KEY])
    tensors = {name: np.array(value) for name, value in load(raw).items()}
    del document["sha256"]
    if rng.random() < 0.5:
        document = spoil_tree(document, rng)
    else:
        name = sorted(tensors)[rng.integers(len(tensors))]
        tensors[name] = spoil_array(tensors[name], rng)
    if not isinstance(document, dict):
        return save(tensors, metadata={KEY: json.dumps(document)})
    words = json.dumps({**document, "sha256": checksum(document, tensors)}, sort_keys=True)
    return save(tensors, metadata={KEY: words})


def _lying_header(raw: bytes, rng: Rng) -> bytes:
    (length,) = struct.unpack("<Q", raw[:8])
    header = spoil_tree(json.loads(raw[8 : 8 + length]), rng)
    words = json.dumps(header).encode()
    claimed = len(words) if rng.random() < 0.8 else int(rng.choice([0, 1, 2**31, 2**40, 2**62]))
    return struct.pack("<Q", claimed) + words + raw[8 + length :]


def spoil_array(A: Any, rng: Rng) -> Any:
    """Other numbers, another type or another shape."""
    kind = rng.integers(4)
    if kind == 0 and A.size and A.dtype.kind in "biuf":
        A.flat[rng.integers(A.size)] = rng.choice([0, 1, 2, 100])
    elif kind == 1 and A.dtype.kind == "f" and A.size:
        A.flat[rng.integers(A.size)] = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e308, 1e-320])
    elif kind == 2 and A.dtype.kind in "biuf":
        return A.astype(str(rng.choice(["f8", "f4", "f2", "i8", "i4", "u1"])))
    else:
        return np.resize(A, tuple(rng.integers(0, 6, size=rng.integers(0, 4)))).astype(A.dtype)
    return A


def forge_npz(raw: bytes, rng: Rng) -> bytes:
    """The archive packed again with one member that is not what it says."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[rng.integers(len(members))]
    members[name] = _forged_array(members[name], rng)
    if rng.random() < 0.2:
        odd = text(rng)[:60_000].encode("utf-8", "replace").decode()
        members[odd + ".npy"] = members.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", METHODS[rng.integers(len(METHODS))]) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return _lying_directory(bytearray(out.getvalue()), rng)


def _forged_array(raw: bytes, rng: Rng) -> bytes:
    kind = rng.integers(4)
    if kind == 0:
        descr, shape = TYPES[rng.integers(len(TYPES))], SHAPES[rng.integers(len(SHAPES))]
        words = f"{{'descr': {descr!r}, 'fortran_order': {bool(rng.integers(2))}, 'shape': {shape}, }}"
        words = words.ljust(118)[: int(rng.choice([40, 10_000]))] + "\n"
        version = bytes([int(rng.integers(0, 4)), 0])
        size = len(words).to_bytes(2 if version[0] <= 1 else 4, "little")
        return b"\x93NUMPY" + version + size + words.encode() + raw[128:]
    if kind == 1:
        stream = io.BytesIO()
        np.save(stream, np.array([Trap(), node(rng)], dtype=object), allow_pickle=True)
        return stream.getvalue()
    A = spoil_array(np.load(io.BytesIO(raw)), rng) if kind == 2 else np.array(text(rng))
    stream = io.BytesIO()
    np.save(stream, A)
    return stream.getvalue()


def _lying_directory(raw: bytearray, rng: Rng) -> bytes:
    """In one of five, a size or an offset in the zip's central directory that is not true."""
    place = raw.find(b"PK\x01\x02")
    if rng.random() < 0.2 and place > 0:
        at = place + int(rng.choice([10, 16, 20, 24, 28, 42]))
        raw[at : at + 4] = int(rng.choice([0, 1, 2**31 - 1, 2**32 - 1])).to_bytes(4, "little")
    return bytes(raw)
