"""The GP regressors as scikit-learn estimators: parameters, pipelines, frames, seeds, threads, no side effects."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from light_predictors import light_predictors
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_checks import ABOUT_THE_EXPERTS, parametrize_with_some_checks
from threadpoolctl import threadpool_info

from distreduce.exceptions import InvalidInputError, UnsavableModelError
from distreduce.gp import GPRegressor, SDRGPClassifier, SDRGPRegressor

pytestmark = pytest.mark.usefixtures("light")
X, Y = make_friedman1(60, n_features=5, noise=1.0, random_state=0)
Y2 = np.c_[Y, np.cos(3 * X[:, 0])]
QUICK = SDRGPRegressor(experts=["linear"], gp_steps=3, random_state=0)
PROTOTYPES = clone(QUICK).set_params(n_prototypes=10)
MODELS = {"plain": GPRegressor(gp_steps=10), "default": QUICK, "prototypes": PROTOTYPES}


@parametrize_with_checks([GPRegressor(gp_steps=5), SDRGPRegressor(residual=False, gp_steps=3)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_some_checks([SDRGPRegressor(gp_steps=3)], ABOUT_THE_EXPERTS)
def test_scikit_learn_check_of_all_experts(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    with light_predictors():
        return clone(QUICK).fit(X, Y)


def test_clone_keeps_the_parameters(fitted):
    assert clone(fitted).get_params() == QUICK.get_params()


def test_the_papers_recipe_is_a_set_of_parameters():
    recipe = SDRGPRegressor.paper(3, gp_steps=7).get_params()
    asked = {key: recipe[key] for key in ("n_components", "gp_steps", "training_inputs", "residual", "length_scale")}
    assert asked == {"n_components": 3, "gp_steps": 7, "training_inputs": "fitted", "residual": False,
                     "length_scale": "median"}  # fmt: skip


def test_fitting_again_forgets_the_first_fit(fitted):
    again = clone(QUICK).fit(X[:30, :3], Y2[:30]).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize("name", MODELS)
def test_a_negative_weight_is_named(name):
    with pytest.raises(InvalidInputError, match=r"sample_weight must not be negative; row 3 has -1\.0"):
        clone(MODELS[name]).fit(X, Y, sample_weight=np.where(np.arange(60) == 3, -1.0, 1.0))


def test_fit_transform_is_fit_then_transform(fitted):
    np.testing.assert_array_equal(clone(QUICK).fit_transform(X, Y), fitted.transform(X))


def test_the_embedding_has_names(fitted):
    assert list(fitted.get_feature_names_out()) == ["sdrgpregressor0", "sdrgpregressor1"]


def test_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), clone(QUICK)).fit(X, Y)
    mean, std = pipeline.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)


def test_grid_search_over_components():
    search = GridSearchCV(clone(QUICK), {"n_components": [1, 2]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_estimator_.transform(X).shape == (60, search.best_params_["n_components"])


def test_cross_validation_of_several_targets():
    assert cross_val_predict(GPRegressor(gp_steps=10), X, Y2, cv=2).shape == (60, 2)


@pytest.mark.parametrize("name", MODELS)
def test_frames_are_taken_with_their_names(name):
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(MODELS[name]).fit(frame, pd.Series(Y))
    np.testing.assert_array_equal(model.predict(frame), clone(MODELS[name]).fit(X, Y).predict(X))
    assert list(model.feature_names_in_) == list("abcde")


def test_frames_with_other_names_are_refused():
    model = GPRegressor(gp_steps=2).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("vwxyz")))


@pytest.mark.parametrize("name", MODELS)
def test_training_data_are_not_changed(name):
    inputs, target = X.copy(), Y2.copy()
    clone(MODELS[name]).fit(inputs, target).predict(inputs)
    np.testing.assert_array_equal(np.c_[inputs, target], np.c_[X, Y2])


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(name):
    one, three = (clone(MODELS[name]).set_params(n_jobs=n).fit(X, Y2) for n in (1, 3))
    np.testing.assert_array_equal(one.predict(X, return_std=True), three.predict(X, return_std=True))


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_bits(name):
    first, second = (clone(MODELS[name]).fit(X, Y).predict(X, return_std=True) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_random_state_object_is_taken_and_advanced():
    state = np.random.RandomState(0)
    clone(PROTOTYPES).set_params(random_state=state).fit(X, Y)
    assert state.uniform() != np.random.RandomState(0).uniform()


def test_without_a_seed_numpys_generator_stays_as_it_is():
    generator = np.random.mtrand._rand
    words, position = generator.get_state()[1].copy(), generator.get_state()[2]
    clone(PROTOTYPES).set_params(random_state=None).fit(X, Y)
    assert (generator.get_state()[1] == words).all() and generator.get_state()[2] == position


@pytest.mark.parametrize("name", MODELS)
def test_nothing_global_is_changed(name):
    torch = pytest.importorskip("torch")

    def state():
        threads = {library["filepath"]: library["num_threads"] for library in threadpool_info()}
        numbers = np.random.mtrand._rand.get_state()[1].tobytes()
        seed, dtype = torch.random.get_rng_state().numpy().tobytes(), torch.get_default_dtype()
        return threads, numbers, seed, dtype, torch.get_num_threads(), torch.is_grad_enabled(), list(warnings.filters)

    clone(MODELS[name]).fit(X, Y)  # imports what it needs
    before = state(), np.geterr()
    clone(MODELS[name]).fit(X, Y).predict(X, return_std=True)
    assert (state(), np.geterr()) == before


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_prototypes": 1},
        {"eta": -1.0},
        {"perplexity": 0.5},
        {"length_scale": "other"},
        {"map_reg": 0.0},
        {"training_inputs": "seen"},
        {"feature_scaling": "minmax"},
        {"experts": "linear"},
        {"residual": "yes"},
        {"max_reduction_samples": 1},
        {"gp_optimizer": "sgd"},
        {"gp_steps": 0},
        {"gp_lr": 0.0},
        {"n_jobs": 0},
    ],
)
def test_parameters_are_checked_at_fit(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SDRGPRegressor(**parameters).fit(X, Y)


def test_no_torch_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert np.isfinite(clone(PROTOTYPES).fit(X, Y).predict(X)).all()


def test_without_residual_only_the_embedding_predicts():
    model = clone(QUICK).set_params(residual=False).fit(X, Y)
    assert list(model.stacks_[0].processes) == ["embedding"]


def test_experts_of_all_kinds_take_part():
    X, Y = make_friedman1(60, n_features=5, noise=1.0, random_state=1)
    every = clone(QUICK).set_params(experts=None).fit(X, Y).stacks_[0]  # none of them gets a weight near zero here
    assert set(every.processes) == {"embedding", "inputs", "rough_inputs", "isotropic", "linear", "forest", "boosting"}
    assert set(every.weights) == set(every.processes)


def test_an_expert_of_ones_own_joins_but_cannot_be_saved(tmp_path):
    own = KNeighborsRegressor(3)
    model = clone(QUICK).set_params(experts=["linear", own]).fit(X, Y)
    assert model.stacks_[0].weights["KNeighborsRegressor 1"] > 0
    inner = model.stacks_[0].processes["KNeighborsRegressor 1"].model
    assert inner is not own and not hasattr(own, "n_features_in_")
    np.testing.assert_allclose(
        inner.predict(X / model.input_scale_) * Y.std() + Y.mean(),
        own.fit(X / model.input_scale_, Y).predict(X / model.input_scale_),
    )
    with pytest.raises(UnsavableModelError, match="KNeighborsRegressor"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("experts", [["trees"], ["inputs"], [3], [KNeighborsRegressor]])
def test_unknown_experts_are_refused(experts):
    with pytest.raises(InvalidInputError, match=r"experts has .*'linear', 'forest', 'boosting'"):
        clone(QUICK).set_params(experts=experts).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "expert", "words"),
    [
        (QUICK, LogisticRegression(), "regressors"),
        (QUICK, StandardScaler(), "regressors"),
        (SDRGPClassifier(2, gp_steps=1), Ridge(), "with predict_proba"),
    ],
)
def test_experts_of_another_task_are_refused(model, expert, words):
    with pytest.raises(InvalidInputError, match=rf"experts has {type(expert).__name__}\(.*{words}"):
        clone(model).set_params(experts=[expert]).fit(X, Y if words == "regressors" else Y > Y.mean())


def test_the_reduction_sees_no_more_samples_than_asked_for():
    model = clone(PROTOTYPES).set_params(max_reduction_samples=25).fit(X, Y)
    assert len(model.reduction_.embedding_) == 25


@pytest.mark.parametrize("estimator", [GPRegressor(), SDRGPRegressor()])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "b"] * 10, r"cannot be read as numbers \(could not convert string to float: 'a'\)"),
        (np.arange(20).astype("datetime64[D]"), "dates or durations"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(estimator, y, words):
    with pytest.raises(InvalidInputError, match=words):
        estimator.fit(np.arange(20.0)[:, None], y)
