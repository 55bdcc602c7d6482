"""Kill fits with a checkpoint at random moments, start them again till they end, and compare all bits.

    PYTHONPATH=src:tests python campaigns/kills.py

Counts go to results/campaigns/kills.json after every kind of fit, and to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from trust.kills import KINDS, Tally, campaign

from distreduce._utils.files import replacing

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "campaigns" / "kills.json"
PAGE = ROOT / "docs" / "reliability.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=14, help="kills of each kind of fit, at least")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="some kinds only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    found = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for number, kind in enumerate(asked.kinds):
        with tempfile.TemporaryDirectory() as place:
            rng = np.random.default_rng([asked.seed, number])
            found[kind] = campaign(kind, asked.kills, rng, Path(place), Tally()).as_json()
        print(kind, found[kind], flush=True)
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(asked.out) as hidden:
            hidden.write_text(json.dumps(found, indent=1) + "\n")
    if asked.out == OUT:
        write_page(found)


def write_page(found: dict[str, Any], page: Path = PAGE) -> None:
    """Put the table between its marks."""
    kills, differ = (sum(state[what] for state in found.values()) for what in ("kills", "differ"))
    most = max(int(count) for state in found.values() for count in state["iterations lost"])
    rows = [
        f"**{kills} kills, {differ} fits with other bits, at most {most} finished iteration repeated.**\n",
        "| fit | fits | kills | kills by finished iterations repeated | fits with other bits |",
        "|---|---|---|---|---|",
    ]
    for kind, state in found.items():
        again = ", ".join(f"{count}: {times}" for count, times in state["iterations lost"].items())
        rows.append(f"| {kind} | {state['fits']} | {state['kills']} | {again} | {state['differ']} |")
    start, end = "<!-- kills -->", "<!-- /kills -->"
    new = "\n".join([start, *rows, end])
    page.write_text(re.sub(f"{start}.*{end}", lambda _: new, page.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
