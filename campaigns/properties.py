"""Try the properties of tests/trust on many more random problems, and count.

    PYTHONPATH=src:tests python campaigns/properties.py --minutes 20

Blocks of problems of one property after the other; a block is known by its property and its number, which is the seed
of the problems in it. Counts go to results/campaigns/properties.json after every block; the same command goes on from
there. A fault is kept with its problem, which a test can be given as it stands.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from threadpoolctl import threadpool_limits

from distreduce._utils.files import replacing

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "campaigns" / "properties.json"
PAGE = ROOT / "docs" / "reliability.md"
BLOCK = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="no new block after these")
    parser.add_argument("--properties", nargs="*", help="some properties only")
    parser.add_argument("--first-block", type=int, default=0, help="seed of the first block; give --out, too")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    properties = _properties()
    found = json.loads(asked.out.read_text()) if asked.out.exists() else {"properties": {}}
    states = found["properties"]
    for name in properties:
        states.setdefault(name, {"blocks": 0, "problems": 0, "faults": [], "seconds": 0.0})
    end = time.monotonic() + 60.0 * asked.minutes
    while time.monotonic() < end:
        # The one that has had least of the time, so that all get as much of it and quick ones the more problems.
        name = min(asked.properties or properties, key=lambda each: states[each]["seconds"])
        _run_block(properties[name], states[name], asked.first_block)
        _write(asked.out, found)
        print(f"{name}: {states[name]['problems']} problems, faults: {len(states[name]['faults'])}", flush=True)
    if asked.out == OUT:
        write_page(found)


def _properties() -> dict[str, Any]:
    """By name, as the tests declare them."""
    for path in sorted((ROOT / "tests" / "trust").glob("test_properties_*.py")):
        importlib.import_module(f"trust.{path.stem}")
    return importlib.import_module("trust.problems").PROPERTIES


def _run_block(prop: Any, state: dict[str, Any], first: int) -> None:
    """One more block; hypothesis only draws the problems, so that a fault does not end it. Seconds: the processor's."""
    began = time.process_time()

    def count(problem: Any) -> None:
        state["problems"] += 1
        try:
            prop.check(problem)
        except Exception as error:
            state["faults"].append(f"{problem!r}: {type(error).__name__}: {error}"[:1500])

    options = {"deadline": None, "database": None, "phases": [Phase.generate], "derandomize": False}
    run = settings(max_examples=BLOCK, suppress_health_check=list(HealthCheck), **options)(given(prop.strategy)(count))
    with threadpool_limits(1):
        seed(first + state["blocks"])(run)()
    state["blocks"] += 1
    state["seconds"] = round(state["seconds"] + time.process_time() - began, 1)


def _write(path: Path, found: dict[str, Any]) -> None:
    states = found["properties"].values()
    found["problems"] = sum(state["problems"] for state in states)
    found["faults"] = sum(len(state["faults"]) for state in states)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as hidden:
        hidden.write_text(json.dumps(found, indent=1) + "\n")


def write_page(found: dict[str, Any], page: Path = PAGE) -> None:
    """Put the table between its marks in docs/reliability.md."""
    rows = [
        f"| {name.replace('_', ' ')} | {state['problems']:,} | {len(state['faults'])} |"
        for name, state in found["properties"].items()
    ]
    head = f"**{found['problems']:,} problems, {found['faults']} faults.**"
    table = "\n".join([head, "", "| property | problems | faults |", "|---|---|---|", *rows])
    start, end = "<!-- properties -->", "<!-- /properties -->"
    page.write_text(re.sub(f"{start}.*{end}", lambda _: f"{start}\n{table}\n{end}", page.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
