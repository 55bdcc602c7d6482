"""Data sets that live in files: where they are searched, how they are downloaded, verified and read.

The folder DISTREDUCE_DATA is searched first, then the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from distreduce._utils.files import DAMAGE, Arrays, exclusive, read_arrays, replacing
from distreduce._utils.text import progress_bar
from distreduce.datasets.dataset import Dataset
from distreduce.estimators._targets import Task
from distreduce.exceptions import DatasetFileError, DownloadError

MAX_UNPACKED = 64 * 2**20  # bytes of an NPZ file in memory: the largest set has 24 MB


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public origin; all `urls` hold the same bytes."""

    name: str
    size: int  # bytes; much larger downloads are rejected
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class FileSet:
    """A data set that lives in a file."""

    name: str
    file: str  # its name in the folder DISTREDUCE_DATA and in the cache
    sha256: str  # hash_values of its arrays, whatever file they came in
    arrays: tuple[str, ...]  # columns of a CSV file, targets last; or arrays of an NPZ file, features first
    shape: tuple[int, int]
    task: Task
    target_names: tuple[str, ...]
    remote: tuple[RemoteFile, ...]
    parse: Callable[[dict[str, bytes]], Arrays]  # turns the contents of `remote`, by name, into our arrays
    description: str
    licence: str
    citation: str
    class_names: tuple[str, ...] | None = None
    image_shape: tuple[int, int] | None = None

    @property
    def download_size(self) -> int:
        return sum(remote.size for remote in self.remote)

    def find_fault(self, arrays: Arrays) -> str:
        """Return what is wrong with the values; an empty string if they are those of this set."""
        found = hash_values(arrays)
        if found == self.sha256:  # of the values, not of the file: a repacked copy is accepted (decision 14)
            return ""
        return f"its values are not those of {self.name!r} (sha256 {found[:12]}… instead of {self.sha256[:12]}…)"

    def dataset(self, arrays: Arrays) -> Dataset:
        if "table" in arrays:
            # A CSV file: one table, targets last. Copies are contiguous and share no memory.
            d, names = self.shape[1], self.arrays[: self.shape[1]]
            X, y = arrays["table"][:, :d].copy(), arrays["table"][:, d:].copy()
            y = y[:, 0] if y.shape[1] == 1 else y
        else:
            # An NPZ file: features of any shape and type, and integer labels.
            X = arrays[self.arrays[0]].reshape(self.shape).astype(np.float64, order="C")
            y = arrays["labels"].astype(np.int64)
            stem = "pixel" if self.image_shape else self.arrays[0]
            names = tuple(f"{stem}_{column}" for column in range(self.shape[1]))
        return Dataset(
            self.name, X, y, self.task, names, self.target_names, self.class_names, self.image_shape,
            self.description, self.licence, self.citation,
        )  # fmt: skip


def hash_values(arrays: Arrays) -> str:
    """Return the sha256 over names, shapes, dtypes and little-endian bytes: container and compression do not matter."""
    digest = hashlib.sha256()
    for name in sorted(arrays):  # the order in the file does not matter
        plain = np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.str} {plain.shape}\n".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()


def read_file(path: Path, names: Sequence[str]) -> Arrays:
    """Return the arrays of these names (NPZ), or one array ``table`` with these columns (CSV)."""
    try:
        if path.suffix != ".csv":  # NPZ
            return read_arrays(path, names, MAX_UNPACKED)
        # Our own format needs no guessing, unlike people's files.
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        if header.split(",") != list(names):
            raise ValueError(f"its columns are not {', '.join(names)}")
        return {"table": np.array([line.split(",") for line in lines], dtype=np.float64)}
    except DAMAGE as error:
        raise DatasetFileError(f"{path} cannot be read ({type(error).__name__}: {error}).") from error


