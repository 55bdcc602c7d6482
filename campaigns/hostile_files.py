"""Give every reader of files many spoilt ones, and count what it said.

    PYTHONPATH=src:tests python campaigns/hostile_files.py

An input is known by its reader and its seed. Counts go to results/campaigns/hostile_files.json after every block of
seeds; the same command goes on where it was stopped, and with larger --inputs beyond. A block runs in a process of its
own that may take so much memory and so much time an input: a crash, a flood and a hang are found as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hostile_page import write as write_page

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "campaigns" / "hostile_files.json"
BLOCK = 4000
MEMORY = 3 * 2**30  # address space of a process, of which Python and its libraries take half before they read anything
SECONDS = 20  # of the processor, an input: a busy machine is no fault of a reader
# Inputs by reader: most for those that are quick, few for whole commands.
INPUTS = {
    "model": 12_000, "checkpoint": 6_000, "store": 30_000, "recipe": 30_000, "map": 12_000, "predictor": 2_000,
    "npz": 10_000, "new rows": 3_000, "parquet": 1_200, "csv": 900, "tsv": 700, "txt": 700, "gz": 900, "xlsx": 900,
}  # fmt: skip
COMMAND_INPUTS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=float, default=1.0, help="multiple of the usual number of inputs")
    parser.add_argument("--readers", nargs="*", help="some readers only")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first input; give --out, too")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--block", nargs=3, metavar=("READER", "FIRST", "END"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.block:
        print(json.dumps(run_block(asked.block[0], int(asked.block[1]), int(asked.block[2]))))
        return
    from hostile.readers import READERS

    found = json.loads(asked.out.read_text()) if asked.out.exists() else {"readers": {}}
    for name in asked.readers or READERS:
        end = round(asked.inputs * INPUTS.get(name, COMMAND_INPUTS))
        state = found["readers"].setdefault(name, {"inputs": 0, "outcomes": {}, "faults": [], "seconds": 0.0})
        while state["inputs"] < end:
            first = asked.first_seed + state["inputs"]
            _add(state, _block(name, first, min(first + BLOCK, asked.first_seed + end)))
            _write(asked.out, found)
            print(f"{name}: {state['inputs']} inputs, {state['outcomes']}, faults: {len(state['faults'])}", flush=True)
    if asked.out == OUT:
        write_page(found)


def _block(name: str, first: int, end: int) -> dict[str, Any]:
    """A block in its own process; one that dies is halved until the seed is known."""
    began = time.monotonic()
    command = [sys.executable, __file__, "--block", name, str(first), str(end)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return {**json.loads(done.stdout.splitlines()[-1]), "seconds": time.monotonic() - began}
    if end - first == 1:
        fault = f"seed {first}: the process ended with {done.returncode}: {done.stderr[-300:]}"
        return {"inputs": 1, "outcomes": {}, "faults": [fault], "seconds": time.monotonic() - began}
    middle = (first + end) // 2
    state: dict[str, Any] = {"inputs": 0, "outcomes": {}, "faults": [], "seconds": 0.0}
    for part in (_block(name, first, middle), _block(name, middle, end)):
        _add(state, part)
    return state


def _add(state: dict[str, Any], part: dict[str, Any]) -> None:
    state["inputs"] += part["inputs"]
    state["seconds"] = round(state["seconds"] + part["seconds"], 1)
    state["outcomes"] = dict(sorted((Counter(state["outcomes"]) + Counter(part["outcomes"])).items()))
    state["faults"] += part["faults"]


def _write(path: Path, found: dict[str, Any]) -> None:
    from distreduce._utils.files import replacing

    states = found["readers"].values()
    found["inputs"] = sum(state["inputs"] for state in states)
    found["faults"] = sum(len(state["faults"]) for state in states)
    found["limits"] = {"bytes_of_address_space": MEMORY, "cpu_seconds_an_input": SECONDS}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as hidden:
        hidden.write_text(json.dumps(found, indent=1) + "\n")


def run_block(name: str, first: int, end: int) -> dict[str, Any]:
    """The seeds of a block, in this process."""
    from hostile.readers import READERS
    from hostile.trial import HostileFileError, outcome, warm_up

    reader, outcomes, faults = READERS[name], Counter[str](), []
    signal.signal(signal.SIGPROF, _too_long)
    with tempfile.TemporaryDirectory() as place:
        warm_up(reader, Path(place))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for seed in range(first, end):
            raw = reader.input(np.random.default_rng(seed))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                outcomes[outcome(reader, raw, Path(place))] += 1
            except (HostileFileError, TooLongError) as error:
                faults.append(f"seed {seed}: {error}"[:500])
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    return {"inputs": end - first, "outcomes": dict(outcomes), "faults": faults}


class TooLongError(BaseException):
    """Not an Exception: no reader may take it for damage."""


def _too_long(*_: object) -> None:
    raise TooLongError(f"more than {SECONDS} s")


if __name__ == "__main__":
    main()
