"""Writes the report. The same results give the same bytes, whatever order they were computed in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from distreduce.exceptions import StoreError
from distreduce_paper import NAMES, load_experiment
from distreduce_paper.report.content import build_page
from distreduce_paper.report.html import render_html
from distreduce_paper.report.markdown import render_markdown
from distreduce_paper.store import Store


def write_report(store: Store, out: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Write ``report.md``, ``report.html`` and ``figures/*.svg`` to the folder `out`.

    Parameters
    ----------
    store : Store
        Finished cells; it may be empty or incomplete.
    out : Path
        Folder, created if needed. Each file is replaced atomically.
    names : sequence of str, optional
        Experiments to show, in this order; all by default.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    StoreError
        If the folder cannot be written to.
    """
    page = build_page([load_experiment(name) for name in names or NAMES], store)
    texts = {f"figures/{figure.name}.svg": figure.svg for figure in page.figures}
    # Pages last: their figures exist by then.
    texts |= {"report.md": render_markdown(page), "report.html": render_html(page)}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _replace(out / name, text)
    except OSError as error:
        raise StoreError(f"Cannot write the report to {out}: {error}. Choose a folder with --out.") from error
    return [out / name for name in texts]


def _replace(path: Path, text: str) -> None:
    """Write a file through a temporary one beside it, so that readers see the old or the new file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(text.encode())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
