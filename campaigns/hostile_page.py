"""The table of docs/reliability.md that campaigns/hostile_files.py fills in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"


def table(found: dict[str, Any]) -> str:
    """One row per reader: inputs, accepted, rejected, faults."""
    head = f"**{found['inputs']:,} inputs, {found['faults']} faults.**\n\n"
    titles = ["| reader | inputs | accepted | rejected | faults |", "|---|---|---|---|---|"]
    rows = [*titles, *(_row(name, state) for name, state in found["readers"].items())]
    return head + "\n".join(rows)


def _row(name: str, state: dict[str, Any]) -> str:
    rejected = [f"{kind} {count:,}" for kind, count in state["outcomes"].items() if kind != "accepted"]
    accepted = state["outcomes"].get("accepted", 0)
    return f"| {name} | {state['inputs']:,} | {accepted:,} | {', '.join(rejected)} | {len(state['faults'])} |"


def write(found: dict[str, Any], page: Path = PAGE) -> None:
    """Put the table between its marks."""
    start, end = "<!-- hostile files -->", "<!-- /hostile files -->"
    new = f"{start}\n{table(found)}\n{end}"
    page.write_text(re.sub(f"{start}.*{end}", lambda _: new, page.read_text(), flags=re.DOTALL))
