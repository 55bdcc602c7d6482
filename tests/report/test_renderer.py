"""The renderer of pages: escaping, the content security policy, styles and scripts."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from distreduce.report.renderer import inline_svg, render_page, unbroken


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a template, a style and a script of its own."""
    folder = tmp_path / "own_page"
    folder.mkdir()
    (folder / "__init__.py").touch()
    parts = '{% import "parts.html.j2" as parts %}{{ parts.table(["", "h"], [["r", text]]) }}'
    (folder / "t.html.j2").write_text(
        '{% extends "base.html.j2" %}{% block body %}{{ text }}' + parts + "{% endblock %}"
    )
    (folder / "own.css").write_text("main { color: red }")
    (folder / "own.js").write_text("const answer = 42;")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_page"
    sys.modules.pop("own_page", None)


def policy(page):
    return re.search('Content-Security-Policy" content="([^"]*)"', page).group(1)


def test_text_is_escaped_in_the_page_and_in_its_parts(package):
    page = render_page("t.html.j2", {"title": "<t>", "text": "<b>"}, package=package)
    assert "<title>&lt;t&gt;</title>" in page and page.count("&lt;b&gt;") == 2 and "<b>" not in page


def test_without_scripts_none_may_run(package):
    page = render_page("t.html.j2", {"title": "", "text": ""}, package=package)
    assert policy(page).startswith("default-src 'none';") and "script-src" not in policy(page) and "<script" not in page


def test_only_the_pages_own_script_may_run(package):
    page = render_page("t.html.j2", {"title": "", "text": ""}, package=package, scripts=["own.js"])
    script = re.search("<script>(.*?)</script>", page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert script == "const answer = 42;" and f"script-src 'sha256-{digest}'" in policy(page)


def test_own_styles_follow_those_of_every_page(package):
    page = render_page("t.html.j2", {"title": "", "text": ""}, package=package, styles=["own.css"])
    assert page.index("--card") < page.index("main { color: red }") < page.index("</style>")


def test_a_missing_variable_is_an_error(package):
    with pytest.raises(UndefinedError):
        render_page("t.html.j2", {"title": ""}, package=package)


def test_options_of_the_command_line_stay_in_one_line():
    option = '<span class="option">--no-header</span>'
    assert unbroken("<b> a--b, --no-header or -- x") == f"&lt;b&gt; a--b, {option} or -- x"


def test_a_drawing_has_a_label():
    assert inline_svg('<?xml?><svg width="1"></svg>', "<x>").startswith(
        '<svg class="chart" role="img" aria-label="&lt;x&gt;" w'
    )


def test_package_resources_are_installed():
    folder = Path(render_page.__code__.co_filename).parent
    assert all((folder / name).is_file() for name in ("base.html.j2", "base.css", "parts.html.j2", "map.js"))
