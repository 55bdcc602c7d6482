"""Every option does something, and does it right where there is another way to tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from distreduce import SDR, DistR
from distreduce.exceptions import InvalidInputError, SolverConvergenceWarning
from distreduce.kernels import RBF, RationalQuadratic
from distreduce.losses import get_loss

OPTIONS: list[dict[str, Any]] = [
    {"loss": "square"},
    {"solver": "alternating"},
    {"solver": "alternating", "beta": 0.0},
    {"dependence": "cka:mass"},
    {"dependence": "cka:transport"},
    {"dependence": "cka_uncentered"},
    {"dependence": "hsic"},
    {"embedding_kernel": "rbf"},
    {"embedding_kernel": "linear"},
    {"embedding_kernel": RationalQuadratic(alpha=2.0)},
    {"input_kernel": "rq"},
    {"input_kernel": "linear"},
    {"input_kernel": RBF(2.0)},
    {"length_scale": "ard"},
    {"length_scale": 0.5},
    {"length_scale": [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]},
    {"init": "random"},
    {"init": "kmeans"},
    {"init": "spectral"},
    {"init": "supervised_spectral"},
    {"alpha": 0.0},
    {"alpha": 1.0},
    {"eta": 0.0},
    {"perplexity": 5},
    {"n_components": 1},
    {"n_components": 5},
    {"mu": 100.0, "map_reg": 10.0},
    {"target_kernel": "rbf"},
    {"target_kernel": "linear"},
]


# With one prototype per sample there is no start to choose, and the map follows the fit: these change its objective.
OF_THE_FIT = {"loss", "solver", "dependence", "embedding_kernel", "alpha", "eta", "n_components", "target_kernel"}
CHOICES = [(9, options) for options in OPTIONS] + [(None, options) for options in OPTIONS if OF_THE_FIT & set(options)]


def settings(n_prototypes: int | None) -> dict[str, Any]:
    return {"n_prototypes": n_prototypes, "random_state": 0, "max_iter": 200, "max_inner_iter": 1000}


@pytest.fixture(scope="module")
def plain() -> dict[int | None, np.ndarray]:
    """Embeddings without any option, by the number of prototypes."""
    return {}


@pytest.mark.parametrize(("n_prototypes", "options"), CHOICES, ids=str)
def test_option_gives_a_finite_descent_and_changes_the_result(
    n_prototypes: Any, options: dict[str, Any], classification: Any, plain: dict[int | None, np.ndarray]
) -> None:
    """An option that is read nowhere would leave the embedding as it is."""
    model = SDR(**settings(n_prototypes) | options).fit(*classification)
    assert np.isfinite(model.embedding_).all() and (np.diff(model.history_["objective"]) <= 1e-9).all()
    if n_prototypes is None:  # some options say nothing there
        return
    if n_prototypes not in plain:
        plain[n_prototypes] = SDR(**settings(n_prototypes)).fit(*classification).embedding_
    same_by_definition = options in ({"init": "supervised_spectral"}, {"target_kernel": "linear"})
    before, after = plain[n_prototypes], model.embedding_
    assert (before.shape != after.shape or np.abs(before - after).max() > 1e-6) != same_by_definition


@pytest.mark.parametrize("n_prototypes", [None, 9])
def test_the_papers_algorithm(n_prototypes: Any, classification: Any) -> None:
    model = SDR(
        n_prototypes=n_prototypes,
        solver="alternating",
        optimizer="adam",
        learning_rate=0.05,
        max_inner_iter=100,
        max_iter=20,
        tol=1e-3,
        random_state=0,
    ).fit(*classification)
    assert model.history_["cka"].iloc[-1] > 0.8


def test_adam_comes_near_to_lbfgs(classification: Any) -> None:
    lbfgs = SDR(n_prototypes=9, random_state=0).fit(*classification)
    adam = SDR(n_prototypes=9, random_state=0, optimizer="adam", learning_rate=0.02, max_inner_iter=2000)
    assert adam.fit(*classification).objective_ < lbfgs.objective_ + 0.03 * abs(lbfgs.objective_)


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_joint_solver_ends_no_higher_than_the_papers(estimator: type, regression: Any) -> None:
    joint = estimator(random_state=0, max_inner_iter=2000).fit(*regression)
    alternating = estimator(random_state=0, solver="alternating", max_inner_iter=2000).fit(*regression)
    assert joint.objective_ <= alternating.objective_ + 1e-6 * abs(joint.objective_)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("n_prototypes", [None, 9])
@pytest.mark.parametrize("options", [{}, {"loss": "square"}, {"embedding_kernel": "rbf"}, {"dependence": "cka:mass"}])
def test_backends_agree(backend: str, n_prototypes: Any, options: dict[str, Any], classification: Any) -> None:
    settings: dict[str, Any] = {"n_prototypes": n_prototypes, "random_state": 0, "max_inner_iter": 8, "max_iter": 1}
    results = []
    for name in ("numba", backend):
        with pytest.warns(SolverConvergenceWarning):
            results.append(SDR.paper(backend=name, tol=0, **settings, **options).fit_transform(*classification))
    assert_allclose(results[1], results[0], atol=1e-6)


def test_numbers_as_init_are_the_start(classification: Any) -> None:
    """Held to no iteration of its own, a fit from the labels' own partition keeps it."""
    X, y = classification
    model = SDR.paper(n_prototypes=3, init=y, random_state=0).fit(X, y)
    assert_array_equal(model.labels_, y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda T: T.tolist(), lambda T: 7.0 * T])
