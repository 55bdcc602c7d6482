"""A fitted model in a notebook: scikit-learn's own display with the map beside it, and its page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn import config_context
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distreduce import SDR, DistR
from distreduce.plotting import embedding


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(X):
    labels = np.where(X[:, 0] > 0, "<b>$yes$</b>", "no & no")
    return SDR(n_prototypes=8, random_state=0, max_iter=2, tol=1.0).fit(X, labels)


def find_maps(html):
    return re.findall(r"<svg [^>]*viewBox=.*?</svg>", html[html.find('aria-label="Map of the fit"') :], re.DOTALL)


def test_a_fitted_model_shows_its_map_beside_its_parameters(fitted):
    html = fitted._repr_html_()
    assert find_maps(html) == find_maps(fitted._repr_mimebundle_()["text/html"])
    assert 'class="sk-top-container' in html and "n_prototypes" in html
    (drawing,) = find_maps(html)
    ElementTree.fromstring(drawing)  # well formed, whatever classes are called
    assert "no &amp; no" in drawing and "&lt;b&gt;$yes$&lt;/b&gt;" in drawing and "<script" not in drawing


def test_before_a_fit_and_as_text_nothing_is_added(fitted):
    assert "Map of the fit" not in SDR()._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert "text/html" not in fitted._repr_mimebundle_()


def test_a_graph_as_a_parameter_is_shown(X):
    """scikit-learn compares a parameter with its default, which a sparse matrix cannot be."""
    graph = kneighbors_graph(X, 5)
    for model in (SDR(affinity=graph), DistR(n_prototypes=6, affinity=graph, random_state=0, max_iter=1).fit(X)):
        assert "300 stored elements" in model._repr_html_()
        assert model.affinity is graph


def test_unsupervised_models_lines_and_pipelines_are_shown_too(X):
    for model in (DistR(n_prototypes=6, random_state=0, max_iter=1), SDR(1, random_state=0, max_iter=1)):
        model.fit(X, X[:, 0])
        assert len(find_maps(model._repr_html_())) == 1
    pipeline = make_pipeline(StandardScaler(), SDR(n_prototypes=8, random_state=0)).fit(X, X[:, 0])
    assert "StandardScaler" in pipeline._repr_html_()


def test_many_samples_are_one_image(monkeypatch, fitted):
    assert "data:image/png;base64" not in fitted._repr_html_()
    monkeypatch.setattr(embedding, "MAX_DOTS", 10)
    assert "data:image/png;base64" in fitted._repr_html_()


def test_report_writes_the_page_and_returns_its_path(fitted, X, tmp_path):
    path = fitted.report(tmp_path / "page.html", X, title="Mine")
    assert path == tmp_path / "page.html" and "<h1>Mine</h1>" in path.read_text("utf-8")
