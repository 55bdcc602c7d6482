"""Frames in and out, scikit-learn's callbacks, and the blocks of docs/interoperability.md."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, baselines
from distreduce.exceptions import InvalidInputError
from distreduce_paper.baselines import ClusterThenReduce, ReduceThenCluster

X, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[CODES]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
ROWS = [f"flower {i}" for i in range(len(X))]
QUICK = {"n_prototypes": 8, "tol": 1e-2, "random_state": 0}

# All transformers except supervised UMAP, which takes half a minute to compile; scikit-learn's checks cover its frames
# (tests/baselines).
TRANSFORMERS = [
    SDR(**QUICK),
    DistR(3, **QUICK),
    SDRGPRegressor(n_prototypes=8, residual=False, gp_steps=3, random_state=0),
    SDRGPClassifier(2, n_prototypes=8, experts=[], gp_steps=3, random_state=0),
    baselines.NCA(random_state=0),
    baselines.KernelSupervisedPCA(),
    ClusterThenReduce(random_state=0),
    ReduceThenCluster(random_state=0),
]


@pytest.fixture(scope="module", params=TRANSFORMERS, ids=lambda model: type(model).__name__)
def case(request):
    """An estimator, and the positions it computes without frames."""
    return request.param, clone(request.param).fit(X, CODES).transform(X)


def make_frame(library):
    module = pytest.importorskip(library)
    return pd.DataFrame(X, ROWS, COLUMNS) if library == "pandas" else module.DataFrame(X, schema=COLUMNS)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_back_with_names_and_the_same_numbers(case, library):
    model, places = case
    frame = make_frame(library)
    out = clone(model).set_output(transform=library).fit(frame, CODES).transform(frame)
    names = [f"{type(model).__name__.lower()}{k}" for k in range(places.shape[1])]
    assert isinstance(out, type(frame))
    found = out if library == "pandas" else pd.DataFrame(out.to_numpy(), ROWS, out.columns)  # polars has no index
    pd.testing.assert_frame_equal(found, pd.DataFrame(places, ROWS, names))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_as_scikit_learns_default_change_nothing_inside_a_fit(case, library):
    pytest.importorskip(library)
    model, places = case
    with config_context(transform_output=library):
        out = clone(model).fit(X, CODES).transform(X)
    np.testing.assert_array_equal(out.to_numpy(), places)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predictions_are_the_same_with_frames_as_default(library):
    pytest.importorskip(library)
    model = SDRGPRegressor(n_prototypes=8, gp_steps=3, random_state=0).fit(X, X[:, 2] + 0.5)
    expected = model.predict(X)
    with config_context(transform_output=library):
        np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pipeline_of_frames_keeps_the_names(library):
    frame = make_frame(library)
    chain = make_pipeline(StandardScaler(), SDR(**QUICK)).set_output(transform=library).fit(frame, SPECIES)
    assert list(chain[-1].feature_names_in_) == COLUMNS


@pytest.mark.parametrize("unknown", [False, True])
def test_a_polars_column_is_a_target(unknown):
    polars = pytest.importorskip("polars")
    labels = [None if unknown and i % 5 == 0 else label for i, label in enumerate(SPECIES.tolist())]
    model = SDR(**QUICK).fit(make_frame("polars"), polars.Series("species", labels))
    np.testing.assert_array_equal(model.embedding_, SDR(**QUICK).fit(X, np.array(labels, dtype=object)).embedding_)


callbacks = pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on")


class Diary:
    """A callback by scikit-learn's protocol that records its calls."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.entries: list[tuple] = []
        self.fitted = []
        self.fail_at = fail_at

    def setup(self, estimator, context):
        self.entries.append(("setup",))

    def teardown(self, estimator, context):
        self.entries.append(("teardown",))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.given = X, y, metadata
        self.entries.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.entries.append(("end", context.task_name, context.task_id))
        if fitted_estimator is not None:
            self.fitted.append(fitted_estimator)
        if context.task_name != "fit" and context.task_id == self.fail_at:
            raise RuntimeError("a callback that fails")


def iterations(diary):
    return [entry for entry in diary.entries if entry[1:2] == ("outer iteration",)]


@callbacks
@pytest.mark.parametrize("model", [SDR(**QUICK), DistR(**QUICK)], ids=["SDR", "DistR"])
def test_callbacks_are_called_from_beginning_to_end_of_a_fit(model):
    diary = Diary()
    clone(model).set_callbacks(diary).fit(X, CODES)
    ends = [entry for entry in diary.entries if entry not in iterations(diary)]
    assert ends == [("setup",), ("begin", "fit", 0), ("end", "fit", 0), ("teardown",)]