def test_shares_as_init_equal_numbers_as_init(kind: Any, classification: Any) -> None:
    X, y = classification
    numbers = np.arange(len(X)) % 6
    model = SDR(n_prototypes=6, init=numbers, random_state=0)
    expected = model.fit_transform(X, y)
    assert_allclose(model.set_params(init=kind(np.eye(6)[numbers])).fit_transform(X, y), expected, atol=1e-9)


def test_soft_shares_as_init(classification: Any, rng: np.random.Generator) -> None:
    X, y = classification
    model = SDR(n_prototypes=6, init=rng.dirichlet(np.ones(6), len(X)), random_state=0).fit(X, y)
    assert_allclose(np.asarray(model.coupling_.sum(axis=1)).ravel(), 1.0, atol=1e-10)


def test_identity_is_the_default_of_as_many_prototypes(classification: Any) -> None:
    X, y = classification
    named = SDR(init="identity", random_state=0).fit_transform(X, y)
    assert_array_equal(named, SDR(n_prototypes=len(X), random_state=0).fit_transform(X, y))


def test_init_array_for_as_many_prototypes_as_samples(classification: Any) -> None:
    X, y = classification
    model = SDR(init=np.arange(len(X)), random_state=0).fit(X, y)
    assert model.objective_ == pytest.approx(SDR(random_state=0).fit(X, y).objective_, rel=1e-4)


def test_ard_gives_an_idle_feature_a_long_scale(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 2))
    model = SDR(length_scale="ard", random_state=0).fit(X, np.sin(2 * X[:, 0]))
    assert model.map_.kernel.length_scale[1] > 10 * model.map_.kernel.length_scale[0]


def test_length_scale_is_in_the_units_of_x(regression: Any) -> None:
    X, y = regression
    small = SDR(length_scale=0.7, random_state=0).fit(X, y)
    large = SDR(length_scale=0.7 * 64, random_state=0).fit(64 * X, y)
    assert_array_equal(large.embedding_, small.embedding_)


def test_random_starts_differ_with_the_seed(classification: Any) -> None:
    X, y = classification
    first, second = (SDR(n_prototypes=9, init="random", random_state=seed).fit_transform(X, y) for seed in (0, 1))
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("name", ["poisson", "geometric", "itakura_saito"])
def test_losses_for_positive_targets_are_scale_aware(name: str, regression: Any) -> None:
    X, y = regression
    model = SDR(n_prototypes=6, target_loss=name, random_state=0).fit(X, np.exp(y))
    assert (model.prototype_targets_ > 0).all()


def test_loss_may_be_an_object(regression: Any) -> None:
    X, y = regression
    model = SDR(n_prototypes=6, target_loss=get_loss("poisson"), random_state=0)
    expected = model.fit_transform(X, np.exp(y))
    assert_array_equal(model.set_params(target_loss="poisson").fit_transform(X, np.exp(y)), expected)


def test_geometric_loss_gives_geometric_means(regression: Any) -> None:
    X, y = regression
    model = SDR(n_prototypes=6, target_loss="geometric", random_state=0).fit(X, np.exp(y))
    T = model.coupling_.toarray()
    used = T.sum(axis=0) > 0
    expected = np.exp((T.T @ y)[used] / T.sum(axis=0)[used])
    assert_allclose(model.prototype_targets_[used, 0], expected, rtol=1e-10)


def test_eta_zero_is_fgw_alone(classification: Any) -> None:
    model = SDR(n_prototypes=9, eta=0.0, random_state=0).fit(*classification)
    assert (model.history_["dependence"] == 0).all()


def test_init_array_is_in_the_order_of_the_samples(classification: Any) -> None:
    X, y = classification
    named = SDR(init="identity", random_state=0).fit_transform(X, y)
    assert_array_equal(SDR(init=np.arange(len(X)), random_state=0).fit_transform(X, y), named)


@pytest.mark.parametrize("solver", ["joint", "alternating"])
def test_init_array_that_leaves_a_prototype_of_its_own_sample_empty_is_refused(solver: str, regression: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"prototype \d+ gets (0|60) instead of 1"):
        SDR(init=np.zeros(60, dtype=int), solver=solver, random_state=0).fit(*regression)


@pytest.mark.parametrize("init", ["identity", "random", "kmeans", "spectral", "supervised_spectral"])
def test_one_prototype_a_sample_carries_its_weight_from_any_start(init: str, regression: Any) -> None:
    X, y = regression
    weights = 1.0 + np.arange(len(X)) % 3
    model = SDR(init=init, random_state=0).fit(X, y, sample_weight=weights)
    assert_allclose(model.coupling_.T @ weights, weights, rtol=1e-9)


def test_shares_that_give_all_prototypes_one_target_have_no_dependence(regression: Any) -> None:
    """What centring leaves of a constant kernel is rounding, which must not be taken for a direction."""
    X, y = regression
    model = SDR(init=np.ones((60, 60)), solver="alternating", max_iter=0, random_state=0).fit(X, y)
    assert model.history_["cka"].iloc[0] == 0.0


def test_the_picture_of_one_number_is_a_plane():
    """With a kernel of length scale 1 on the prototypes, 0.016 of the variance is off the line; here 0.07."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    model = SDR(random_state=0).fit(X, X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=120))
    share = np.linalg.eigvalsh(np.cov(model.embedding_left_out_.T))
    assert share[0] / share.sum() > 0.04 and model.neighbor_scores_["left_out"] > 0.9
