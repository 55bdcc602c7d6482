"""The page: complete, escaped, self-contained, and the same bytes every time."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pandas as pd
import pytest

from distreduce.exceptions import InvalidInputError, StoreError
from distreduce_paper import NAMES, load_experiment
from distreduce_paper.experiment import Experiment, Selection
from distreduce_paper.report import write
from distreduce_paper.report.blocks import Table, Text
from distreduce_paper.report.comparison import comparison_tables
from distreduce_paper.report.content import build_page
from distreduce_paper.report.drawing import draw_figure
from distreduce_paper.report.summary import format_duration, summarize
from distreduce_paper.report.write import escape, group_headings, prose, render_html, render_markdown
from distreduce_paper.store import Store

METHODS = ("SDR-GP", "SDR-GP, paper's recipe", "DKL", "<b>own</b> | & co")
VOID = {"meta", "br", "link", "img", "hr", "input"}
REASON = "Twenty steps are *too few*."


def show(frame):
    tables = comparison_tables(
        frame,
        "gp_regression",
        {"mse": "mse"},
        lambda method: method.split(",")[0],
        reason=lambda method, data: REASON,
    )
    return [Text("Some `code < x` and 1 < 2."), *tables, draw_figure("curve", "A <curve>.", (3, 2), draw)]


def draw(figure):
    figure.subplots().plot([0, 1], [0, 1], label="<own> & co")


def experiment(name="one", **options):
    fields = {"title": f"Title of {name} & <more>", "paper": "Table 1", "report": show, "run": lambda cell: {}}
    grid = {"datasets": ("boston", "concrete"), "methods": METHODS, "seeds": 5}
    return Experiment(name=name, **{**fields, **grid, **options})


# Concrete: the paper's SDR-GP has 0.13 ± 0.02 and its DKL 0.21 ± 0.05; Boston: 0.14 ± 0.08 and 0.13 ± 0.07.
MSE = {"SDR-GP": 0.10, "SDR-GP, paper's recipe": 0.16, "DKL": 0.30, METHODS[3]: 1.0}


def record(cell, **outcome):
    costs = {"seconds": 30.0, "cpu_seconds": 1.0, "peak_mb": 1.0, "versions": {"numpy": "2.0"}, "machine": "A & B"}
    return {**cell.as_dict(), **costs, **(outcome or {"result": {"mse": MSE[cell.method]}})}


def filled(folder, cells):
    store = Store(folder)
    for cell in cells:
        store.add(record(cell))
    return store


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path, experiment().cells())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "load_experiment", experiment)
        write.write_report(filled(folder, experiment().cells()), folder / "out", ["one"])
    return folder / "out"


class Checked(HTMLParser):
    """Keeps the text, the attributes and the names; every tag must be closed by its own."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.attributes = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes += [(tag, name, value or "") for name, value in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def values(self, attribute):
        return [value for _, name, value in self.attributes if name == attribute]


def page_of(store, *experiments):
    return build_page(experiments or [experiment()], store)


def test_all_files_are_written_and_named(store, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "load_experiment", experiment)
    paths = write.write_report(store, tmp_path / "out", ["one"])
    found = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert (
        set(paths) == found == {tmp_path / "out" / name for name in ("report.md", "report.html", "figures/curve.svg")}
    )


def test_the_same_bytes_whatever_the_order_of_the_records(written, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "load_experiment", experiment)
    cells = experiment().cells()
    (tmp_path / "shuffled").mkdir()
    other = filled(tmp_path / "shuffled", random.Random(1).sample(cells, len(cells)))
    paths = write.write_report(other, tmp_path / "again", ["one"])
    assert all(path.read_bytes() == (written / path.relative_to(tmp_path / "again")).read_bytes() for path in paths)


def test_html_is_well_formed(written):
    assert Checked((written / "report.html").read_text("utf-8")).open == []


def test_html_asks_for_nothing(written):
    page = Checked((written / "report.html").read_text("utf-8"))
    links = [page.values(name) for name in ("src", "srcset", "data", "href", "xlink:href")]
    style = re.findall(r"url\(([^)]*)\)|(@import)", (written / "report.html").read_text("utf-8"))
    assert all(link.startswith("#") for some in links for link in some) and all(one[0][:1] == "#" for one in style)


def test_every_link_of_the_page_has_its_target(written):
    page = Checked((written / "report.html").read_text("utf-8"))
    assert {link[1:] for link in page.values("href")} <= set(page.values("id"))


def test_no_name_is_used_twice(written):
    names = Checked((written / "report.html").read_text("utf-8")).values("id")
    assert len(names) == len(set(names))


def test_no_folder_of_this_machine_is_in_the_page(written):
    assert not any(str(written.parent).encode() in path.read_bytes() for path in written.rglob("*.*"))


def test_figures_beside_the_markdown_are_well_formed(written):
    (name,) = re.findall(r"\]\((figures/[^)]*)\)", (written / "report.md").read_text("utf-8"))
    assert ElementTree.parse(written / name).getroot().tag.endswith("svg")


def test_a_methods_name_is_text_in_html(store):
    page = render_html(page_of(store))
    assert METHODS[3] in Checked(page).text and "<b>own" not in page


