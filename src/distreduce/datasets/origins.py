"""Parse the files of the public origins into our arrays. Nothing that comes from the network is trusted."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.files import DAMAGE, Arrays
from distreduce.datasets.download import MAX_UNPACKED
from distreduce.exceptions import DatasetFileError

Files = dict[str, bytes]
POSES, SIDE = 72, 128  # COIL-20: one picture every five degrees
MEMBER = re.compile(r"(?:coil-20-proc/)?obj(\d{1,2})__(\d{1,2})\.png")


def table_of_numbers(files: Files) -> Arrays:
    """Parse one file of numbers separated by blanks, without a header (UCI's ``housing.data``)."""
    return {"table": _numbers(files, separator=None, skip=0)}


def table_with_header(files: Files) -> Arrays:
    """Parse one CSV file whose first line names the columns (UCI's ``data.csv``)."""
    return {"table": _numbers(files, separator=",", skip=1)}


def _numbers(files: Files, *, separator: str | None, skip: int) -> NDArray[Any]:
    ((name, content),) = files.items()
    try:
        rows = [line.split(separator) for line in content.decode("utf-8-sig").splitlines()[skip:] if line.strip()]
        return np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise DatasetFileError(f"{name} is not a table of numbers ({error}).") from error


def images_and_labels(files: Files) -> Arrays:
    """Parse the two IDX files of MNIST and of sets in its format, images first."""
    images, labels = (_idx(name, content) for name, content in files.items())
    return {"images": images, "labels": labels}


def _idx(name: str, content: bytes) -> NDArray[np.uint8]:
    """Parse bytes after a big-endian header: a magic number that ends in the number of axes, then their lengths."""
    unpacker = zlib.decompressobj(wbits=31)  # 31: gzip
    try:
        plain = unpacker.decompress(content, MAX_UNPACKED)  # a small file can unpack to gigabytes
        kind, axes = struct.unpack_from(">HxB", plain)
        # `axes` and `shape` come from the file: the length of the content must agree with them.
        shape = struct.unpack_from(f">{axes}I", plain, 4)
        # Byte 2 is the type, 8 for unsigned bytes; the two bytes before it are zero.
        sound = kind == 0 and plain[2] == 8 and unpacker.eof and len(plain) == 4 + 4 * axes + math.prod(shape)
    except (zlib.error, struct.error, IndexError) as error:
        raise DatasetFileError(f"{name} is not a gzipped IDX file ({error}).") from error
    if not sound:
        raise DatasetFileError(f"{name} is truncated, or not an IDX file of bytes.")
    return np.frombuffer(plain, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


def coil20_pictures(files: Files) -> Arrays:
    """Parse COIL-20's archive of ``obj<1…20>__<pose>.png``; nothing is unpacked to disk, other members are ignored."""
    ((name, content),) = files.items()
    pictures = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                found = MEMBER.fullmatch(member.filename)
                if found and member.file_size <= 4 * SIDE * SIDE:  # a 128 × 128 picture never needs more
                    pictures[int(found[1]) - 1, int(found[2])] = _picture(archive.read(member))
        # By object, then by pose, whatever the order in the archive.
        wanted = [(thing, pose) for thing in range(20) for pose in range(POSES)]
        images = np.stack([pictures[key] for key in wanted])
    except (*DAMAGE, SyntaxError) as error:  # Pillow raises SyntaxError for a broken PNG
        raise DatasetFileError(f"{name} is not the archive of COIL-20 ({type(error).__name__}: {error}).") from error
    labels, poses = np.array(wanted).T
    return {"images": images, "labels": labels.astype(np.uint8), "angles": (5 * poses).astype(np.int16)}


def _picture(content: bytes) -> NDArray[np.uint8]:
    from PIL import Image  # comes with matplotlib

    with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        if picture.size != (SIDE, SIDE) or picture.mode != "L":  # "L" is greyscale
            raise ValueError(f"a picture is {picture.size}, {picture.mode}")
        return np.array(picture)


def scot_arrays(files: Files) -> Arrays:
    """Parse SCOT's ``.npy`` files of chromatin and expression, and cell types 1 … 4 as text."""
    chromatin, expression, types = files.values()
    try:
        labels = np.array(types.split(), dtype=np.float64) - 1  # our classes start at 0
        return {
            "chromatin": np.load(io.BytesIO(chromatin), allow_pickle=False),
            "expression": np.load(io.BytesIO(expression), allow_pickle=False),
            "labels": labels.astype(np.uint8),
        }
    except DAMAGE as error:
        raise DatasetFileError(f"{', '.join(files)}: not the arrays of SCOT ({error}).") from error
