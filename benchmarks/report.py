"""Rows of the table, and the table on screen, in JSON and in Markdown."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HEADINGS = ("Part", "Case", "Method", "Seconds", "× ours", "Measure", "Value", "Note")
PACKAGES = ("distreduce", "numpy", "scipy", "numba", "torch", "POT", "scikit-learn")


@dataclass(frozen=True)
class Row:
    """One measurement.

    `times_ours` is its seconds divided by those of ours in the same case: above one, ours is that many times faster.
    `value` is the number that `measure` names, with `error` its standard error where it has one.
    """

    part: str
    case: str
    method: str
    seconds: float
    times_ours: float | None = None
    measure: str = ""
    value: float | None = None
    error: float | None = None
    note: str = ""

    def cells(self) -> list[str]:
        ratio = "" if self.times_ours is None else f"{self.times_ours:.3g}"
        value = "" if self.value is None else f"{self.value:.6g}"
        # An exponent with its standard error: more digits would pretend precision.
        if self.error is not None:
            value = f"{self.value:.2f} ± {self.error:.2f}"
        return [self.part, self.case, self.method, f"{self.seconds:.3g}", ratio, self.measure, value, self.note]


def machine(n_threads: int) -> dict[str, Any]:
    """Describe processor, cores, threads and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": f"{n_threads} for ours, at most {n_threads} for torch and BLAS in the yardstick",
        "load_average_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    if package == "distreduce":  # the one in use, which need not be the one installed
        import distreduce

        return distreduce.__version__
    return version(package)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def show(rows: list[Row], console: Console) -> None:
    """Print the table, with a rule between the parts."""
    table = Table(title="distreduce against the straightforward pipeline", show_lines=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("Seconds", "× ours", "Value") else "left")
    # A row ends a section if the next one belongs to another part.
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(*row.cells(), end_section=following is None or following.part != row.part)
    console.print(table)


def save(rows: list[Row], about: dict[str, Any], folder: Path) -> None:
    """Write core.json and core.md into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {**about, "rows": [asdict(row) for row in rows]}
    (folder / "core.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )
    (folder / "core.md").write_text(markdown(rows, about), encoding="utf-8")


def markdown(rows: list[Row], about: dict[str, Any]) -> str:
    """Format the table as Markdown, below a description of the machine."""
    host = about["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in host["versions"].items())
    lines = [
        "# distreduce against the straightforward pipeline",
        "",
        f"{host['processor']}, {host['cores']} cores ({host['system']}); threads: {host['threads']}; load average at "
        f"the start {host['load_average_at_start']}. Python {host['python']}, {versions}. {about['remarks']}",
        "",
        "|" + "|".join(HEADINGS) + "|",
        "|---|---|---|--:|--:|---|--:|---|",
    ]
    lines += ["|" + "|".join(cell.replace("|", "\\|") for cell in row.cells()) + "|" for row in rows]
    return "\n".join(lines) + "\n"
