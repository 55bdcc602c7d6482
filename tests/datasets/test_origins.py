"""The formats of the public origins: the real values survive them, and what is broken or wicked is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from distreduce import datasets
from distreduce.datasets import loading, origins
from distreduce.exceptions import DatasetFileError


def table(data_dir, name):
    return np.genfromtxt(data_dir / f"{name}.csv", delimiter=",", skip_header=1)


def housing_data(rows) -> bytes:
    form = "%8.5f %6.2f %7.3f  %d  %6.4f  %6.4f %6.2f %7.4f %3d %6.1f %6.2f %6.2f %6.2f %6.2f\n"
    return "".join(form % tuple(row) for row in rows).encode()


def concrete_csv(rows) -> bytes:
    head = (
        "Cement,Blast Furnace Slag,Fly Ash,Water,Superplasticizer,Coarse Aggregate,Fine Aggregate,Age,"
        "Concrete compressive strength"
    )
    shortest = [",".join(str(int(v)) if v == int(v) else repr(v) for v in row) for row in rows.tolist()]
    return "".join(f"{line}\r\n" for line in [head, *shortest]).encode()


def energy_csv(rows) -> bytes:
    form = ["%.2f"] * 5 + ["%d", "%.2f", "%d", "%.2f", "%.2f"]
    lines = [",".join(f % v for f, v in zip(form, row, strict=True)) for row in rows]
    return "".join(f"{line}\n" for line in ["X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2", *lines]).encode()


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def idx(array, magic: int | None = None) -> bytes:
    header = struct.pack(f">{1 + array.ndim}I", magic or 0x800 + array.ndim, *array.shape)
    return header + array.tobytes()


def png(picture) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, format="PNG", compress_level=1)
    return stream.getvalue()


def coil_zip(images, *, leave_out: str = "") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, picture in reversed(list(enumerate(images))):
            name = f"coil-20-proc/obj{number // 72 + 1}__{number % 72}.png"
            if name != leave_out:
                archive.writestr(name, png(picture))
    return stream.getvalue()


def with_members(archive: bytes, members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO(archive)
    with zipfile.ZipFile(stream, "a") as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return stream.getvalue()


def origin_files(data_dir, name: str) -> list[bytes]:
    """The origin's files, rebuilt from the values we have."""
    if name in ("boston", "concrete", "energy"):
        write = {"boston": housing_data, "concrete": concrete_csv, "energy": energy_csv}[name]
        return [write(table(data_dir, name))]
    with np.load(data_dir / loading.FILE_SETS[name].file) as store:
        arrays = dict(store)
    if name == "snareseq":
        types = "\r\n".join(str(label + 1) for label in arrays["labels"]).encode()
        return [npy(np.asfortranarray(arrays["chromatin"])), npy(arrays["expression"]), types]
    if name == "coil20":
        return [coil_zip(arrays["images"])]
    return [gzip.compress(idx(arrays[part]), 1) for part in ("images", "labels")]


@pytest.mark.data
@pytest.mark.parametrize("name", ["boston", "concrete", "energy", "snareseq"])
def test_our_values_in_the_form_of_the_origin_have_the_published_sha256(name, data_dir):
    found = [(len(content), hashlib.sha256(content).hexdigest()) for content in origin_files(data_dir, name)]
    assert found == [(remote.size, remote.sha256) for remote in loading.FILE_SETS[name].remote]


@pytest.mark.data
@pytest.mark.parametrize("name", ["boston", "concrete", "energy", "coil20", "mnist", "fashion_mnist", "snareseq"])
def test_fetching_the_origin_gives_the_set_in_the_folder(name, data_dir, server, cache, monkeypatch):
    spec, remotes = loading.FILE_SETS[name], []
    for remote, content in zip(spec.remote, origin_files(data_dir, name), strict=True):
        server.files[f"/{remote.name}"] = content
        sha256 = hashlib.sha256(content).hexdigest()  # gzip and zip depend on the library that packed them
        remotes.append(replace(remote, sha256=sha256, size=len(content), urls=(server.url(f"/{remote.name}"),)))
    monkeypatch.setitem(loading.FILE_SETS, name, replace(spec, remote=tuple(remotes)))
    fetched = datasets.load(name)
    monkeypatch.setenv("DISTREDUCE_DATA", str(data_dir))
    given = datasets.load(name)
    assert np.array_equal(fetched.X, given.X) and np.array_equal(fetched.y, given.y)


