"""scikit-learn's own checks of every baseline that needs neither torch nor umap, with no failure expected."""

from __future__ import annotations

from typing import Any

from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_checks import ABOUT_THE_FIT, parametrize_with_some_checks

from distreduce.baselines import NCA, ConstantSpread, EmbeddingGP, KernelSupervisedPCA
from distreduce_paper.baselines import LinearBaseline


@parametrize_with_checks(
    [
        ConstantSpread(Ridge()),
        NCA(),
        KernelSupervisedPCA(),
        LinearBaseline(),
        EmbeddingGP(KernelSupervisedPCA(), GaussianProcessRegressor(alpha=0.1, optimizer=None), task="regression"),
        EmbeddingGP(KernelSupervisedPCA(), GaussianProcessClassifier(optimizer=None), task="classification"),
    ]
)
def test_scikit_learn_accepts_the_baseline(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_some_checks(
    [
        NCA(task="regression"),
        NCA(task="classification"),
        KernelSupervisedPCA(task="regression"),
        KernelSupervisedPCA(input_kernel="linear", target_kernel="linear"),
        LinearBaseline(task="regression"),
        LinearBaseline(task="classification"),
        EmbeddingGP(KernelSupervisedPCA(), task="regression"),
    ],
    tuple(name for name in ABOUT_THE_FIT if "weight" not in name),
)
def test_scikit_learn_accepts_the_fit_with_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)
