"""The registries: what is registered can be made for both tasks, and its seed decides."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from distreduce import baselines
from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPClassifier, GPRegressor
from distreduce_paper import methods, problems

PREDICTORS = [
    (name, task)
    for name, one in methods.PREDICTORS.items()
    for task in ("regression", "classification")
    if getattr(one, task) is not None
]


def random_states(model: BaseEstimator) -> set:
    """The seeds in a model, but those of regression GPs, which draw nothing."""
    parts = {"": model, **model.get_params()}
    owners = {name: parts[name.rpartition("__")[0]] for name in parts if name.split("__")[-1] == "random_state"}
    return {parts[name] for name, owner in owners.items() if not isinstance(owner, GPRegressor)}


@pytest.mark.parametrize(("name", "task"), PREDICTORS)
def test_a_predictor_is_made_anew_with_its_seed_and_no_other(name, task):
    make = getattr(methods.PREDICTORS[name], task)
    assert random_states(clone(make(7))) <= {7} and make(7) is not make(7)


@pytest.mark.parametrize("name", sorted(methods.EMBEDDINGS.keys() - {"all features"}))
def test_an_embedding_has_the_components_and_the_seed_asked_for(name):
    model = methods.EMBEDDINGS[name](3, 7)
    assert model.n_components == 3 and random_states(model) <= {7}


@pytest.mark.parametrize("name", methods.REDUCTIONS)
def test_a_reduction_has_the_prototypes_the_perplexity_and_the_seed_asked_for(name):
    model = methods.REDUCTIONS[name](9, 12.0, 7)
    assert (model.n_prototypes, model.perplexity, model.random_state) == (9, 12.0, 7)


@pytest.mark.parametrize(("task", "n_components"), [("regression", 2), ("classification", 10)])
def test_an_embedding_comes_with_the_papers_gp(task, n_components):
    methods.add_embedding("mine", lambda p, seed: PCA(p, random_state=seed))
    model = getattr(methods.PREDICTORS["mine-GP"], task)(0)
    assert isinstance(model, baselines.EmbeddingGP) and model.embedding.n_components == n_components


def test_an_embedding_without_a_gp_is_no_predictor():
    methods.add_embedding("mine", lambda p, seed: PCA(p), with_gp=False)
    assert "mine-GP" not in methods.PREDICTORS


@pytest.mark.parametrize(
    ("task", "gp"),
    [
        ("regression", GPRegressor(gp_optimizer="adam", gp_steps=20, gp_lr=0.1)),
        ("classification", GPClassifier(gp_optimizer="adam", gp_steps=50, gp_lr=0.1, random_state=0)),
    ],
)
def test_the_papers_gp_takes_20_steps_for_regression_and_50_for_classification(task, gp):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = getattr(methods.PREDICTORS["PCA-GP"], task)(0)
    wanted = baselines.EmbeddingGP(clone(model.embedding), gp, task=task)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), wanted.fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("add", "name"),
    [
        (lambda name: methods.add_predictor(name), "SDR-GP"),
        (lambda name: methods.add_embedding(name, None), "NCA"),
        (lambda name: methods.add_reduction(name, None), "DistR"),
        (lambda name: problems.add_problem(name, None), "boston"),
    ],
)
def test_a_name_of_the_package_is_refused(add, name):
    with pytest.raises(InvalidInputError, match="choose another name"):
        add(name)
