"""A GP on an embedding: the steps it is made of, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from distreduce.baselines import NCA, EmbeddingGP, KernelSupervisedPCA
from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPClassifier, GPRegressor

X, y = load_iris(return_X_y=True)
NUMBERS = X[:, 0] * X[:, 2]


def gp() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(RBF() + WhiteKernel(0.1), normalize_y=True, random_state=0)


def test_prediction_is_that_of_the_steps() -> None:
    embedding = KernelSupervisedPCA(task="regression").fit(X[::2], NUMBERS[::2])
    scaler = StandardScaler().fit(embedding.transform(X[::2]))
    Z, new = (scaler.transform(embedding.transform(part)) for part in (X[::2], X[1::2]))
    expected = gp().fit(Z, NUMBERS[::2]).predict(new, return_std=True)
    model = EmbeddingGP(KernelSupervisedPCA(), gp(), task="regression").fit(X[::2], NUMBERS[::2])
    np.testing.assert_allclose(model.predict(X[1::2], return_std=True), expected)


def test_several_targets() -> None:
    Y = np.column_stack([NUMBERS, X[:, 1]])
    model = EmbeddingGP(NCA(), gp()).fit(X, Y)
    assert [part.shape for part in model.predict(X[:7], return_std=True)] == [(7, 2), (7, 2)]


def test_probabilities_follow_the_classes() -> None:
    labels = np.array(["c", "a", "b"])[y]
    model = EmbeddingGP(NCA(random_state=0), GaussianProcessClassifier()).fit(X[::2], labels[::2])
    found = model.classes_[model.predict_proba(X[1::2]).argmax(axis=1)]
    assert np.mean(found == labels[1::2]) > 0.93


def test_scale_of_the_embedding_does_not_matter() -> None:
    def prediction(unit: float) -> Any:
        process = GaussianProcessRegressor(alpha=0.1, optimizer=None)
        model = EmbeddingGP(FunctionTransformer(lambda X: unit * X), process, task="regression")
        return model.fit(X[::2], NUMBERS[::2]).predict(X[1::2])

    np.testing.assert_allclose(prediction(1.0), prediction(2.0**12))


def test_given_steps_stay_unfitted() -> None:
    embedding, process = PCA(2), gp()
    EmbeddingGP(embedding, process, task="regression").fit(X, NUMBERS)
    assert not [name for step in (embedding, process) for name in vars(step) if name.endswith("_")]


@pytest.mark.parametrize(("own", "used"), [("auto", "regression"), ("classification", "classification")])
def test_embedding_gets_the_task_unless_it_has_its_own(own: str, used: str) -> None:
    model = EmbeddingGP(NCA(task=own), gp(), task="regression").fit(X, y)
    assert model.embedding_model_.task_ == used


def test_embedding_without_transform_is_refused() -> None:
    with pytest.raises(ValueError, match="'embedding' parameter"):
        EmbeddingGP(gp()).fit(X, NUMBERS)


def test_fit_without_targets_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="requires y"):
        EmbeddingGP(PCA(2), gp()).fit(X, None)


def test_numbers_are_scored_by_r2() -> None:
    assert EmbeddingGP(PCA(2), gp()).fit(X[::2], NUMBERS[::2]).score(X[1::2], NUMBERS[1::2]) > 0.8


def test_gp_of_numbers_is_ours_by_default() -> None:
    model, given = (EmbeddingGP(NCA(), process, task="regression").fit(X, NUMBERS) for process in (None, GPRegressor()))
    np.testing.assert_array_equal(model.predict(X, return_std=True), given.predict(X, return_std=True))


def test_gp_of_classes_is_ours_by_default() -> None:
    assert isinstance(EmbeddingGP(PCA(2)).fit(X[::3], y[::3]).gp_, GPClassifier)
