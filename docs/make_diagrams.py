"""Draw the diagrams of CONTRIBUTING.md: ``python docs/make_diagrams.py`` writes docs/img/layers.svg and data-flow.svg.

The layers are read from the import contract in pyproject.toml, so that the picture cannot disagree with the linter.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import tomllib

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "img"
# One line per room, shown in the picture and repeated in CONTRIBUTING.md.
ROLES = {
    "distreduce_paper": "the paper's tables and figures",
    "cli": "commands",
    "persistence": "save, load",
    "interop": "NumPy, ONNX, AnnData",
    "report": "the HTML page",
    "baselines": "other methods",
    "datasets": "sets by name",
    "tables": "files → X, y",
    "plotting": "matplotlib",
    "gp": "predictions",
    "metrics": "scores",
    "estimators": "SDR and DistR: parameters and attributes",
    "solver": "the outer loop and the objective J",
    "affinity": "C",
    "coupling": "T",
    "embedding": "Z",
    "mapping": "L",
    "kernels": "K",
    "losses": "L_s, g*",
    "dependence": "D: CKA, HSIC",
    "sharding": "where rows live",
    "_utils": "threads, linear algebra, files",
    "exceptions": "errors and warnings",
}
STYLE = """<style>
  text { font-family: system-ui, sans-serif; fill: #1a1a1a; text-anchor: middle }
  .name { font-size: 14px; font-weight: 600 }
  .role { font-size: 11.5px; fill: #444 } .note { font-size: 12px; fill: #444 }
  .box { stroke: #5a6b7b; stroke-width: 1 } .line { stroke: #5a6b7b; stroke-width: 1.5; fill: none }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
  <path d="M0 0 8 4 0 8z" fill="#5a6b7b"/></marker></defs>
"""
METHOD, AROUND, BASE = "#dcebf7", "#f4ead6", "#e8e8e8"


def box(x: float, y: float, width: float, height: float, name: str, role: str, fill: str) -> str:
    """A rectangle with a name and, below it, what it is for."""
    middle = x + width / 2
    return (
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}"/>\n'
        f'<text class="name" x="{middle:g}" y="{y + height / 2 - 4:g}">{escape(name)}</text>\n'
        f'<text class="role" x="{middle:g}" y="{y + height / 2 + 13:g}">{escape(role)}</text>\n'
    )


def arrow(*points: tuple[float, float], both: bool = False) -> str:
    path = " ".join(f"{'ML'[i > 0]}{x:g} {y:g}" for i, (x, y) in enumerate(points))
    start = ' marker-start="url(#tip)"' if both else ""
    return f'<path class="line" d="{path}" marker-end="url(#tip)"{start}/>\n'


def note(x: float, y: float, text: str) -> str:
    return f'<text class="note" x="{x:g}" y="{y:g}">{escape(text)}</text>\n'


def page(width: int, height: int, title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n{STYLE}'
        f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>\n{body}</svg>\n'
    )


def layers() -> str:
    """One row of boxes per layer, the highest on top."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    rows = [[room.strip().removeprefix("distreduce.") for room in layer.split("|")] for layer in contract["layers"]]
    method = {"solver", "affinity", "coupling", "embedding", "mapping", "kernels", "losses", "dependence"}
    width, step, body = 860, 58, ""
    for i, rooms in enumerate(rows):
        each = (width - 40 - 10 * (len(rooms) - 1)) / len(rooms)
        for k, room in enumerate(rooms):
            fill = METHOD if room in method else BASE if room in ("_utils", "exceptions", "sharding") else AROUND
            body += box(20 + k * (each + 10), 20 + i * step, each, step - 12, room, ROLES[room], fill)
    height = 20 + len(rows) * step + 22
    body += note(width / 2, height - 14, "A room imports only from rooms below it. Blue: the method of the paper.")
    return page(width, height, "The layers of distreduce, from the paper's experiments down to exceptions", body)


def data_flow() -> str:
    """From X and y to fitted attributes, and what is built on them."""
    body = box(20, 120, 110, 60, "X, y", "sample_weight", "#ffffff")
    body += box(165, 120, 140, 60, "estimators", "check X, read y", AROUND)
    body += box(340, 120, 140, 60, "sharding", "merge and sort rows", BASE)
    body += box(525, 20, 175, 60, "affinity", "C from distances", METHOD)
    body += box(525, 120, 175, 60, "coupling, embedding", "initial T and Z", METHOD)
    body += box(525, 220, 175, 60, "mapping", "K, factorised", METHOD)
    body += arrow((130, 150), (165, 150)) + arrow((305, 150), (340, 150))
    body += "".join(arrow((480, 150), (502, 150), (502, y), (525, y)) for y in (50, 150, 250))
    # The loop, on the right.
    body += '<rect class="box" x="740" y="20" width="300" height="260" rx="8" fill="#f3f8fc"/>\n'
    body += '<text class="name" x="890" y="46">solver: the outer loop</text>\n'
    body += box(765, 66, 250, 56, "T-step", "coupling: line search, row moves", METHOD)
    body += box(765, 162, 250, 56, "Z-step", "embedding: L-BFGS on m × p numbers", METHOD)
    body += arrow((860, 122), (860, 162)) + arrow((920, 162), (920, 122))
    body += note(890, 246, "until J stops falling; a T-step that")
    body += note(890, 264, "would raise J is rejected")
    body += "".join(arrow((700, y), (740, y)) for y in (50, 150, 250))
    # Back along the bottom.
    body += arrow((890, 280), (890, 340))
    body += box(740, 340, 300, 60, "solver: result", "T, Z, history, map L, medoids", METHOD)
    body += box(440, 340, 250, 60, "estimators", "fitted attributes, checked: all finite", AROUND)
    body += box(
        20, 340, 370, 60, "gp · plotting · report · persistence · interop", "predictions, pictures, files", AROUND
    )
    body += arrow((740, 370), (690, 370)) + arrow((440, 370), (390, 370))
    body += note(530, 424, "Above 10,000 samples the same loop asks shards of rows for sums.")
    body += note(530, 442, "transform needs the map only: z(x) = Σ k(x, xᵢ) Lᵢ.")
    return page(1060, 460, "How data flow through a fit", body)


if __name__ == "__main__":
    for name, text in (("layers", layers()), ("data-flow", data_flow())):
        (FOLDER / f"{name}.svg").write_text(text, "utf-8")
