"""From the public origin to the cache: download, check, parse, check the values, store."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from distreduce._utils.lock import exclusive
from distreduce._utils.safe_npz import Arrays
from distreduce.datasets.places import FOLDER_VARIABLE, Copy, cache_folder
from distreduce.datasets.progress import Report, transfer_bar
from distreduce.datasets.spec import FileSet, RemoteFile
from distreduce.datasets.storage import write_file
from distreduce.datasets.transfer import ResumingDownload
from distreduce.exceptions import DatasetFileError, DownloadError

LONGEST_WAIT = 600.0  # seconds for another process that fetches the same set


def fetch_set(spec: FileSet, *, progress: bool = True) -> Arrays:
    """Fetch a set into the cache unless another process just did; an error leaves no file behind.

    Whole and half files of the origin stay in a hidden folder of the cache while this runs. A process that is killed
    leaves them there, and the next one goes on from them.
    """
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = cache / f".{spec.name}.lock"
        busy = DownloadError(
            f"another process has been fetching it for {LONGEST_WAIT:g} s (lock {lock}); end it and try again"
        )
        with exclusive(lock, busy, wait=LONGEST_WAIT):
            copy = Copy("cache", cache / spec.file)
            if copy.path.is_file():
                return copy.read(spec)
            arrays = _bring(spec, cache / f".{spec.name}", progress)
            write_file(copy.path, arrays, spec.arrays)
            return arrays
    except DownloadError as error:
        raise DownloadError(f"{spec.name!r} could not be fetched: {error}. {_advice(spec)}") from error
    except OSError as error:
        raise DatasetFileError(
            f"The cache {cache} cannot be written ({error.strerror or error}); set DISTREDUCE_CACHE to another folder."
        ) from error


def _advice(spec: FileSet) -> str:
    return (
        f"Try again later, or put {spec.file} (from another machine's cache) into a folder and set "
        f"{FOLDER_VARIABLE} to that folder."
    )


def _bring(spec: FileSet, folder: Path, progress: bool) -> Arrays:
    try:
        with transfer_bar(spec, progress) as report, _silent_pooch():
            files = {remote.name: _content(remote, folder, report) for remote in spec.remote}
        arrays = spec.parse(files)
        fault = spec.fault(arrays)
    except DatasetFileError as error:
        fault = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if fault:
        raise DownloadError(f"{_addresses(spec)}: what came is not what was published, {fault}")
    return arrays


def _addresses(spec: FileSet) -> str:
    return ", ".join(remote.urls[0] for remote in spec.remote)


def _content(remote: RemoteFile, folder: Path, report: Report) -> bytes:
    """The bytes of one file, from the first address that has them."""
    failures = []
    for url in remote.urls:
        try:
            return _from_address(url, remote, folder, report)
        except DownloadError as error:
            failures.append(f"{url}: {error}")
    raise DownloadError("; ".join(failures))


def _from_address(url: str, remote: RemoteFile, folder: Path, report: Report) -> bytes:
    try:
        return _retrieve(url, remote, folder, report)
    except _JoinedWronglyError:  # the parts did not fit, for instance because the file changed in between: start afresh
        return _retrieve(url, remote, folder, report)


class _JoinedWronglyError(DownloadError):
    """A file put together from several answers has another sha256."""


def _retrieve(url: str, remote: RemoteFile, folder: Path, report: Report) -> bytes:
    import pooch

    download = ResumingDownload(
        folder / f"{remote.name}.part", limit=2 * remote.size + 2**16, report=partial(report, remote.name)
    )
    try:
        path = pooch.retrieve(url, f"sha256:{remote.sha256}", remote.name, folder, downloader=download)
    except ValueError as error:  # pooch's word for a wrong hash; it has removed the file
        kind = _JoinedWronglyError if download.resumed else DownloadError
        raise kind("the file there is not the one published (its sha256 differs)") from error
    return Path(path).read_bytes()


@contextmanager
def _silent_pooch() -> Iterator[None]:
    """Without pooch's own lines about what it downloads; there is a progress bar."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
