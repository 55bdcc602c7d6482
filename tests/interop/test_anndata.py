"""SDR on AnnData: what is read, what is written, and that a file keeps it."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from distreduce import SDR
from distreduce.exceptions import InvalidInputError, InvalidTypeError, MissingDependencyError
from distreduce.interop.anndata import sdr

anndata = pytest.importorskip("anndata")

X, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[CODES]
QUICK = {"n_prototypes": 9, "tol": 1e-3, "perplexity": 20.0}


def flowers(**columns):
    obs = pd.DataFrame(
        {"species": pd.Categorical(SPECIES), "petal": X[:, 2] + 0.5, "sepal": X[:, 0], "code": CODES, **columns},
        index=[f"flower {i}" for i in range(len(X))],
    )
    return anndata.AnnData(X.copy(), obs=obs, obsm={"X_two": X[:, 2:].copy()})


def expected(y, rows=X, **parameters):
    return SDR(**{**QUICK, "random_state": 0, **parameters}).fit(rows, y)


@pytest.fixture(scope="module")
def by_species():
    adata = flowers()
    sdr(adata, "species", **QUICK)
    return adata


@pytest.fixture(scope="module")
def model():
    return expected(SPECIES)


def test_embedding_is_that_of_the_estimator(by_species, model):
    np.testing.assert_array_equal(by_species.obsm["X_sdr"], model.embedding_)


def test_left_out_places_are_a_second_entry(by_species, model):
    np.testing.assert_array_equal(by_species.obsm["X_sdr_left_out"], model.embedding_left_out_)


def test_evidence_and_scores_are_those_of_the_estimator(by_species, model):
    found = by_species.uns["sdr"]
    np.testing.assert_array_equal(found["evidence"].to_numpy(), model.prototype_evidence_.to_numpy())
    assert found["neighbor_scores"] == model.neighbor_scores_


def test_prototypes_of_the_observations_are_categories_that_number_the_rows_of_uns(by_species, model):
    column = by_species.obs["sdr_prototype"]
    assert list(column.cat.categories[column.cat.codes]) == [str(k) for k in model.labels_]


def test_medoids_are_names_of_observations(by_species, model):
    assert list(by_species.uns["sdr"]["medoids"]) == [f"flower {i}" for i in model.prototype_medoids_]


@pytest.mark.parametrize(
    ("key", "attribute"),
    [("prototypes", "prototypes_"), ("weights", "prototype_weights_"), ("targets", "prototype_targets_")],
)
def test_arrays_are_those_of_the_estimator(by_species, model, key, attribute):
    np.testing.assert_array_equal(by_species.uns["sdr"][key], getattr(model, attribute))


def test_cka_is_that_of_the_last_iteration(by_species, model):
    assert by_species.uns["sdr"]["cka"] == model.history_["cka"].to_numpy()[-1]


def test_params_hold_what_was_asked_for(by_species):
    params = by_species.uns["sdr"]["params"]
    found = {name: params[name] for name in (*QUICK, "task", "random_state")}
    assert found == {**QUICK, "task": "classification", "random_state": 0}


def test_a_representation_is_reduced_instead_of_x():
    adata = flowers()
    sdr(adata, "species", use_rep="X_two", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], expected(SPECIES, X[:, 2:]).embedding_)


def test_a_frame_is_a_representation():
    adata = flowers()
    adata.obsm["named"] = pd.DataFrame(X[:, 2:], index=adata.obs_names, columns=["length", "width"])
    sdr(adata, "species", use_rep="named", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], expected(SPECIES, X[:, 2:]).embedding_)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_data_give_what_dense_data_give(form):
    dense, thin = flowers(), flowers()
    thin.X = form(X)
    for adata in (dense, thin):
        sdr(adata, "species", length_scale="median", **QUICK)  # one length scale per feature needs dense data
    np.testing.assert_allclose(thin.obsm["X_sdr"], dense.obsm["X_sdr"], atol=1e-6)


def test_a_missing_category_is_an_unknown_label():
    partly = SPECIES.astype(object)
    partly[::5] = None
    adata = flowers(partly=pd.Categorical(partly))
    sdr(adata, "partly", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], expected(partly).embedding_)


def test_whole_numbers_as_categories_keep_their_names_beside_a_missing_one():
    adata = flowers(cluster=pd.Categorical([None, *CODES[1:]]))
    sdr(adata, "cluster", **QUICK)
    assert list(adata.uns["sdr"]["target_names"]) == ["share of 0", "share of 1", "share of 2"]


def test_numbers_are_continuous_even_if_they_repeat():
    adata = flowers()
    sdr(adata, "code", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], expected(CODES, task="regression").embedding_)


def test_nullable_numbers_are_continuous():
    counts = pd.array(CODES, dtype="Int64")
    counts[3] = pd.NA
    adata = flowers(counts=counts)
    sdr(adata, "counts", **QUICK)
    y = np.where(np.arange(150) == 3, np.nan, CODES)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], expected(y, task="regression").embedding_)


def test_codes_can_be_called_classes(by_species):
    adata = flowers()
    sdr(adata, "code", task="classification", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_sdr"], by_species.obsm["X_sdr"])


def test_booleans_are_classes():
    adata = flowers(wild=CODES == 1)
    sdr(adata, "wild", **QUICK)
    assert list(adata.uns["sdr"]["target_names"]) == ["share of False", "share of True"]


def test_several_columns_are_several_targets():
    adata = flowers()
    sdr(adata, ["petal", "sepal"], **QUICK)
    both = expected(X[:, [2, 0]] + [0.5, 0.0], task="regression")
    np.testing.assert_array_equal(adata.uns["sdr"]["targets"], both.prototype_targets_)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two runs, one of them with an object, an array and a NaN to store, before and after a file."""
    adata = flowers()
    sdr(adata, "species", **QUICK)
    init = np.random.default_rng(0).integers(9, size=150)
    sdr(adata, ["petal", "sepal"], key_added="size", dependence="hsic", init=init, length_scale=(1, 1, 2, 2), **QUICK)
    path = tmp_path_factory.mktemp("h5ad") / "flowers.h5ad"
    adata.write_h5ad(path)
    return adata, anndata.read_h5ad(path)


