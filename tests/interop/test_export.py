"""Maps read again without distreduce place samples where the model does."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor
from distreduce.exceptions import InvalidTypeError, MissingDependencyError, ModelSaveError, UnsavableModelError
from distreduce.interop import load_map, save_map, save_onnx
from distreduce.kernels import RBF, RationalQuadratic

X, CODES = load_iris(return_X_y=True)
SIZES = X[:, 2] + 0.5
DISTANCES = np.linalg.norm(X[:, None] - X[None], axis=2)
NEW = X[::7] + 0.3
QUICK = {"n_prototypes": 8, "tol": 1e-2, "random_state": 0}

# Every kind of map, with rows that it has not seen.
KINDS = {
    "rbf": (SDR(**QUICK), X, NEW),
    "rbf by feature": (SDR(length_scale=[0.5, 1.0, 2.0, 3.0], **QUICK), X, NEW),
    "rational quadratic": (SDR(input_kernel=RationalQuadratic(2.5, 0.7), **QUICK), X, NEW),
    "linear": (SDR(input_kernel="linear", **QUICK), X, NEW),
    "with predictions": (SDR(1, **QUICK), X, NEW),
    "standardised, with predictions": (make_pipeline(StandardScaler(), SDR(1, **QUICK)), X, NEW),
    "unsupervised": (DistR(3, **QUICK), X, NEW),
    "far from the origin": (SDR(**QUICK), X + 1e4, NEW + 1e4),
    "sparse": (SDR(**QUICK), sparse.csr_array(X), NEW),
    "distances": (SDR(metric="precomputed", **QUICK), DISTANCES, np.linalg.norm(NEW[:, None] - X[None], axis=2)),
    "distances, rational quadratic": (
        SDR(metric="precomputed", input_kernel="rq", **QUICK), DISTANCES, np.linalg.norm(NEW[:, None] - X[None], axis=2)
    ),
    "standardised": (make_pipeline(StandardScaler(), SDR(**QUICK)), X * [1, 10, 100, 1e3], NEW * [1, 10, 100, 1e3]),
    "standardised, linear": (make_pipeline(StandardScaler(), SDR(input_kernel="linear", **QUICK)), X, NEW),
    "only divided": (make_pipeline("passthrough", StandardScaler(with_mean=False), SDR(**QUICK)), X, NEW),
    "only moved": (make_pipeline(StandardScaler(with_std=False), SDR(**QUICK)), X, NEW),
    "classifier": (SDRGPClassifier(2, n_prototypes=8, experts=[], gp_steps=3, random_state=0), X, NEW),
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    model, rows, new = KINDS[request.param]
    model.fit(rows, CODES)
    return model, new


def test_the_archive_places_new_samples_where_the_model_does(kind, tmp_path):
    model, new = kind
    save_map(model, tmp_path / "map.npz")
    np.testing.assert_allclose(load_map(tmp_path / "map.npz")(new), model.transform(new), rtol=0, atol=1e-9)


def test_onnxruntime_places_new_samples_where_the_model_does(kind, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, new = kind
    save_onnx(model, tmp_path / "map.onnx")
    session = runtime.InferenceSession(tmp_path / "map.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["embedding"], {"X": new})[0], model.transform(new), rtol=0, atol=1e-9)


def test_the_scales_of_a_gp_are_in_the_map(tmp_path):
    units = np.array([1.0, 10.0, 1e-3, 1e3])
    model = SDRGPRegressor(n_prototypes=8, experts=[], gp_steps=3, random_state=0).fit(X * units, SIZES)
    save_map(model, tmp_path / "map.npz")
    np.testing.assert_allclose(load_map(tmp_path / "map.npz")(NEW * units), model.transform(NEW * units), atol=1e-9)


@pytest.fixture(scope="module")
def model():
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    return SDR(**QUICK).fit(frame, CODES)


def test_the_reader_needs_numpy_alone(model, tmp_path):
    """Its source, as a user would copy it, in a process where nothing else can be imported."""
    save_map(model, tmp_path / "map.npz")
    np.save(tmp_path / "rows.npy", NEW)
    head = "from __future__ import annotations\nimport numpy as np\n"
    tail = f"""
