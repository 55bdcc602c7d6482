"""Input that cannot be used: an error that names the argument and what to do, and an estimator left as it was."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, SDRImputer
from distreduce.exceptions import DataWarning, InvalidInputError, SolverConvergenceWarning

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
WIDE = np.c_[X, X[:, :1]]
Y = X[:, 0] + 0.1 * rng.normal(size=30)
D = np.linalg.norm(X[:, None] - X, axis=2)


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    array = np.array(array)
    array[index] = value
    return array


# name: parameters, arguments of fit, class of the error, pattern of its message
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...], type[Exception], str]] = {
    "nan in X": ({}, (changed(X, (3, 1), np.nan), Y), ValueError, "X contains NaN"),
    "inf in X": ({}, (changed(X, (3, 1), np.inf), Y), ValueError, "X contains infinity"),
    "nan in sparse X": ({}, (sparse.csr_matrix(changed(X, (3, 1), np.nan)), Y), ValueError, "X contains NaN"),
    "one sample": ({}, (X[:1], Y[:1]), ValueError, "1 sample"),
    "no sample": ({}, (X[:0], Y[:0]), ValueError, "0 sample"),
    "one-dimensional X": ({}, (X[:, 0], Y), ValueError, "Reshape your data"),
    "no feature": ({}, (X[:, :0], Y), ValueError, "0 feature"),
    "complex X": ({}, (X + 1j, Y), ValueError, "Complex data not supported"),
    "strings in X": ({}, (np.array([["a", "b"]] * 30), Y), ValueError, "could not convert string to float"),
    "constant X": ({}, (np.ones((30, 4)), Y), InvalidInputError, "X is constant.*give other features"),
    "constant sparse X": ({}, (sparse.csr_matrix(np.ones((30, 4))), Y), InvalidInputError, "X is constant"),
    "sparse X of zeros": ({}, (sparse.csr_matrix((30, 4)), Y), InvalidInputError, "X is constant"),
    "constant y": ({}, (X, np.full(30, 2.5)), InvalidInputError, "y is constant.*DistR"),
    "constant zero y": ({}, (X, np.zeros(30)), InvalidInputError, "y .*DistR"),
    "one class": ({}, (X, ["a"] * 30), InvalidInputError, "single class.*DistR"),
    "one class of positive weight": ({}, (X, ["a"] * 29 + ["b"], [1] * 29 + [0]), InvalidInputError, "single class"),
    "y missing": ({}, (X, None), InvalidInputError, "y.*DistR"),
    "y too short": ({}, (X, Y[:-1]), InvalidInputError, "30 rows and y 29"),
    "y a number": ({}, (X, 3.0), InvalidInputError, "y should be a 1d array"),
    "y of three dimensions": ({}, (X, np.zeros((30, 2, 2))), InvalidInputError, "y should be a 1d array"),
    "inf in y": ({}, (X, changed(Y, 3, np.inf)), InvalidInputError, "y contains infinity"),
    "inf among labels": (
        {"task": "classification"},
        (X, changed(np.arange(30) % 2.0, 3, np.inf)),
        InvalidInputError,
        "y contains infinity",
    ),
    "complex y": ({}, (X, Y + 1j), InvalidInputError, "y is complex"),
    "sparse y": ({}, (X, sparse.csr_matrix(Y[:, None])), InvalidInputError, "y is a sparse matrix"),
    "half a row of y": ({}, (X, changed(np.c_[Y, Y], (5, 1), np.nan)), InvalidInputError, "row 5"),
    "words as numbers": ({"task": "regression"}, (X, ["a", "b"] * 15), InvalidInputError, "task='regression'"),
    "two columns of labels": (
        {"task": "classification"},
        (X, np.array([["a", "b"]] * 30)),
        InvalidInputError,
        "one column",
    ),
    "two columns of words": ({}, (X, np.array([["a", "b"]] * 30)), InvalidInputError, "one column of labels"),
    "y that its mean hides": ({}, (X, 1e13 + Y), InvalidInputError, "y varies by .* around 1e\\+13.*subtract"),
    "negative counts": ({"target_loss": "poisson"}, (X, Y), InvalidInputError, "non-negative.*poisson"),
    "zero for a positive loss": (
        {"target_loss": "itakura_saito"},
        (X, np.abs(changed(Y, 0, 0))),
        InvalidInputError,
        "strictly positive",
    ),
    "negative weight": ({}, (X, Y, changed(np.ones(30), 2, -1)), InvalidInputError, "sample_weight.*row 2"),
    "all weights zero": ({}, (X, Y, np.zeros(30)), InvalidInputError, "sample_weight is zero"),
    "one positive weight": ({}, (X, Y, np.eye(30)[0]), InvalidInputError, "sample_weight"),
    "nan weight": ({}, (X, Y, changed(np.ones(30), 2, np.nan)), ValueError, "(?i)sample_weight|NaN"),
    "inf weight": ({}, (X, Y, changed(np.ones(30), 2, np.inf)), ValueError, "(?i)sample_weight|infinity"),
    "weights of another length": ({}, (X, Y, np.ones(29)), ValueError, "sample_weight"),
    "weights that sum to one": ({}, (X, Y, np.full(30, 1 / 30)), InvalidInputError, "sample_weight"),
    "more prototypes than samples": ({"n_prototypes": 31}, (X, Y), InvalidInputError, "n_prototypes=31.*at most 30"),
    "one prototype": ({"n_prototypes": 1}, (X, Y), ValueError, "n_prototypes"),
    "perplexity of n": ({"perplexity": 15}, (X[:15], Y[:15]), InvalidInputError, "perplexity=15.*try"),
    "perplexity below one": ({"perplexity": 0.5}, (X, Y), ValueError, "perplexity"),
    "perplexity nan": ({"perplexity": float("nan")}, (X, Y), ValueError, "perplexity"),
    "infinite eta": ({"eta": float("inf")}, (X, Y), ValueError, "eta"),
    "no dimension": ({"n_components": 0}, (X, Y), ValueError, "n_components"),
    "alpha above one": ({"alpha": 1.5}, (X, Y), ValueError, "alpha"),
    "unknown loss": ({"loss": "l1"}, (X, Y), ValueError, "loss"),
    "unknown solver": ({"solver": "magic"}, (X, Y), ValueError, "solver"),
    "unknown optimizer": ({"optimizer": "sgd"}, (X, Y), ValueError, "optimizer"),
    "unknown metric": ({"metric": "cosine"}, (X, Y), ValueError, "metric"),
    "unknown init": ({"init": "pca"}, (X, Y), ValueError, "init"),
    "unknown backend": ({"backend": "jax"}, (X, Y), ValueError, "backend"),
    "unknown form of the targets": ({"dependence": "cka:mean"}, (X, Y), ValueError, "dependence"),
    "unknown device": ({"backend": "numba:cuda"}, (X, Y), ValueError, "backend.*torch:cuda"),
    "one neighbour": ({"affinity": 1}, (X, Y), ValueError, "affinity"),
    "unknown dependence": ({"dependence": "mi"}, (X, Y), ValueError, "dependence"),
    "unknown target_kernel": ({"target_kernel": "poly"}, (X, Y), ValueError, "target_kernel"),
    "unknown embedding_kernel": ({"embedding_kernel": "poly"}, (X, Y), ValueError, "embedding_kernel"),
    "unknown input_kernel": ({"input_kernel": "poly"}, (X, Y), ValueError, "input_kernel"),
    "unknown task": ({"task": "ranking"}, (X, Y), ValueError, "task"),
    "embedding kernel without distances": (
        {"embedding_kernel": lambda A, B=None: A @ (A if B is None else B).T},
        (X, Y),
        ValueError,
        "embedding_kernel",
    ),
    "no threads": ({"n_jobs": 0}, (X, Y), ValueError, "n_jobs"),
    "init of another length": ({"n_prototypes": 3, "init": np.zeros(29, int)}, (X, Y), InvalidInputError, "init must"),
    "init beyond m": ({"n_prototypes": 3, "init": np.full(30, 3)}, (X, Y), InvalidInputError, "init must"),
    "init of fractions": ({"n_prototypes": 3, "init": np.full(30, 0.5)}, (X, Y), InvalidInputError, "init must"),
    "init of other shape": ({"n_prototypes": 3, "init": np.ones((30, 4))}, (X, Y), InvalidInputError, "init must"),
    "init with an empty row": (
        {"n_prototypes": 3, "init": changed(np.ones((30, 3)), 4, 0)},
        (X, Y),
        InvalidInputError,
        "init must",
    ),
    "init of words": ({"n_prototypes": 3, "init": ["a"] * 30}, (X, Y), InvalidInputError, "init must"),
    "identity for fewer": ({"n_prototypes": 3, "init": "identity"}, (X, Y), InvalidInputError, "identity"),
    "lengths for other features": ({"length_scale": [1.0, 2.0]}, (X, Y), InvalidInputError, "length_scale"),
    "enormous weights": ({}, (X, Y, np.full(30, 1e100)), InvalidInputError, "sums to 3e\\+101; weights are counts"),
    "length beyond squares": ({"length_scale": 1e-300}, (X, Y), InvalidInputError, "length_scale.*1e-150 to 1e150"),
    "negative length": ({"length_scale": -1.0}, (X, Y), ValueError, "length_scale"),
    "negative length of a feature": ({"length_scale": [1, 1, 1, -1.0]}, (X, Y), InvalidInputError, "length_scale"),
    "words as lengths": ({"length_scale": ["a", "b", "c", "d"]}, (X, Y), InvalidInputError, "length_scale"),
    "ard of sparse X": ({"length_scale": "ard"}, (sparse.csr_matrix(X), Y), InvalidInputError, "length_scale='ard'"),
    "distances not square": ({"metric": "precomputed"}, (D[:, :-1], Y), ValueError, "square"),
    "distances not symmetric": ({"metric": "precomputed"}, (np.triu(D), Y), InvalidInputError, "X is not symmetric"),
    "negative distances": ({"metric": "precomputed"}, (-D, Y), ValueError, "[Nn]egative"),
    "distances to oneself": ({"metric": "precomputed"}, (D + np.eye(30), Y), InvalidInputError, "itself"),
    "distances all zero": ({"metric": "precomputed"}, (0 * D, Y), InvalidInputError, "X is constant"),
    "sparse distances": ({"metric": "precomputed"}, (sparse.csr_matrix(D), Y), TypeError, "[Ss]parse"),
    "ard of distances": (
        {"metric": "precomputed", "length_scale": "ard"},
        (D, Y),
        InvalidInputError,
        "length_scale='ard'",
    ),
    "linear kernel of distances": (
        {"metric": "precomputed", "input_kernel": "linear"},
        (D, Y),
        InvalidInputError,
        "input_kernel",
    ),
    "lengths for distances": (
        {"metric": "precomputed", "length_scale": np.ones(30)},
        (D, Y),
        InvalidInputError,
        "length_scale",
    ),
}


@pytest.fixture(scope="module")
def fitted() -> SDR:
    """Fitted to other features than those of the cases, so that not even their number may be taken over."""
    return SDR(random_state=0).fit(WIDE, Y)


@pytest.mark.parametrize("name", CASES)
def test_error_names_what_is_wrong_and_leaves_the_estimator_as_it_was(name: str, fitted: SDR) -> None:
    parameters, arguments, error, message = CASES[name]
    for model in (SDR(), copy(fitted)):
        before = _fitted_attributes(model)
        with pytest.raises(error, match=message):
            model.set_params(**parameters).fit(*arguments)
        after = _fitted_attributes(model)
        assert after.keys() == before.keys() and all(after[key] is before[key] for key in before)


def _fitted_attributes(model: SDR) -> dict[str, Any]:
    return {key: value for key, value in vars(model).items() if key.endswith("_")}


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_transform_before_fit(estimator: type) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        estimator().transform(X)


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_summary_before_fit(estimator: type) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        estimator().summary()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (X, "X has 4 features.*5"),
        (changed(WIDE, (0, 0), np.nan), "X contains NaN"),
        (WIDE[0], "Reshape your data"),
        (WIDE + 1j, "Complex data"),
        (WIDE[:0], "0 sample"),
    ],
)
def test_transform_of_what_cannot_be_mapped(bad: Any, message: str, fitted: SDR) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.transform(bad)


def test_transform_of_distances_that_cannot_be_mapped() -> None:
    model = DistR(metric="precomputed", random_state=0).fit(D)
    for bad, message in ((-D, "[Nn]egative"), (D[:, :-1], "X has 29 features.*30")):
        with pytest.raises(ValueError, match=message):
            model.transform(bad)


def test_errors_of_values_are_value_errors() -> None:
    assert issubclass(InvalidInputError, ValueError)


def test_more_samples_than_arrays_fit_into_memory_are_refused_before_the_fit(monkeypatch):
    monkeypatch.setattr("distreduce.estimators._validate.physical_memory", lambda: 1e6)
    X = np.random.default_rng(0).standard_normal((400, 2))
    with pytest.raises(InvalidInputError, match="400 samples need .* Give n_prototypes"):
        DistR().fit(X)


@pytest.mark.parametrize("estimator", [SDR, SDRGPClassifier])
@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (["1.5", "loam", None] * 10, "'soil' has 'loam'"),
        (pd.date_range("2024-01-01", periods=30), "'soil' has '2024-01-01 00:00:00'"),
        ([1.5, None, 2.5] * 10, "Input X contains NaN: 10 in 'soil'"),
    ],
)
def test_a_raw_table_is_told_its_cure(estimator, column, cell):
    table = pd.DataFrame(X).assign(soil=column)
    cure = rf"{cell}.*TablePreparer.*: make_pipeline\(TablePreparer\(\), {estimator.__name__}\(\)\)"
    with pytest.raises(InvalidInputError, match=cure):
        estimator().fit(table, Y > 0)


@pytest.mark.parametrize("model", [SDR(n_prototypes=5), DistR(), SDRGPRegressor(), SDRGPClassifier()], ids=repr)
def test_cells_under_a_mask_are_not_used(model):
    hidden = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    hidden.mask[3, 1] = True
    with pytest.raises(InvalidInputError, match="X is a masked array with 1 masked cells"):
        model.fit(hidden, X[:, 0] > 0)


@pytest.mark.parametrize("method", ["transform", "explain", "inverse_transform"])
def test_a_fitted_reduction_reads_no_cells_under_a_mask(method):
    hidden = np.ma.masked_array(X[:, :2], mask=np.arange(60).reshape(30, 2) == 7)
    with pytest.raises(InvalidInputError, match="X is a masked array with 1 masked cells"):
        getattr(DistR(n_prototypes=5).fit(X[:, :2]), method)(hidden)


@pytest.mark.parametrize("model", [SDR(n_prototypes=5), DistR(), SDRGPRegressor(), SDRImputer()], ids=repr)
def test_weights_under_a_mask_are_not_used(model):
    with pytest.raises(InvalidInputError, match="sample_weight is a masked array with 3 masked cells"):
        model.fit(X, Y, sample_weight=np.ma.masked_array(np.ones(30), np.arange(30) < 3))


def test_groups_under_a_mask_are_not_used():
    with pytest.raises(InvalidInputError, match="groups is a masked array with 3 masked cells"):
        SDR().fit(X, Y, groups=np.ma.masked_array(np.arange(30) // 3, np.arange(30) < 3))


@pytest.mark.parametrize(
    ("cells", "said"),
    [(["1.5", "loam"] * 15, "'soil' has 'loam'"), ([1.5, None, 2.5] * 10, "Input X contains NaN: 10 in 'soil'")],
)
@pytest.mark.parametrize("frame", [pl.DataFrame, pa.table], ids=["polars", "arrow"])
def test_a_raw_table_of_another_library_is_told_its_cure(frame, cells, said):
    with pytest.raises(InvalidInputError, match=rf"{said}.*TablePreparer"):
        SDR().fit(frame({"size": X[:, 0].tolist(), "soil": cells}), Y)


def test_weights_of_a_survey_are_questioned():
    survey = np.random.default_rng(0).uniform(100.0, 600.0, 30)
    with pytest.warns(DataWarning, match=r"mean of 3\d\d.*divide them by their mean"):
        DistR(n_prototypes=5, max_iter=1).fit(X, sample_weight=survey)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)  # one iteration may or may not be enough
        DistR(n_prototypes=5, max_iter=1).fit(X, sample_weight=survey / survey.mean())  # a DataWarning would fail
        DistR(n_prototypes=5, max_iter=1).fit(X, sample_weight=np.full(30, 400.0))  # counts of equal rows
