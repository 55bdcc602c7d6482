"""Write docs/licences.md: the licences of all dependencies of distreduce and its extras, as installed here.

    PYTHONPATH=src python campaigns/licences.py

Licences are taken from the metadata of the packages and from nowhere else.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
HEAD = """# Licences

distreduce is BSD 3-Clause. This page lists its dependencies: every package that `pyproject.toml` names, and every
package that those require in turn, with the licence that each states in its own metadata. `campaigns/licences.py`
writes it from the packages installed where it runs (Linux, CPU build of PyTorch). It is not legal advice. None of
these packages is part of distreduce's own files: they are installed beside it. docutils, which only builds this
site, states several licences; its GPL part covers a few files for an editor.

"""
# Words that identify a family of licences; the first match counts. Weak copyleft covers its own files only.
FAMILIES = (
    ("strong copyleft", r"\bA?GPL|GNU (Affero )?General Public"),
    ("weak copyleft", r"LGPL|Lesser General|MPL|Mozilla"),
    ("permissive", r"BSD|MIT|Apache|ISC|PSF|Python Software|HPND|Unlicense|Zlib|CC0|0BSD|MIT-CMU|public domain"),
)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    named = {group: [Requirement(text) for text in texts] for group, texts in groups.items()}
    PAGE.write_text(HEAD + _summary(named) + "".join(_section(group, found) for group, found in named.items()))


def _section(group: str, named: list[Requirement]) -> str:
    title = "Core dependencies" if group == "core" else f"The extra `[{group}]`"
    direct = {canonicalize_name(one.name) for one in named} - {"distreduce"}
    rows = [_row(name) for name in sorted(direct)]
    others = sorted(_closure(named) - direct - {"distreduce"})
    rest = [f"{name} ({_licence(name)})" for name in others]
    table = "| package | version | licence | |\n|---|---|---|---|\n" + "\n".join(rows)
    return f"## {title}\n{table}\n\nThese require, in turn: {', '.join(rest) or 'nothing else'}.\n\n"


def _summary(named: dict[str, list[Requirement]]) -> str:
    """How many packages of each family there are, and which are not permissive."""
    lines = []
    users = [group for group in named if group not in ("docs", "dev")]
    for title, groups in {"core": ["core"], "core and extras": users, "with docs and dev": list(named)}.items():
        names = set().union(*(_closure(named[group]) for group in groups)) - {"distreduce"}
        by_family: dict[str, list[str]] = {}
        for name in sorted(names):
            by_family.setdefault(_family(_licence(name)), []).append(name)
        counts = ", ".join(f"{len(found)} {family}" for family, found in sorted(by_family.items()))
        strange = [
            f"{name} ({family})" for family, found in by_family.items() if family != "permissive" for name in found
        ]
        lines.append(f"- **{title}**: {len(names)} packages: {counts}. Not permissive: {', '.join(strange) or 'none'}.")
    return "## In short\n" + "\n".join(lines) + "\n\n"


def _closure(named: list[Requirement]) -> set[str]:
    """Canonical names of these packages and of all that they require on this machine."""
    found: set[str] = set()
    todo: list[tuple[Requirement, str]] = [(one, "") for one in named]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        one, extra = todo.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        key = (name, frozenset(one.extras))
        package = _installed(name)
        if key in seen or package is None:
            continue
        seen.add(key)
        found.add(name)
        if name != "distreduce":  # its extras have sections of their own
            todo += [(Requirement(text), inner) for text in package.requires or () for inner in ("", *one.extras)]
    return found


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _row(name: str) -> str:
    package = _installed(name)
    licence = _licence(name)
    return (
        f"| {name} | {'not installed here' if package is None else package.version} | {licence} | {_family(licence)} |"
    )


def _licence(name: str) -> str:
    """The expression of the metadata, else its classifiers, else the first line of its free text."""
    package = _installed(name)
    if package is None:
        return "not installed here"
    metadata: Any = package.metadata
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [
        line.split(" :: ")[-1] for line in metadata.get_all("Classifier") or () if line.startswith("License")
    ]
    stated = [line for line in classifiers if line != "OSI Approved"]
    text = (metadata.get("License") or "").strip().splitlines()
    return "; ".join(stated) or (text[0][:60] if text else "not stated")


def _family(licence: str) -> str:
    return next((family for family, words in FAMILIES if re.search(words, licence)), "unknown")


if __name__ == "__main__":
    main()
