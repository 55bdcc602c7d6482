"""SDR and DistR among scikit-learn's tools: its own checks, clone, pipelines, searches, names, output containers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_checks import ABOUT_THE_FIT, parametrize_with_some_checks

from distreduce import SDR, DistR

ESTIMATORS = [SDR, DistR]


@parametrize_with_checks([SDR(), DistR(n_prototypes=4)])
def test_scikit_learn_accepts_the_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_some_checks(
    [
        SDR(n_prototypes=4),
        DistR(),
        SDR(metric="precomputed"),
        DistR(metric="precomputed", n_prototypes=4),
        SDR(input_kernel="linear"),
        SDR.paper(n_components=3, task="regression", solver="alternating", tol=1e-3),
        DistR(loss="square", init="random", n_prototypes=3),
    ],
    ABOUT_THE_FIT,
)
def test_scikit_learn_accepts_the_fit_with_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructor_stores_its_arguments_and_nothing_else(estimator: type) -> None:
    model = estimator()
    assert vars(model) == model.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_survive_a_round_trip(estimator: type) -> None:
    changed = estimator(3, n_prototypes=7, perplexity=5.5, init=np.arange(4), length_scale=[1.0, 2.0], verbose=1)
    assert estimator().set_params(**changed.get_params()).get_params() == changed.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_representation_tells_the_changed_parameters(estimator: type) -> None:
    text = repr(estimator(n_prototypes=7, loss="square"))
    assert text == f"{estimator.__name__}(loss='square', n_prototypes=7)" or text == (
        f"{estimator.__name__}(n_prototypes=7, loss='square')"
    )


def test_clone_is_unfitted_and_fits_to_the_same(classification: Any) -> None:
    model = SDR(n_prototypes=9, random_state=3).fit(*classification)
    np.testing.assert_array_equal(clone(model).fit(*classification).prototypes_, model.prototypes_)


def test_clone_has_no_fitted_attributes(classification: Any) -> None:
    fitted = SDR(n_prototypes=9, random_state=3).fit(*classification)
    assert not [name for name in vars(clone(fitted)) if name.endswith("_")]


def test_pipeline_equals_its_steps(classification: Any) -> None:
    X, y = classification
    whole = make_pipeline(StandardScaler(), SDR(random_state=0)).fit_transform(X, y)
    np.testing.assert_array_equal(whole, SDR(random_state=0).fit_transform(StandardScaler().fit_transform(X), y))


def test_grid_search_over_eta_in_a_pipeline(classification: Any) -> None:
    X, y = classification
    pipeline = make_pipeline(StandardScaler(), SDR(random_state=0, perplexity=10), KNeighborsClassifier(3))
    search = GridSearchCV(pipeline, {"sdr__eta": [0.0, 1000.0]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.7


def test_pipeline_passes_weights_on(classification: Any) -> None:
    X, y = classification
    weights = 1.0 + (np.arange(len(X)) % 2)
    pipeline = make_pipeline(StandardScaler(), SDR(random_state=0)).fit(X, y, sdr__sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    direct = SDR(random_state=0).fit(scaled, y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].embedding_, direct.embedding_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pandas_output_has_names_and_index(estimator: type, classification: Any) -> None:
    X, y = classification
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    frame.columns = [f"gene {j}" for j in range(X.shape[1])]
    out = estimator(random_state=0).set_output(transform="pandas").fit_transform(frame, y)
    prefix = estimator.__name__.lower()
    expected = pd.DataFrame(estimator(random_state=0).fit_transform(X, y), frame.index, [f"{prefix}0", f"{prefix}1"])
    pd.testing.assert_frame_equal(out, expected)


def test_feature_names_are_those_of_the_frame(regression: Any) -> None:
    X, y = regression
    model = SDR(n_components=3).fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert (list(model.feature_names_in_), list(model.get_feature_names_out()), model.n_features_in_) == (
        list("abcde"),
        ["sdr0", "sdr1", "sdr2"],
        5,
    )


def test_frame_with_columns_in_another_order_is_refused(regression: Any) -> None:
    X, y = regression
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = SDR().fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("edcba")])
