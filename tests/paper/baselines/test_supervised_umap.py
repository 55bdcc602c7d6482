"""Supervised UMAP against umap-learn called directly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from some_checks import parametrize_with_some_checks

import distreduce
from distreduce_paper.baselines import SupervisedUMAP

X, y = load_iris(return_X_y=True)
X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no duplicates
SOURCE = str(Path(distreduce.__file__).parents[1])

WITHOUT_UMAP = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "umap":
            raise ModuleNotFoundError("No module named 'umap'", name="umap")
sys.meta_path.insert(0, Missing())
sys.path.insert(0, {SOURCE!r})
import numpy as np
from distreduce_paper.baselines import SupervisedUMAP
from distreduce.exceptions import MissingDependencyError
try:
    SupervisedUMAP().fit(np.eye(6), np.arange(6) % 2)
except MissingDependencyError as error:
    print(error)
"""


def test_without_umap_the_extra_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_UMAP], capture_output=True, text=True, check=True)
    assert "distreduce[umap]" in done.stdout


@pytest.fixture(scope="module")
def model() -> Any:
    pytest.importorskip("umap", exc_type=ImportError)
    return SupervisedUMAP(random_state=0).fit(X[::2], y[::2])


@pytest.fixture(scope="module")
def original(model: Any) -> Any:
    import umap

    seed = np.random.RandomState(0).randint(2**31 - 1)
    settings = {"n_neighbors": 50, "min_dist": 0.1, "target_metric": "categorical", "n_jobs": 1}
    return umap.UMAP(random_state=seed, **settings).fit(X[::2], y[::2])


@pytest.mark.slow
def test_fit_is_that_of_umap(model: Any, original: Any) -> None:
    np.testing.assert_array_equal(model.umap_.embedding_, original.embedding_)


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 1])
def test_a_sample_seen_or_not_is_where_umap_puts_it(row: int, model: Any, original: Any) -> None:
    np.testing.assert_array_equal(model.transform(X[[row]]), original.transform(X[[row]]))


@pytest.mark.slow
def test_place_does_not_depend_on_the_company(model: Any) -> None:
    np.testing.assert_array_equal(model.transform(X[:9])[::-1], model.transform(X[:9][::-1]))


@pytest.mark.slow
def test_classes_part(model: Any) -> None:
    knn = KNeighborsClassifier(5).fit(model.transform(X[::2]), y[::2])
    assert knn.score(model.transform(X[1::6]), y[1::6]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("Y", [X[:12, 0], X[:12, :2]])
def test_small_data_have_fewer_neighbours(model: Any, Y: np.ndarray) -> None:
    assert SupervisedUMAP(random_state=0).fit(X[:12], Y).umap_.n_neighbors == 11


@pytest.mark.slow
def test_global_random_numbers_are_not_touched(model: Any) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    SupervisedUMAP().fit(X[::5], y[::5]).transform(X[:2])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
def test_groups_without_a_link_pass_without_remark(model: Any) -> None:
    groups = np.repeat(np.arange(4), 40)
    points = np.random.default_rng(0).normal(size=(160, 3)) + 1e4 * groups[:, None]
    found = SupervisedUMAP(n_neighbors=5, random_state=0).fit_transform(points, groups)
    assert KNeighborsClassifier(3).fit(found, groups).score(found, groups) == 1.0


@pytest.mark.slow  # umap-learn compiles for half a minute, and places rows one by one
@parametrize_with_some_checks(
    [SupervisedUMAP()],
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