@pytest.mark.parametrize("key", ["sdr", "size"])
def test_a_file_keeps_all_results(stored, key):
    before, after = (adata.uns[key] for adata in stored)
    assert before.keys() == after.keys()
    for name in before.keys() - {"params"}:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)


@pytest.mark.parametrize("key", ["sdr", "size"])
def test_a_file_keeps_all_parameters(stored, key):
    before, after = (adata.uns[key]["params"] for adata in stored)
    np.testing.assert_equal(after, before)


def test_a_file_keeps_the_prototypes_of_the_observations(stored):
    pd.testing.assert_frame_equal(*(adata.obs[["sdr_prototype", "size_prototype"]] for adata in stored))


def test_another_name_writes_nothing_under_the_default_one():
    adata = flowers()
    sdr(adata, "species", key_added="sdr_species", **QUICK)
    assert (set(adata.obsm) - {"X_two"}, set(adata.uns), adata.obs.columns[-1]) == (
        {"sdr_species", "sdr_species_left_out"},
        {"sdr_species"},
        "sdr_species_prototype",
    )


def test_a_copy_leaves_the_original_alone():
    adata = flowers()
    result = sdr(adata, "species", copy=True, **QUICK)
    assert ("X_sdr" in result.obsm, list(adata.obsm), len(adata.uns)) == (True, ["X_two"], 0)


def test_in_place_returns_nothing():
    assert sdr(flowers(), "species", **QUICK) is None


def test_a_failed_fit_writes_nothing():
    adata = flowers()
    with pytest.raises(InvalidInputError):
        sdr(adata, "species", n_prototypes=151)
    assert (list(adata.obsm), len(adata.uns), "sdr_prototype" in adata.obs) == (["X_two"], 0, False)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ("genus", {}, "no column 'genus'; its columns are species, petal, sepal, code"),
        ([], {}, "labels names no column"),
        (["petal", "species"], {}, "'species' does not hold numbers"),
        ("species", {"use_rep": "X_pca"}, "use_rep='X_pca' is not a key of obsm, which has X_two"),
    ],
)
def test_names_that_do_not_exist_are_refused(labels, options, message):
    with pytest.raises(InvalidInputError, match=message):
        sdr(flowers(), labels, **options)


def test_data_without_x_need_a_representation():
    adata = anndata.AnnData(obs=flowers().obs)
    with pytest.raises(InvalidInputError, match=r"adata\.X is empty"):
        sdr(adata, "species")


def test_data_on_disk_are_refused(tmp_path):
    flowers().write_h5ad(tmp_path / "flowers.h5ad")
    backed = anndata.read_h5ad(tmp_path / "flowers.h5ad", backed="r")
    with pytest.raises(InvalidInputError, match="to_memory"):
        sdr(backed, "species")
    backed.file.close()


def test_a_frame_is_no_annotated_data():
    with pytest.raises(InvalidTypeError, match="DataFrame"):
        sdr(pd.DataFrame(X), "species")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(MissingDependencyError, match=r"distreduce\[anndata\]"):
        sdr(None, "species")