@callbacks
def test_callbacks_are_called_in_every_outer_iteration():
    diary = Diary()
    model = DistR(n_prototypes=20, random_state=0).set_callbacks(diary).fit(X)
    calls = iterations(diary)
    assert calls == [(hook, "outer iteration", k) for k in range(len(calls) // 2) for hook in ("begin", "end")]
    assert len(calls) // 2 >= model.n_iter_ > 2  # an iteration whose coupling was rejected counts too


@callbacks
@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_callbacks_are_called_at_most_max_iter_plus_one_times(max_iter):
    diary = Diary()
    DistR(n_prototypes=20, max_iter=max_iter, tol=0, random_state=0).set_callbacks(diary).fit(X)
    assert len(iterations(diary)) // 2 == max_iter + 1


@callbacks
def test_a_callback_may_stop_the_fit():
    class Impatient(Diary):
        def on_fit_task_end(self, estimator, context, **given):
            super().on_fit_task_end(estimator, context, **given)
            return context.task_id == 1

    diary = Impatient()
    model = DistR(n_prototypes=20, tol=0, random_state=0).set_callbacks(diary).fit(X)
    assert model.n_iter_ == 2 and not model.converged_ and np.isfinite(model.embedding_).all()


@callbacks
def test_callbacks_receive_the_arguments_of_fit():
    diary, frame, weights = Diary(), pd.DataFrame(X, ROWS, COLUMNS), np.ones(len(X))
    SDR(**QUICK).set_callbacks(diary).fit(frame, SPECIES, sample_weight=weights)
    assert diary.given[0] is frame and diary.given[1] is SPECIES and diary.given[2]["sample_weight"] is weights


@callbacks
def test_callbacks_receive_the_fitted_estimator_at_the_end():
    diary = Diary()
    model = SDR(**QUICK).set_callbacks(diary).fit(X, CODES)
    np.testing.assert_array_equal([fitted.transform(X) for fitted in diary.fitted], [model.embedding_])


@callbacks
def test_callbacks_do_not_change_the_fit():
    watched, alone = SDR(**QUICK).set_callbacks(Diary()).fit(X, CODES), SDR(**QUICK).fit(X, CODES)
    np.testing.assert_array_equal(watched.embedding_, alone.embedding_)


@callbacks
def test_callbacks_are_torn_down_after_a_fit_that_fails():
    diary = Diary(fail_at=0)
    with pytest.raises(RuntimeError, match="a callback that fails"):
        SDR(**QUICK).set_callbacks(diary).fit(X, CODES)
    assert diary.entries[-1] == ("teardown",)


@callbacks
def test_callbacks_are_not_called_if_the_data_are_rejected():
    diary = Diary()
    with pytest.raises(InvalidInputError):
        SDR(n_prototypes=200).set_callbacks(diary).fit(X, CODES)
    assert diary.entries == []


@callbacks
def test_the_progress_bar_of_a_pipeline_reaches_the_reduction(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    bar = importlib.import_module("sklearn.callback").ProgressBar()
    make_pipeline(StandardScaler(), SDR(**QUICK)).set_callbacks(bar).fit(X, CODES)
    assert re.search(r"SDR - fit #1 .* 100%", capsys.readouterr().out)


@callbacks
def test_callbacks_and_the_verbose_bar_go_together(capsys):
    diary = Diary()
    SDR(verbose=1, **QUICK).set_callbacks(diary).fit(X, CODES)
    assert len(iterations(diary)) >= 4 and "objective" in capsys.readouterr().err


def test_without_scikit_learns_callbacks_estimators_fit_as_before():
    code = """
import sys
import sklearn.preprocessing, sklearn.pipeline, sklearn.cluster
sys.modules["sklearn.callback"] = None
from distreduce import DistR
model = DistR(n_prototypes=3, perplexity=3.0).fit([[0.0], [1.0], [2.5], [4.0], [5.0]])
assert model.embedding_.shape == (5, 2) and not hasattr(model, "set_callbacks")
"""
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


def test_blocks_of_the_page_run(tmp_path, monkeypatch):
    """Run them from top to bottom; skip blocks that need a library which is not installed."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "interoperability.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    libraries = ("polars", "onnxruntime", "onnx", "anndata", "sklearn.callback", "skrub")
    optional = [name for name in libraries if find_spec(name) is None]
    runnable = [block for block in blocks if not any(re.search(rf"\b{name}\b", block) for name in optional)]
    assert len(runnable) >= 4
    exec(compile("\n".join(runnable), "interoperability.md", "exec"), {"__name__": "__main__"})  # noqa: S102
