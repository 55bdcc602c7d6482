"""The report of the reproduction: the same page as Markdown with its figures beside it, and as one HTML file.

Both come byte for byte the same from the same records, whatever order the records were made in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from distreduce._utils.atomic import replacing
from distreduce.exceptions import StoreError
from distreduce_paper import NAMES, experiment
from distreduce_paper.report.content import gathered
from distreduce_paper.report.html import as_html
from distreduce_paper.report.markdown import as_markdown
from distreduce_paper.store import Store

__all__ = ["write_report"]


def write_report(store: Store, out: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Write ``report.md``, ``report.html`` and ``figures/*.svg`` to the folder `out`, and say which files these are.

    Parameters
    ----------
    store : Store
        Finished cells; may be empty or hold only a part.
    out : Path
        Made if it is not there. Files are replaced one by one, each wholly or not at all.
    names : sequence of str
        Experiments to show, in this order; all by default.
    """
    page = gathered([experiment(name) for name in names or NAMES], store)
    texts = {f"figures/{figure.name}.svg": figure.svg for figure in page.figures}
    texts |= {"report.md": as_markdown(page), "report.html": as_html(page)}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with replacing(out / name) as path:
                path.write_bytes(text.encode())
    except OSError as error:
        raise StoreError(f"The report could not be written to {out}: {error}. Give a folder with --out.") from error
    return [out / name for name in texts]
