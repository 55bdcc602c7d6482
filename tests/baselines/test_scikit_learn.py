"""scikit-learn's own checks of every baseline that needs neither torch nor umap, with no failure expected."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_checks import parametrize_with_some_checks

from distreduce.baselines import NCA, ConstantSpread, EmbeddingGP, KernelSupervisedPCA
from distreduce_paper.baselines import LinearBaseline, SupervisedUMAP


@parametrize_with_checks(
    [
        ConstantSpread(Ridge()),
        NCA(),
        NCA(task="regression"),
        NCA(task="classification"),
        KernelSupervisedPCA(),
        KernelSupervisedPCA(task="regression"),
        KernelSupervisedPCA(input_kernel="linear", target_kernel="linear"),
        LinearBaseline(),
        LinearBaseline(task="regression"),
        LinearBaseline(task="classification"),
        EmbeddingGP(KernelSupervisedPCA(), GaussianProcessRegressor(alpha=0.1, optimizer=None), task="regression"),
        EmbeddingGP(KernelSupervisedPCA(), task="regression"),
        EmbeddingGP(KernelSupervisedPCA(), GaussianProcessClassifier(optimizer=None), task="classification"),
    ]
)
def test_scikit_learn_accepts_the_baseline(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow  # umap-learn compiles for half a minute, and places rows one by one
@parametrize_with_some_checks(
    SupervisedUMAP(),
    (
        "check_estimator_cloneable",
        "check_fit_idempotent",
        "check_estimators_dtypes",
        "check_estimators_pickle",
        "check_transformer_general",
        "check_n_features_in_after_fitting",
        "check_estimators_nan_inf",
    ),
)
def test_scikit_learn_accepts_umap(estimator: Any, check: Any) -> None:
    pytest.importorskip("umap", exc_type=ImportError)
    check(estimator)