def write_file(path: Path, arrays: Arrays, names: Sequence[str]) -> None:
    """Write a file that :func:`read_file` reads, atomically: a reader never sees half of it."""
    with replacing(path) as hidden, hidden.open("xb") as stream:
        if "table" not in arrays:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # the stubs take a name for allow_pickle
            return
        # repr is the shortest text that reads back to the same number.
        rows = [",".join(names), *(",".join(map(repr, row)) for row in arrays["table"].tolist())]
        stream.write(("\n".join(rows) + "\n").encode())


FOLDER_VARIABLE, CACHE_VARIABLE = "DISTREDUCE_DATA", "DISTREDUCE_CACHE"


@dataclass(frozen=True)
class Copy:
    """The file of a set, in one of the two places."""

    place: Literal["folder", "cache"]
    path: Path

    def read(self, spec: FileSet) -> Arrays:
        """Return its arrays; if its values are not those published, raise DatasetFileError and leave the file alone."""
        try:
            arrays = read_file(self.path, spec.arrays)
        except DatasetFileError as error:
            raise DatasetFileError(f"{error} {self._advice()}") from error
        fault = spec.find_fault(arrays)
        if fault:
            raise DatasetFileError(f"{self.path} is damaged or another version: {fault}. {self._advice()}")
        return arrays

    def _advice(self) -> str:
        if self.place == "cache":
            return "Delete it; the next load fetches it again."
        return f"Replace or delete it; without it the cache is used, then the public origin ({FOLDER_VARIABLE} is set)."


def data_folder() -> Path | None:
    """Return the folder DISTREDUCE_DATA; None if the variable is not set."""
    value = os.environ.get(FOLDER_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    # An error, not the cache: a mistyped variable would otherwise start a download.
    if not folder.is_dir():
        raise DatasetFileError(f"{FOLDER_VARIABLE}={value} is not a folder; correct it or unset it.")
    return folder


def cache_folder() -> Path:
    """Return the folder DISTREDUCE_CACHE, or the user's cache; it need not exist."""
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value).expanduser().absolute()  # a later chdir must not move the cache
    import pooch

    return Path(pooch.os_cache("distreduce"))


def copies(spec: FileSet) -> list[Copy]:
    """Return the local files of a set, the one to use first."""
    folder = data_folder()
    found = [] if folder is None else [Copy("folder", folder / spec.file)]
    found.append(Copy("cache", cache_folder() / spec.file))
    return [copy for copy in found if copy.path.is_file()]


MAX_WAIT = 600.0  # seconds for another process that fetches the same set
CHUNK = 512  # bytes between two looks at the speed
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}  # answers that may change at the next attempt
ATTEMPTS, PAUSE = 4, 0.5  # seconds before the second attempt, which double before each further one
SILENCE = 20.0  # seconds without an answer or a byte
SLOWEST = 2000.0  # bytes per second, on average over an attempt that has lasted longer than `SILENCE`


class _InterruptedError(Exception):
    """The transfer failed, and another attempt may succeed."""