import sys
assert not {{"scipy", "sklearn", "distreduce"}} & {{name.partition(".")[0] for name in sys.modules}}
np.save(r"{tmp_path}/places.npy", load_map(r"{tmp_path}/map.npz")(np.load(r"{tmp_path}/rows.npy")))
"""
    subprocess.run([sys.executable, "-c", head + inspect.getsource(load_map) + tail], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "places.npy"), model.map_(NEW), atol=1e-12)


@pytest.mark.parametrize("wrong", [np.ones((5, 1)), np.ones((5, 9)), np.ones(4), 1.0], ids=np.shape)
def test_rows_of_another_width_are_refused(model, tmp_path, wrong):
    """NumPy would take a single column for all of them."""
    save_map(model, tmp_path / "map.npz")
    with pytest.raises(ValueError, match=rf"X must have the shape \(n, {model.n_features_in_}\)"):
        load_map(tmp_path / "map.npz")(wrong)


def test_the_reader_is_short():
    lines = inspect.getsource(load_map).splitlines()
    assert len([line for line in lines if line.strip() and '"""' not in line]) <= 25


def test_the_archive_names_the_features(model, tmp_path):
    save_map(model, tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz", allow_pickle=False) as store:
        assert list(store["feature_names"]) == list(model.feature_names_in_)


def test_the_archive_holds_what_its_format_says(model, tmp_path):
    save_map(model, tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz", allow_pickle=False) as store:
        shapes = {name: store[name].shape for name in store.files}
    n = len(model.map_.coefficients)
    single = dict.fromkeys(["format", "version", "kernel", "alpha"], ())
    per_feature = dict.fromkeys(["offset", "scale", "feature_names"], (4,))
    assert shapes == {**single, **per_feature, "centres": (n, 4), "coefficients": (n, 2)}


def test_another_archive_is_no_map(tmp_path):
    np.savez(tmp_path / "data.npz", X=X)
    with pytest.raises(ValueError, match="does not hold a map"):
        load_map(tmp_path / "data.npz")


def test_a_later_version_is_refused(model, tmp_path):
    save_map(model, tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as store:
        np.savez(tmp_path / "later.npz", **{**store, "version": 4})
    with pytest.raises(ValueError, match="newer load_map"):
        load_map(tmp_path / "later.npz")


@pytest.mark.parametrize("save", [save_map, save_onnx])
def test_a_file_that_cannot_be_written_is_an_error(save, model, tmp_path):
    if save is save_onnx:
        pytest.importorskip("onnx")
    with pytest.raises(ModelSaveError, match="Nothing was written"):
        save(model, tmp_path / "nowhere" / "map")


def test_a_failed_write_leaves_no_part_of_a_file(model, tmp_path, monkeypatch):
    def full(file, **arrays):
        file.write(b"PK")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(ModelSaveError, match="No space left"):
        save_map(model, tmp_path / "map.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_of_ones_own_is_refused(tmp_path):
    class Narrow(RBF):
        pass

    with pytest.raises(UnsavableModelError, match="Narrow"):
        save_map(SDR(input_kernel=Narrow(), **QUICK).fit(X, CODES), tmp_path / "map.npz")


def test_an_unknown_step_is_named(tmp_path):
    chain = make_pipeline(PCA(2), SDR(**QUICK)).fit(X, CODES)
    with pytest.raises(UnsavableModelError, match="'pca' of the pipeline is a PCA"):
        save_map(chain, tmp_path / "map.npz")


@pytest.mark.parametrize("wrong", [LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())])
def test_a_model_without_a_map_is_refused(wrong, tmp_path):
    with pytest.raises(InvalidTypeError, match="LinearRegression has no map"):
        save_map(wrong.fit(X, SIZES), tmp_path / "map.npz")


def test_a_model_that_was_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_map(SDR(), tmp_path / "map.npz")


def test_without_onnx_the_extra_is_named(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependencyError, match=r"distreduce\[onnx\]"):
        save_onnx(model, tmp_path / "map.onnx")
