"""Fits on a sparse affinity in shards, through the estimators: they agree with dense fits where both run."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_friedman1
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor

import distreduce
from distreduce import SDR, DistR
from distreduce.exceptions import DataWarning, InvalidInputError, NoSignalWarning
from distreduce.metrics import reduction_scores

pytestmark = pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def sparse_sdr(**options) -> SDR:
    return SDR.paper(**{"n_prototypes": 40, "affinity": "sparse", "max_iter": 5, "random_state": 0, **options})


@pytest.fixture(scope="module")
def fitted(digits):
    return sparse_sdr().fit(*digits)


def test_scores_are_those_of_a_dense_fit(digits):
    X, y = digits
    scores = {
        name: reduction_scores(SDR.paper(n_prototypes=60, affinity=name, random_state=0).fit(X, y), y)
        for name in ("dense", "sparse")
    }
    for score in ("homogeneity", "nmi", "cka"):
        assert scores["sparse"][score] >= scores["dense"][score] - (0.02 if score == "cka" else 2.0)


def test_regression_agrees_with_a_dense_fit():
    X, y = make_friedman1(1700, noise=0.5, random_state=0)
    train, test = slice(0, 1200), slice(1200, None)
    quality = {}
    for name in ("dense", "sparse"):
        model = SDR(n_prototypes=60, affinity=name, max_iter=10, random_state=0).fit(X[train], y[train])
        nearest = np.abs(model.transform(X[test])[:, None] - model.prototypes_[None]).sum(axis=2).argmin(axis=1)
        quality[name] = r2_score(y[test], model.prototype_targets_[nearest, 0])
    assert quality["sparse"] >= quality["dense"] - 0.05


def test_unsupervised_fit(digits):
    X, y = digits
    model = DistR(n_prototypes=40, affinity="sparse", max_iter=5, random_state=0).fit(X)
    assert reduction_scores(model, y)["homogeneity"] > 70 and np.isfinite(model.embedding_).all()


def test_attributes_have_their_shapes_and_masses(digits, fitted):
    X, y = digits
    assert fitted.coupling_.shape == (len(X), 40) and fitted.embedding_.shape == (len(X), 2)
    assert_allclose(np.asarray(fitted.coupling_.sum(axis=1)).ravel(), 1.0, rtol=1e-12)
    assert_allclose(fitted.prototype_weights_.sum(), 1.0)
    assert_array_equal(fitted.embedding_, fitted.transform(X))


def test_history_never_rises(fitted):
    assert (np.diff(fitted.history_["objective"]) <= 0).all()


def test_order_of_the_rows_does_not_matter(digits, fitted):
    X, y = digits
    order = np.random.default_rng(0).permutation(len(X))
    other = sparse_sdr().fit(X[order], y[order])
    assert_array_equal(other.embedding_, fitted.embedding_[order])


def test_weight_two_is_the_sample_twice(digits):
    X, y = digits
    X, y = X[:1200], y[:1200]
    weights = 1.0 + (np.arange(1200) < 300)
    weighted = sparse_sdr(n_prototypes=20).fit(X, y, sample_weight=weights)
    twice = sparse_sdr(n_prototypes=20).fit(np.vstack([X, X[:300]]), np.r_[y, y[:300]])
    assert_array_equal(weighted.prototypes_, twice.prototypes_)


def test_threads_do_not_change_a_bit(digits, fitted):
    assert_array_equal(sparse_sdr(n_jobs=3).fit(*digits).embedding_, fitted.embedding_)


def test_single_precision_is_kept_and_agrees(digits, fitted):
    X, y = digits
    single = sparse_sdr().fit(X.astype(np.float32), y)  # sixteenths: exact in single precision
    assert single.map_.inputs.dtype == np.float32
    assert_allclose(single.objective_, fitted.objective_, rtol=1e-3)


def test_sparse_features_agree_with_dense_ones(digits, fitted):
    X, y = digits
    assert_allclose(sparse_sdr().fit(sparse.csr_array(X), y).objective_, fitted.objective_, rtol=0.05)


def test_a_memory_mapped_array_gives_the_same_bits(digits, fitted, tmp_path):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    model = sparse_sdr().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    assert_array_equal(model.embedding_, fitted.embedding_)


def test_torch_backend_agrees(digits, fitted):
    pytest.importorskip("torch")
    model = sparse_sdr(backend="torch:cpu").fit(*digits)
    assert_allclose(model.objective_, fitted.objective_, rtol=1e-4)


def test_unknown_targets_take_no_part(digits):
    X, y = digits
    partly = np.where(np.arange(len(y)) % 3 == 0, y.astype(float), np.nan)
    model = sparse_sdr().fit(X, partly)
    assert reduction_scores(model, y)["homogeneity"] > 80


def test_transport_form_goes_through_target_features(digits):
    X, y = make_friedman1(800, random_state=0)
    dense, on_graph = (
        SDR(n_prototypes=30, affinity=name, dependence="cka:transport", max_iter=3, random_state=0).fit(X, y)
        for name in ("dense", "sparse")
    )
    assert on_graph.history_["cka"].iloc[-1] == pytest.approx(dense.history_["cka"].iloc[-1], abs=0.1)


def test_the_model_does_not_grow_with_the_samples(digits, monkeypatch):
    monkeypatch.setattr("distreduce.solver.sharded.LANDMARKS", 100)
    model = sparse_sdr().fit(*digits)
    assert model.map_.inputs.shape[0] == 100


def test_saved_and_loaded(fitted, digits, tmp_path):
    fitted.save(tmp_path / "model")
    assert_array_equal(SDR.load(tmp_path / "model").transform(digits[0][:5]), fitted.transform(digits[0][:5]))


def test_auto_is_sparse_above_the_limit(digits, monkeypatch):
    monkeypatch.setattr("distreduce.estimators._setup.MOST_DENSE_AUTO", 1000)
    monkeypatch.setattr("distreduce.solver.sharded.LANDMARKS_BESIDE_PREDICTIONS", 50)
    model = SDR(n_prototypes=20, max_iter=1, random_state=0).fit(*digits)
    assert model.map_.inputs.shape[0] == 50


@pytest.mark.parametrize("affinity", ["auto", "sparse"])
@pytest.mark.parametrize("method", ["SDR", "DistR"])
def test_as_many_prototypes_as_samples_are_too_many_above_the_limit(method, affinity, digits, monkeypatch):
    for name in ("MOST_DENSE", "MOST_DENSE_AUTO"):
        monkeypatch.setattr(f"distreduce.estimators._setup.{name}", 1000)
    with pytest.warns(
        DataWarning, match=r"1,797 samples would need n×n arrays, so this fit has 200\. Give n_prototypes"
    ):
        model = getattr(distreduce, method)(affinity=affinity, max_iter=1, random_state=0).fit(*digits)
    given = getattr(distreduce, method)(n_prototypes=200, affinity=affinity, max_iter=1, random_state=0).fit(*digits)
    assert_array_equal(model.embedding_, given.embedding_)


def test_few_distinct_samples_are_the_prototypes_of_many_rows(monkeypatch):
    monkeypatch.setattr("distreduce.estimators._setup.MOST_DENSE_AUTO", 1000)
    rng = np.random.default_rng(0)
    X, y = rng.integers(2, size=(1500, 3)).astype(float), rng.integers(2, size=1500)
    with pytest.warns(DataWarning, match="Of 1,500 samples only 16 are distinct: each became a prototype"):
        model = SDR(random_state=0).fit(X, y)
    assert len(model.prototypes_) == 16 and len(model.embedding_left_out_) == 1500
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        few, dense = (
            SDR(affinity=name, random_state=0).fit(*make_friedman1(80, random_state=0)) for name in ("sparse", "dense")
        )
    assert_array_equal(few.prototypes_, dense.prototypes_)


@pytest.mark.parametrize("options", [{"affinity": "dense"}, {"init": "identity"}, {"init": np.arange(200)}])
def test_one_prototype_per_sample_above_the_limit_for_whoever_wants_them(options, digits, monkeypatch):
    monkeypatch.setattr("distreduce.estimators._setup.MOST_DENSE_AUTO", 100)
    X, y = digits
    model = SDR(max_iter=0, max_inner_iter=2, random_state=0, **options).fit(X[:200], y[:200])
    assert len(model.prototypes_) == 200


@pytest.mark.parametrize("options", [{"n_prototypes": None, "init": "identity"}, {"metric": "precomputed"}])
def test_sparse_without_what_it_needs_is_refused(digits, options):
    with pytest.raises(InvalidInputError, match="affinity='sparse' needs"):
        sparse_sdr(**options).fit(np.zeros((5, 5)), [0, 1, 0, 1, 0])


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_left_out_places_of_equal_rows_do_not_tell_their_targets(kind):
    """Places that differ by the samples' own y gave new rows ten neighbours of one y: R² −1.0 instead of 0."""
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(1600, 4)).astype(float)
    y = X.sum(axis=1) + 3 * rng.normal(size=1600)
    y = np.digitize(y, [2, 6]) if kind == "classes" else y.round(1)
    model = SDR(n_prototypes=50, affinity="sparse", random_state=0).fit(X[:1300], y[:1300])
    sites = np.unique(X[:1300], axis=0, return_inverse=True)[1].ravel()
    many = np.flatnonzero(np.bincount(sites) >= 10)
    for site in many:
        places = model.embedding_left_out_[sites == site]
        assert_allclose(places, np.tile(places[0], (len(places), 1)), atol=1e-9)
    assert len(many) > 50
    near = KNeighborsRegressor(10).fit(model.embedding_left_out_, y[:1300])
    assert near.score(model.transform(X[1300:]), y[1300:]) > -0.1