def download_set(spec: FileSet, *, progress: bool = True) -> Arrays:
    """Download a set into the cache, unless another process has just done so; an error leaves no file behind."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = cache / f".{spec.name}.lock"
        busy = f"another process has been fetching it for {MAX_WAIT:g} s (lock {lock}); end it and try again"
        with exclusive(lock, DownloadError(busy), wait=MAX_WAIT):  # else two processes would download the same set
            copy = Copy("cache", cache / spec.file)
            if copy.path.is_file():  # the process that held the lock has fetched it
                return copy.read(spec)
            arrays = _download(spec, progress)
            write_file(copy.path, arrays, spec.arrays)  # in our own format, not the origin's: reading needs no parser
            return arrays
    except DownloadError as error:
        raise DownloadError(
            f"{spec.name!r} could not be fetched: {error}. Try again later, or put {spec.file} (from another machine's "
            f"cache) into a folder and set {FOLDER_VARIABLE} to that folder."
        ) from error
    except OSError as error:
        raise DatasetFileError(
            f"The cache {cache} cannot be written ({error.strerror or error}); set DISTREDUCE_CACHE to another folder."
        ) from error


def _download(spec: FileSet, progress: bool) -> Arrays:
    try:
        with _progress_bar(spec, progress) as advance:
            files = {remote.name: _fetch_file(remote, advance) for remote in spec.remote}
        arrays = spec.parse(files)
        fault = spec.find_fault(arrays)  # the file's sha256 does not vouch for our parser
    except DatasetFileError as error:
        fault = str(error)  # the parser could not read it
    if fault:
        urls = ", ".join(remote.urls[0] for remote in spec.remote)
        raise DownloadError(f"{urls}: the download is not what was published, {fault}")
    return arrays


def _fetch_file(remote: RemoteFile, advance: Callable[[int], None]) -> bytes:
    """Return the bytes of one file, from the first URL that has them."""
    failures = []
    for url in remote.urls:  # mirrors of the same bytes, tried in this order
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE * 2 ** (attempt - 1))  # 0.5, 1, 2 s
            content = bytearray()
            try:
                _retrieve(url, remote, content, advance)
                return bytes(content)
            except _InterruptedError as error:
                advance(-len(content))  # the next attempt starts again at the first byte
                reason = f"{error} (tried {attempt + 1} times)"
            except DownloadError as error:
                # Another attempt at this URL would end the same way.
                reason = str(error)
                break
        failures.append(f"{url}: {reason}")
    raise DownloadError("; ".join(failures))


def _retrieve(url: str, remote: RemoteFile, content: bytearray, advance: Callable[[int], None]) -> None:
    """Try once: append what the server sends to `content`, and compare the sha256."""
    import requests

    # "identity": the bytes must arrive as published, and requests would unpack what a server compresses on the way.
    headers = {"User-Agent": "distreduce", "Accept-Encoding": "identity"}
    begin, promised = time.monotonic(), "?"
    try:
        with requests.get(url, headers=headers, timeout=SILENCE, stream=True) as answer:
            if not answer.ok:
                kind = _InterruptedError if answer.status_code in TRANSIENT else DownloadError
                raise kind(f"the server answered {answer.status_code} {answer.reason}")
            promised = answer.headers.get("content-length", "?")
            for chunk in answer.iter_content(CHUNK):
                content += chunk
                advance(len(chunk))
                _check_pace(len(content), remote, time.monotonic() - begin)
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"the server's certificate cannot be verified ({error})") from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise _InterruptedError(f"the connection ended after {len(content)} of {promised} bytes") from error
    except requests.exceptions.RequestException as error:
        if "timed out" in str(error):  # requests has no class of its own for a silence within the body
            raise _InterruptedError(f"the server was silent for {SILENCE:g} s") from error
        cause = str(getattr(error.args[0], "reason", error) if error.args else error)
        raise _InterruptedError(f"no connection ({cause.split(': ', 1)[-1]})") from error
    if hashlib.sha256(content).hexdigest() != remote.sha256:
        raise DownloadError("the file there is not the one published (its sha256 differs)")


def _check_pace(size: int, remote: RemoteFile, seconds: float) -> None:
    """End a download that is too large or too slow."""
    # Generous: a changed file should fail by its sha256; only an endless one is cut off.
    limit = 2 * remote.size + 2**16
    if size > limit:
        raise DownloadError(f"the server sends {size} bytes or more where at most {limit} were expected")
    # The timeout of requests is for silence only: a server that drips bytes would never end.
    if seconds > SILENCE and size < SLOWEST * seconds:
        raise _InterruptedError(f"the server sent only {size} bytes in {seconds:.0f} s")


@contextmanager
def _progress_bar(spec: FileSet, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar for all files of the set if standard error is a terminal; yield a function that advances it."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with progress_bar(*columns, visible=wanted) as bar:
        task = bar.add_task(f"fetching {spec.name}", total=spec.download_size)
        yield lambda count: bar.advance(task, count)
