"""Starts the process of one point of scale.py, and ends it if it takes too much memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distreduce_paper import Cell
from distreduce_paper.store import CellResult

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """What a fit may take: seconds, and gigabytes (1024³ bytes) resident."""

    seconds: float
    gigabytes: float


class PointError(Exception):
    """A point ended by an error and not by a limit; the message holds the end of its output."""


def measure_apart(cell: Cell, limits: Limits) -> CellResult:
    """Measure a cell in its own process; if the fit exceeds a limit, the result has an "error" that names it."""
    # A new process per point: peak memory and compiled code of one fit must not affect another.
    command = [sys.executable, str(Path(__file__).with_name("scale.py")), "--point", cell.key]
    command += ["--limit", str(limits.seconds)]
    # Files and not pipes, which a child could fill while nobody reads.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        try:
            heavy = _watch(child, limits.gigabytes)
        finally:
            child.kill()  # also if this program is interrupted
            child.wait()
        # The child ends itself by SIGALRM if its fit takes too long.
        if heavy or child.returncode == -signal.SIGALRM:
            reason = f"over {limits.gigabytes:g} GB" if heavy else f"over {limits.seconds / 60:.3g} min"
            return {**cell.as_dict(), "error": reason, "limits": asdict(limits)}
        if child.returncode != 0:
            err.seek(0)
            raise PointError(f"{cell}: ended with {child.returncode}\n{err.read()[-2000:]}")
        out.seek(0)
        # Libraries may print before it: the result is the last line.
        result: dict[str, Any] = json.loads(out.read().splitlines()[-1])
        return result


def is_final(result: CellResult, limits: Limits) -> bool:
    """Return whether a stored result stands: it is complete, or no limit is wider now than it was."""
    # With a wider limit, a fit that was stopped may end.
    then = result.get("limits", {})
    return "error" not in result or all(then[name] >= limit for name, limit in asdict(limits).items())


def _watch(child: subprocess.Popen[bytes], gigabytes: float) -> bool:
    """Wait until the child ends or exceeds this resident memory; return whether it did."""
    while child.poll() is None:
        if _resident_bytes(child.pid) > gigabytes * 1024**3:
            return True
        time.sleep(POLL_SECONDS)
    return False


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # the child has just ended
        return 0