def test_a_methods_name_does_not_break_a_markdown_table(store):
    (line, _) = (
        line for line in render_markdown(page_of(store)).splitlines() if "own" in line and line.startswith("|")
    )
    assert line.startswith(r"| &lt;b&gt;own&lt;/b&gt; \| &amp; co | 1.00 ± 0.00 | – | – |")


def test_verdicts_are_marks_as_well_as_colours(store):
    row = re.search(r"paper&#39;s recipe</th>.*?</tr>", render_html(page_of(store)).split("Concrete")[-1], re.DOTALL)
    assert "−1.5 ▼" in Checked(f"<tr><th>{row.group()}").text


def test_summary_counts_defaults_variants_and_others(store):
    # Concrete: +1.5, −1.5 and −1.8 deviations; Boston: +0.5, −0.25 and −2.4.
    counts = summarize(page_of(store)).total.counts
    assert [dict(one) for one in counts] == [{"equal": 1, "better": 1}, {"equal": 1, "worse": 1}, {"worse": 2}]


def test_a_number_that_two_sections_show_counts_once(store):
    again = experiment("two", run=None, sources=("one",), report=lambda frame: show(frame)[:-1])
    assert sum(summarize(page_of(store, experiment(), again)).total.counts[0].values()) == 2


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_every_sdr_row_behind_the_paper_is_named_with_its_reason(store, render):
    text = render(page_of(store))
    (line,) = re.findall(r"SDR rows behind the paper(.*?)(?:</ul>|## )", text, re.DOTALL)
    said = re.sub(r"[*\s]+", " ", Checked(line.replace("</h3>", "").replace("<ul>", "")).text)
    assert "MSE on Concrete 0.160 ± 0.000 (paper 0.13 ± 0.02)" in said and "too few" in said


def test_machines_and_versions_come_from_the_records(store):
    text = Checked(render_html(page_of(store))).text
    assert "A & B: 40 cells" in text and "numpy 2.0" in text


def test_a_section_says_what_it_took(store):
    assert "Rebuilds Table 1. 40 cells, 20 min 0 s of computing." in Checked(render_html(page_of(store))).text


def test_missing_cells_are_counted_with_the_command(tmp_path):
    store = filled(tmp_path, experiment().cells()[:-3])
    assert "3 cells not computed yet: `distreduce reproduce run one`." in render_markdown(page_of(store))


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_failed_cells_are_shown_once_an_error(tmp_path, render):
    cells = experiment().cells()
    store = filled(tmp_path, cells[2:])
    for cell in cells[:2]:
        error = {"type": "NumericalError", "message": "K < 0 & so", "traceback": "a.py:1 in <module>: </pre>"}
        store.add(record(cell, error=error))
    text = render(page_of(store))
    assert text.count("K &lt; 0 &amp; so") == 1 and text.count("on boston, seed") == 2 and "&lt;/pre&gt;" in text


def test_failed_cells_are_in_order_whatever_the_order_of_the_records(tmp_path):
    cells = experiment().cells()[:3]
    for folder, some in (("there", cells), ("back", cells[::-1])):
        (tmp_path / folder).mkdir()
        for cell in some:
            error = {"type": "E", "message": f"{cell.seed % 2}", "traceback": f"line {cell.seed}"}
            Store(tmp_path / folder).add(record(cell, error=error))
    pages = [build_page([experiment()], Store(tmp_path / folder)) for folder in ("there", "back")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_a_quick_run_is_said_and_not_compared(tmp_path, render):
    page = page_of(filled(tmp_path, experiment().cells(Selection(quick=True))))
    assert "not comparable with the paper" in render(page) and not summarize(page).tallies


def test_a_full_run_has_no_such_banner(store):
    assert "not comparable" not in render_html(page_of(store))


def test_an_empty_store_gives_a_page_that_names_every_experiment(tmp_path):
    write.write_report(Store(tmp_path / "none"), tmp_path)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert all(f"## {escape(load_experiment(name).title)}" in text for name in NAMES)


def test_reading_leaves_the_store_alone(tmp_path):
    build_page([experiment()], Store(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_two_figures_of_one_name_are_refused(store):
    with pytest.raises(InvalidInputError, match="called 'curve'"):
        page_of(store, experiment(), experiment("two", run=None, sources=("one",)))


def test_a_folder_that_cannot_be_written_is_a_named_error(store, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "load_experiment", experiment)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Cannot write the report"):
        write.write_report(store, tmp_path / "file", ["one"])


def test_headings_share_what_they_have_in_common():
    frame = pd.DataFrame(columns=["Method", "MSE", "MSE, paper", "MSE, difference", "seeds, n"])
    assert group_headings(Table("", frame)) == [
        ("Method", []),
        ("MSE", ["ours", "paper", "difference"]),
        ("seeds, n", []),
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_duration(seconds, text):
    assert format_duration(seconds) == text


def test_an_empty_line_of_a_traceback_does_not_begin_markdown_again(tmp_path):
    store, cell = Store(tmp_path), experiment().cells()[0]
    store.add(record(cell, error={"type": "E", "message": "m", "traceback": "a\n\n![remote](http://a/b.png)"}))
    assert "<pre>a\n![remote](http://a/b.png)</pre>" in render_markdown(page_of(store))


def test_prose_marks_words_and_escapes_the_rest():
    assert prose("*a* **b** `<c>` <d>") == "<em>a</em> <strong>b</strong> <code>&lt;c&gt;</code> &lt;d&gt;"
