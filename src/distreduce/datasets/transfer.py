"""One file over HTTP: resumed where it broke off, tried again when that may help, and never waited for for ever."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from distreduce.exceptions import DownloadError

BLOCK = 2**16
PASSING = {408, 416, 425, 429, 500, 502, 503, 504}  # answers that another try may change


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server.

    Attributes
    ----------
    attempts : int
        Tries in all; the pause before the next doubles each time.
    silence : float
        Seconds without an answer or without a byte.
    slowest : float
        Bytes a second, on average over a try that has lasted longer than `silence`.
    """

    attempts: int = 4
    pause: float = 0.5
    silence: float = 20.0
    slowest: float = 2000.0


PATIENCE = Patience()


class _InterruptedError(Exception):
    """The transfer broke off in a way that another try may mend."""


@dataclass
class ResumingDownload:
    """A downloader for pooch that keeps what it has in the file `part`, also from a process that was killed.

    Attributes
    ----------
    limit : int
        Bytes that the file has at most.
    report : callable
        Told the number of bytes that are here.
    resumed : bool
        Whether the file was put together from several answers.
    """

    part: Path
    limit: int
    report: Callable[[int], None]
    resumed: bool = False

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        """Bring `url` to `output_file`."""
        for attempt in range(PATIENCE.attempts):
            if attempt:
                time.sleep(PATIENCE.pause * 2 ** (attempt - 1))
            try:
                self._try(url)
                os.replace(self.part, output_file)
                return
            except _InterruptedError as error:
                reason = str(error)
        raise DownloadError(f"{reason} (tried {PATIENCE.attempts} times)")

    def _try(self, url: str) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        with _ask(url, have, self.part) as response:
            start, total = self._extent(response, have)
            with self.part.open("ab") as stream:
                stream.truncate(start)
                for block in _blocks(response):
                    stream.write(block)
                    self._check(stream.tell())
                    self.report(stream.tell())
                size = stream.tell()
        if total is not None and size != total:
            raise _InterruptedError(f"the connection ended after {size} of {total} bytes")

    def _extent(self, response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
        """Where the answer starts in the file, and how long the file is if the server says it."""
        if response.status != 206:  # everything from the first byte, also from a server that knows no ranges
            length = response.headers.get("Content-Length", "")
            start, total = 0, int(length) if length.isdecimal() else None
        else:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != have:
                self.part.unlink(missing_ok=True)
                raise _InterruptedError("the server answered with another range than the one asked for")
            start, total = have, int(found[2])
        self._check(total or 0)
        self.resumed |= start > 0
        return start, total

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise DownloadError(f"the server sends {size} bytes or more where at most {self.limit} were expected")


def _ask(url: str, have: int, part: Path) -> http.client.HTTPResponse:
    headers = {"User-Agent": "distreduce", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        return urllib.request.urlopen(request, timeout=PATIENCE.silence, context=_certificates(url))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the part is as long as the file or longer: it cannot be trusted
            part.unlink(missing_ok=True)
        kind = _InterruptedError if error.code in PASSING else DownloadError
        raise kind(f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        _broken(error)


def _certificates(url: str) -> ssl.SSLContext | None:
    """The system's certificates and those of certifi, which pooch brings: some installations have only the latter."""
    if not url.startswith("https:"):
        return None
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The body as it arrives: `read1` returns what is there, so that a trickle is seen and not waited for."""
    begin, received = time.monotonic(), 0
    while True:
        try:
            block = response.read1(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            _broken(error)
        if not block:
            return
        yield block
        received += len(block)
        seconds = time.monotonic() - begin
        if seconds > PATIENCE.silence and received < PATIENCE.slowest * seconds:
            raise _InterruptedError(f"the server sent only {received} bytes in {seconds:.0f} s")


def _broken(error: Exception) -> NoReturn:
    cause = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise DownloadError(f"the server's certificate cannot be verified ({cause.verify_message})") from error
    if isinstance(cause, TimeoutError):
        raise _InterruptedError(f"the server was silent for {PATIENCE.silence:g} s") from error
    raise _InterruptedError(f"no connection ({cause})") from error