def test_nearly_equal_rows_do_not_make_noise_a_signal():
    """Of noise in 800 rows five times each, with a little noise in X, 0.98 was said to hold for new samples."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(200), 5)
    X, y = rng.normal(size=(200, 10))[rows] + 1e-6 * rng.normal(size=(1000, 10)), rng.normal(size=200)[rows]
    with pytest.warns(NoSignalWarning):
        model = SDR(n_prototypes=50, affinity="sparse", random_state=0).fit(X, y)
    assert model.neighbor_scores_["left_out"] < 0.1 and model.neighbor_scores_["all_features"] < 0.1


def test_too_few_neighbours_are_refused(digits):
    with pytest.raises(InvalidInputError, match="number of neighbours"):
        sparse_sdr(affinity=5).fit(*digits)


def test_no_more_distinct_samples_than_prototypes():
    X = np.repeat(np.arange(12.0)[:, None] * [1.0, 0.5], 20, axis=0)
    y = np.repeat(np.arange(12) % 2, 20)
    with pytest.warns(DataWarning, match="only 12 samples are distinct"):
        model = SDR(n_prototypes=30, affinity="sparse", random_state=0).fit(X, y)
    assert np.isfinite(model.embedding_).all()


BUDGET = """
import json, resource, sys, warnings
import numpy as np
from distreduce import SDR
warnings.simplefilter("ignore")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def data(n):
    rng = np.random.default_rng(0)
    group = rng.integers(20, size=n)
    return (3 * rng.standard_normal((20, 20))[group] + rng.standard_normal((n, 20))).astype(np.float32), group % 4
X, y = data(3000)
model = SDR(n_prototypes=20, affinity="sparse", max_iter=2, perplexity=10, random_state=0).fit(X, y)
X, y = data(50_000)
before = peak()
model.transform(X)
transform = peak() - before
SDR(n_prototypes=50, perplexity=10, max_iter=1, random_state=0).fit(X[:15_000], y[:15_000])
print(json.dumps({"transform": transform, "fit": peak() - before}))
"""


@pytest.fixture(scope="module")
def megabytes():
    """Growth of a subprocess's peak resident size by each step on samples of 20 features (single precision)."""
    script = f"import sys; sys.path.insert(0, {str(Path(distreduce.__file__).parents[1])!r})\n{BUDGET}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_memory_of_a_fit_is_bounded(megabytes):
    """A dense affinity of 15,000 samples alone would take 0.9 GB."""
    assert megabytes["fit"] < 500


def test_memory_of_transform_does_not_grow_with_the_samples(megabytes):
    """50,000 rows against 2000 landmarks would be 0.8 GB at once; their places are 0.8 MB."""
    assert megabytes["transform"] < 250
