"""Sphinx settings. ``make docs`` builds the site into docs/_build/html, without network access."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from distreduce import __version__

project = "distreduce"
author = "the distreduce developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery", "examples"]
templates_path = ["_templates"]
highlight_language = "none"  # theory.md has formulas in indented blocks; blocks of Python are marked as such

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Signatures stay short: the numpydoc sections have the types.
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = "distreduce"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "_gallery",  # written by the build, as api/generated is
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("distreduce",),
    "backreferences_dir": "api/generated/examples",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": ("_repr_html_",),
    "junit": "gallery.xml",
}


class LinksOutOfTheSite(SphinxTransform):
    """Make links out of docs/ work: a Markdown file becomes a download, as MyST does for any other file.

    A folder, or results that have not been made yet, cannot be reached from here, and only the text remains.
    """

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for link in [found for found in self.document.findall(addnodes.pending_xref) if found["reftype"] == "myst"]:
            target = link["reftarget"]
            if link["refdomain"] == "doc" and Path(target).is_absolute():
                path = os.path.relpath(f"{target}.md", folder)
                link.replace_self(
                    addnodes.download_reference("", "", *link.children, reftarget=path, refdoc=self.env.docname)
                )
            elif (folder / target).is_dir() or ("../results/" in target and not (folder / target).exists()):
                link.replace_self(link.children)


def show_decisions(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the decisions to the menu; on GitHub the list is enough."""
    if docname == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def leave_out_inherited(app: Sphinx, what: str, name: str, found: object, skip: bool, options: Any) -> bool | None:
    """Skip members of scikit-learn, GPyTorch and Python, which are documented there."""
    home = getattr(found, "fget", found)
    return True if not str(getattr(home, "__module__", "")).startswith("distreduce") else None


def write_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    formula = tex2mathml(node.astext()).replace("<math ", '<math display="block" ', 1)
    writer.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Render formulas as MathML, which browsers draw without a script."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.add_transform(LinksOutOfTheSite)
    app.connect("source-read", show_decisions)
    app.connect("autodoc-skip-member", leave_out_inherited)