@pytest.mark.data
@pytest.mark.parametrize("name", ["boston", "concrete", "energy"])
def test_the_cached_table_is_the_file_of_the_folder_byte_for_byte(name, data_dir, tmp_path):
    from distreduce.datasets.download import write_file

    spec = loading.FILE_SETS[name]
    write_file(tmp_path / spec.file, {"table": table(data_dir, name)}, spec.arrays)
    assert (tmp_path / spec.file).read_bytes() == (data_dir / spec.file).read_bytes()


PICTURES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
LABELS = np.array([3, 1], dtype=np.uint8)


def test_idx_keeps_shape_and_values():
    files = {"images.gz": gzip.compress(idx(PICTURES)), "labels.gz": gzip.compress(idx(LABELS))}
    assert np.array_equal(origins.images_and_labels(files)["images"], PICTURES)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not gzip",
        gzip.compress(b""),
        gzip.compress(b"\0\0\x08"),
        gzip.compress(idx(PICTURES)[:-1]),
        gzip.compress(idx(PICTURES) + b"x"),
        gzip.compress(idx(PICTURES))[:-12],
        gzip.compress(idx(PICTURES, magic=0xD03)),  # floats
        gzip.compress(idx(PICTURES, magic=0x01000803)),
        gzip.compress(struct.pack(">4I", 0x803, 2**31, 2**31, 2**31)),
        gzip.compress(struct.pack(">4I", 0x803, 70 * 2**20, 1, 1) + bytes(70 * 2**20), 1),  # more than any set has
    ],
    ids=["empty", "text", "nothing", "short header", "short", "long", "cut", "floats", "magic", "huge", "bomb"],
)
def test_a_broken_idx_file_is_refused_by_name(content):
    with pytest.raises(DatasetFileError, match=r"images\.gz"):
        origins.images_and_labels({"images.gz": content, "labels.gz": gzip.compress(idx(LABELS))})


BLANK = np.zeros((1440, 128, 128), dtype=np.uint8)


@pytest.fixture(scope="module")
def all_but_one() -> bytes:
    """An archive that lacks the first picture of the first object."""
    return coil_zip(BLANK, leave_out="coil-20-proc/obj1__0.png")


def test_other_members_of_the_archive_are_ignored_and_nothing_is_unpacked(all_but_one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    members = {"coil-20-proc/obj1__0.png": png(BLANK[0]), "../escape.png": b"x", "/obj1__1.png": b"x", "README": b"x"}
    parsed = origins.coil20_pictures({"coil.zip": with_members(all_but_one, members)})
    assert (parsed["images"].shape, list(tmp_path.rglob("*"))) == ((1440, 128, 128), [])


def test_pictures_are_sorted_by_number_whatever_their_order_in_the_archive():
    pictures = BLANK.copy()
    pictures[:, 0, 0] = np.arange(1440) % 256
    parsed = origins.coil20_pictures({"coil.zip": coil_zip(pictures)})
    assert np.array_equal(parsed["images"][:, 0, 0], np.arange(1440) % 256)


@pytest.mark.parametrize(
    "content",
    [
        b"no picture",
        png(BLANK[0])[:60],
        png(np.zeros((64, 64), np.uint8)),
        png(np.zeros((128, 128, 3), np.uint8)),
        png(BLANK[0]) + bytes(10**6),
    ],
    ids=["text", "cut", "small", "colour", "large"],
)
def test_a_broken_picture_is_refused(content, all_but_one):
    with pytest.raises(DatasetFileError, match=r"coil\.zip"):
        origins.coil20_pictures({"coil.zip": with_members(all_but_one, {"coil-20-proc/obj1__0.png": content})})


def test_a_missing_picture_is_refused(all_but_one):
    with pytest.raises(DatasetFileError, match=r"KeyError: \(0, 0\)"):
        origins.coil20_pictures({"coil.zip": all_but_one})


def test_half_an_archive_is_refused():
    with pytest.raises(DatasetFileError, match="BadZipFile"):
        origins.coil20_pictures({"coil.zip": coil_zip(BLANK[:9])[:500]})


def test_an_array_that_would_run_code_is_refused():
    wicked = npy(np.array([{"code": 1}], dtype=object))
    with pytest.raises(DatasetFileError, match="allow_pickle"):
        origins.scot_arrays({"a.npy": wicked, "b.npy": wicked, "c.txt": b"1\n2"})
