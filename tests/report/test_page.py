"""The page as a file: what is in it, what it escapes, and how it is written."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import distreduce
from distreduce import SDR
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.metrics import criticisms
from distreduce.report import HeldOut, write_report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def tags(path):
    parser = Tags()
    parser.feed(path.read_text("utf-8"))
    return parser.seen


def visible(path):
    text = re.sub(r"<(script|style).*?</\1>", "", path.read_text("utf-8"), flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_equal_arguments_give_equal_bytes(classes, X, labels, tmp_path):
    pages = [write_report(tmp_path / name, classes, X, labels).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


def test_bytes_are_those_of_another_process(classes, X, labels, tmp_path):
    classes.save(tmp_path / "model")
    code = (
        "import sys, numpy as np; from distreduce import SDR; from distreduce.report import write_report;"
        "X, y = np.load(sys.argv[1] + '/X.npy'), np.load(sys.argv[1] + '/y.npy');"
        "write_report(sys.argv[1] + '/other.html', SDR.load(sys.argv[1] + '/model'), X, y)"
    )
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", labels.to_numpy(dtype=str))
    source = {"PYTHONPATH": str(Path(distreduce.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ | source)
    here = write_report(tmp_path / "here.html", SDR.load(tmp_path / "model"), X, labels.to_numpy(dtype=str))
    assert here.read_bytes() == (tmp_path / "other.html").read_bytes()


def test_hostile_text_stays_text(classes, X, labels, tmp_path):
    table = pd.DataFrame({HOSTILE: [HOSTILE] * 75 + ["b"] * 75}, index=[HOSTILE] * 150)
    clean = write_report(tmp_path / "clean.html", classes, X, labels, table=table.set_axis(["a"], axis=1), title="t")
    given = labels.where(labels != "setosa", HOSTILE).rename(HOSTILE)
    hostile = SDR(n_prototypes=12, random_state=0, max_iter=1, tol=1e3).fit(X, given)
    y = np.linspace(0, 1, 20)
    page = write_report(
        tmp_path / "hostile.html", hostile, X, given, table=table, title=HOSTILE, command=HOSTILE,
        held_out={HOSTILE: HeldOut(y, y, np.ones(20))},
    )  # fmt: skip
    assert {tag for tag, _ in tags(page)} - {tag for tag, _ in tags(clean)} <= {"table", "tr", "td", "circle", "path"}
    assert not any(name.startswith("on") for _, attributes in tags(page) for name in attributes)
    assert page.read_text("utf-8").count("</script>") == 2


def test_the_page_asks_for_nothing(classes, X, labels, tmp_path):
    page = write_report(tmp_path / "r.html", classes, X, labels)
    asked = [
        (tag, name)
        for tag, attributes in tags(page)
        for name, value in attributes.items()
        if name in ("src", "srcset", "action", "data") or (name == "href" and not value.startswith("#"))
    ]
    assert (
        asked == []
        and "default-src 'none'" in page.read_text("utf-8")
        and not re.search(r"url\((?!#)", page.read_text("utf-8"))
    )


@pytest.mark.parametrize(
    "words",
    [
        "samples 150 4 features", "classes 3 classes", "left-out accuracy", "samples each on average", "means nothing",
        "The fit converged after", "What you see holds for new samples:", "had it not been in the fit",
        "that the prototypes represent worst",
    ],
    ids=str,
)  # fmt: skip
def test_the_page_says(words, classes, X, labels, tmp_path):
    assert words in visible(write_report(tmp_path / "r.html", classes, X, labels))


def test_the_page_says_what_an_axis_shows_that_the_target_does_not_need(classes, unsupervised, X, labels, tmp_path):
    """It said that directions mean nothing, also where they show the features."""
    pages = [visible(write_report(tmp_path / "r.html", model, X, labels)) for model in (classes, unsupervised)]
    spare = "an axis that the target does not need shows what most sets the rows apart in the other columns"
    assert [spare in page for page in pages] == ["directions of the map mean nothing" not in page for page in pages]
    assert spare in pages[0] and spare not in pages[1]


def test_the_heads_of_the_worst_samples_name_their_units(classes, X, labels, tmp_path):
    """ "1 × is typical" did not say of what, nor "surprise" what surprises."""
    text = visible(write_report(tmp_path / "r.html", classes, X, labels))
    assert "distance from it, 1 × is a typical row’s surprise of its target, 0 is none" in text


def test_only_a_map_that_has_seen_the_targets_can_be_switched(classes, unsupervised, X, labels, tmp_path):
    pages = [tags(write_report(tmp_path / "r.html", model, X, labels)) for model in (classes, unsupervised)]
    assert [any(each.get("id") == "fitted-places" for _, each in page) for page in pages] == [True, False]


@pytest.mark.parametrize("missing", [["neighbor_scores_"], ["embedding_left_out_", "prototype_evidence_"]])
def test_a_model_of_an_older_file_has_a_page_of_its_fit(classes, X, labels, tmp_path, missing):
    older = copy.deepcopy(classes)
    for name in missing:
        delattr(older, name)
    text = visible(write_report(tmp_path / "r.html", older, X, labels))
    assert ("left-out accuracy" in text, "only held-out predictions do" in text) == (len(missing) == 2,) * 2


def test_the_score_of_left_out_samples_comes_first(classes, X, labels, tmp_path):
    text = visible(write_report(tmp_path / "r.html", classes, X, labels, title="Iris"))
    score = f"samples left out of the fit with accuracy {classes.neighbor_scores_['left_out']:.2f}"
    assert 0 < text.index(score) < text.index("4 features")


def test_the_held_out_score_comes_before_the_picture(numbers, X, lengths, tmp_path):
    given = {
        "GP": HeldOut(lengths, lengths + 0.1, np.ones(150)),
        "no model": HeldOut(lengths, 0 * lengths, np.ones(150)),
    }
    page = write_report(tmp_path / "r.html", numbers, X, lengths, held_out=given, experts={"forest": 0.7, "line": 0.3})
    text = visible(page)
    order = [
        "The features say a lot about length",
        "neighbours on the map",
        "task numbers",
        "forest 70%",
        "For experts",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places) and "CKA" not in text[: places[-1]]


def test_the_ten_worst_samples_are_listed(classes, X, labels, tmp_path):
    page = write_report(tmp_path / "r.html", classes, X, labels, row_numbers=100 + np.arange(150))
    listed = [int(row) for row in re.findall(r'aria-label="Show row (\d+) on the map"', page.read_text("utf-8"))]
    assert listed == [100 + row for row in criticisms(classes, labels).index]


def test_a_fit_that_did_not_converge_is_reported(X, labels, tmp_path):
    with pytest.warns(UserWarning, match="stopped after max_iter"):
        model = SDR(n_prototypes=12, max_iter=1, tol=0.0, random_state=0).fit(X, labels)
    assert "before it had converged" in visible(write_report(tmp_path / "r.html", model, X, labels))


def test_the_command_is_shown(classes, X, labels, tmp_path):
    page = write_report(tmp_path / "r.html", classes, X, labels, command="distreduce fit 'a b.csv' --target species")
    assert "distreduce fit &#39;a b.csv&#39; --target species</pre>" in page.read_text("utf-8")


def test_without_a_command_the_call_is_shown(classes, X, labels, tmp_path):
    assert "model = SDR(n_prototypes=12, random_state=0).fit(X, y)" in visible(
        write_report(tmp_path / "r.html", classes, X, labels)
    )


def test_a_row_a_prototype_for_those_who_cannot_see_the_map(classes, X, labels, tmp_path):
    page = write_report(tmp_path / "r.html", classes, X, labels)
    buttons = [attributes for tag, attributes in tags(page) if attributes.get("class") == "opens"]
    assert len(buttons) == np.count_nonzero(classes.prototype_weights_)


def test_every_sample_is_drawn_at_its_place(classes, X, labels, tmp_path, read_page, unpack):
    node = read_page(write_report(tmp_path / "r.html", classes, X, labels))
    x0, x1, y0, y1 = node["box"]
    for name, expected in (("places", classes.embedding_left_out_), ("fittedPlaces", classes.embedding_)):
        steps = np.c_[unpack(node[name]["x"]), unpack(node[name]["y"])] / 65534
        places = np.empty((150, 2))
        places[unpack(node["rows"])] = np.array([x0, y0]) + steps * np.array([x1 - x0, y1 - y0])
        np.testing.assert_allclose(places, expected, atol=1e-4 * max(x1 - x0, y1 - y0))


def test_a_sample_that_is_its_own_prototype_has_its_mark_where_it_lies(X, labels, tmp_path, read_page, unpack):
    model = SDR(random_state=0, max_iter=1, tol=1e3).fit(X[::2], labels[::2])
    node = read_page(write_report(tmp_path / "r.html", model, X[::2], labels[::2]))
    place = {int(row): k for k, row in enumerate(unpack(node["rows"]))}
    marks = [place[model.prototype_medoids_[k]] for k in node["prototypes"]["number"]]
    np.testing.assert_array_equal(unpack(node["places"]["x"])[marks], unpack(node["places"]["px"]))


def test_samples_go_by_the_numbers_that_are_given(classes, X, labels, tmp_path, read_page, unpack):
    plain, page = (
        write_report(tmp_path / f"{first}.html", classes, X, labels, row_numbers=first + np.arange(150))
        for first in (0, 70_000)
    )
    before, after = read_page(plain), read_page(page)
    assert (unpack(after["rows"]) == unpack(before["rows"]) + 70_000).all()
    assert after["details"]["rows"] == [row + 70_000 for row in before["details"]["rows"]]
    assert f"<td>{classes.prototype_medoids_[0] + 70_000}</td></tr>" in page.read_text("utf-8")


def test_a_weighted_page_shows_weighted_means(X, lengths, tmp_path, read_page):
    heavy = np.where(lengths > 4, 20.0, 1.0)
    model = SDR(n_prototypes=5, task="regression", random_state=0).fit(X, lengths, sample_weight=heavy)
    node = read_page(write_report(tmp_path / "r.html", model, X, lengths, sample_weight=heavy))
    used = node["prototypes"]["number"]
    np.testing.assert_allclose(node["distributions"][0]["believed"]["mean"], model.prototype_targets_[used, 0])
    T = heavy[:, None] * model.coupling_.toarray()[:, used]
    np.testing.assert_allclose(node["colourings"][1]["prototypes"], T.T @ X[:, 0] / T.sum(axis=0))


@pytest.mark.parametrize("kind", ["frame", "array", "sparse", "none"])
def test_without_a_table_the_features_are_shown(kind, X, labels, tmp_path, read_page):
    given = {"frame": pd.DataFrame(X, columns=list("abcd")), "sparse": sparse.csr_array(X)}.get(kind, X)
    model = SDR(n_prototypes=12, random_state=0, max_iter=1, tol=1e3).fit(given, labels)
    node = read_page(write_report(tmp_path / "r.html", model, given, None if kind == "none" else labels))
    names = list("abcd") if kind == "frame" else ["x0", "x1", "x2", "x3"]
    assert (node["details"]["columns"], [each["name"] for each in node["colourings"][1:]]) == (names, names)


def test_distances_are_not_shown_as_features(X, labels, tmp_path, read_page):
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = SDR.paper(n_prototypes=12, metric="precomputed", random_state=0, max_iter=1, tol=1e3).fit(D, labels)
    assert "columns" not in read_page(write_report(tmp_path / "r.html", model, D, labels))["details"]


def test_targets_that_are_all_unknown_count_as_none(unsupervised, X, tmp_path, read_page):
    assert read_page(write_report(tmp_path / "r.html", unsupervised, X, [None] * 150))["distributions"] == []


def test_one_dimension_is_drawn_against_the_target(X, lengths, tmp_path, read_page):
    model = SDR(1, n_prototypes=12, task="regression", random_state=0).fit(X, lengths)
    assert read_page(write_report(tmp_path / "r.html", model, X, lengths))["axes"] == ["sdr0", "length"]


def test_three_dimensions_are_reported(X, labels, tmp_path):
    model = SDR(3, n_prototypes=12, random_state=0).fit(X, labels)
    assert "3 dimensions; the map shows its projection" in visible(write_report(tmp_path / "r.html", model, X, labels))


def test_pages_stay_small(classes, X, labels, tmp_path):
    # 109 kB are scripts and styles. Numbers that can be saved again as they were take four bytes each.
    assert write_report(tmp_path / "r.html", classes, X, labels).stat().st_size < 170_000


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"X": np.zeros((3, 4))}, "150 samples"),
        ({"y": [0, 1]}, "one row for each"),
        ({"table": pd.DataFrame({"a": [1]})}, "got 1 rows"),
        ({"table": [1] * 150}, "got list"),
        ({"sample_weight": -np.ones(150)}, "must not be negative"),
        ({"row_numbers": np.arange(3)}, "for each of the 150 samples"),
        ({"row_numbers": -np.arange(150)}, "from 0"),
        ({"image_shape": (3, 3)}, "9 pixels, but X has 4"),
    ],
    ids=["X", "y", "short table", "list", "weights", "few row numbers", "negative row numbers", "image"],
)
def test_what_cannot_be_used_is_refused(wrong, words, classes, X, labels, tmp_path):
    with pytest.raises(InvalidInputError, match=words):
        write_report(tmp_path / "r.html", classes, **({"X": X, "y": labels} | wrong))


def test_a_model_that_is_none_is_refused(X, tmp_path):
    with pytest.raises(InvalidTypeError, match="fitted SDR or DistR"):
        write_report(tmp_path / "r.html", object(), X)


def test_a_model_that_is_not_fitted_is_refused(X, tmp_path):
    with pytest.raises(NotFittedError):
        write_report(tmp_path / "r.html", SDR(), X)


@pytest.mark.parametrize("path", [".", "no/such/folder/r.html"])
def test_a_place_that_cannot_be_written_is_refused(path, classes, X, tmp_path):
    with pytest.raises(InvalidInputError, match="make the folder first"):
        write_report(tmp_path / path, classes, X)


def test_a_failure_leaves_the_old_page_and_nothing_else(classes, X, labels, tmp_path, monkeypatch):
    write_report(tmp_path / "r.html", classes, X, labels)
    before = (tmp_path / "r.html").read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(tmp_path / "r.html", classes, X, labels, title="new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("r.html", before)]


@pytest.mark.parametrize("size", [1e155, 1e300])
def test_targets_whose_squares_overflow_have_a_page(X, lengths, tmp_path, read_page, size):
    y = size * lengths
    model = SDR(n_prototypes=12, task="regression", random_state=0).fit(X, y)
    own = HeldOut(y, 0.9 * y, 0.1 * y, 0.8 * y, 1.2 * y, np.full(150, 0.5), scale=size)
    page = write_report(
        tmp_path / "r.html", model, X, y, held_out={"GP": own, "no model": HeldOut(y, 0 * y, y, scale=size)}
    )
    found = read_page(page)["distributions"][0]["believed"]
    used = model.prototype_weights_ > 0
    np.testing.assert_allclose(sorted(found["mean"]), sorted(model.prototype_targets_[used, 0]))
    members = [lengths[model.labels_ == k].std(ddof=0) for k in np.flatnonzero(used)]
    np.testing.assert_allclose(sorted(np.array(found["spread"]) / size), sorted(members), rtol=1e-6, atol=1e-9)
