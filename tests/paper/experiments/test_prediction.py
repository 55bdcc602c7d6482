"""Cells with predictors: fitted to the training part, scored on the other, and the same for equal seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import accuracy_score

from distreduce.exceptions import InvalidInputError
from distreduce_paper import Cell, methods, problems
from distreduce_paper.experiments._prediction import fit_and_score, lacks_task, paper_row


@pytest.fixture(autouse=True)
def _sets():
    problems.add_problem("numbers", problems.Problem(lambda seed: load_diabetes(return_X_y=True), "regression"))
    problems.add_problem("classes", problems.Problem(lambda seed: load_wine(return_X_y=True), "classification"))
    methods.add_predictor(
        "mine", regression=lambda seed: BayesianRidge(), classification=lambda seed: LogisticRegression()
    )


def cell(data: str, method: str = "mine", seed: int = 1) -> Cell:
    return Cell("regression", data, method, seed)


def test_scores_of_numbers_are_those_of_the_held_out_part():
    part = problems.load_split("numbers", 1)
    mean, std = BayesianRidge().fit(part.X_train, part.y_train).predict(part.X_test, return_std=True)
    found = fit_and_score(cell("numbers"))
    assert found["mll"] == pytest.approx(norm(mean, std).logpdf(part.y_test).mean(), rel=1e-5)
    assert found["mse"] == pytest.approx(np.mean((mean - part.y_test) ** 2), rel=1e-5)


def test_scores_of_classes_are_those_of_the_held_out_part():
    part = problems.load_split("classes", 1)
    wanted = accuracy_score(part.y_test, LogisticRegression().fit(part.X_train, part.y_train).predict(part.X_test))
    assert fit_and_score(cell("classes"))["accuracy"] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("data", ["numbers", "classes"])
@pytest.mark.parametrize("method", ["linear", "PCA-GP"])
def test_equal_seeds_give_equal_scores(data, method):
    once, again = fit_and_score(cell(data, method)), fit_and_score(cell(data, method))
    assert {**once, "fit_seconds": 0.0} == {**again, "fit_seconds": 0.0}


@pytest.mark.parametrize("data", ["numbers", "classes"])
def test_scores_can_be_kept(data):
    assert json.loads(json.dumps(fit_and_score(cell(data)))).keys() >= {"fit_seconds"}


def test_the_curve_of_coverage_has_99_levels():
    assert len(fit_and_score(cell("numbers"))["coverage"]) == 99


def test_a_method_without_the_task_is_left_out():
    assert lacks_task("classes", "DGP") and not lacks_task("numbers", "DGP")


def test_a_method_without_the_task_is_refused():
    with pytest.raises(InvalidInputError, match="DGP does not support classification"):
        fit_and_score(cell("classes", "DGP"))


@pytest.mark.parametrize(
    ("method", "row"), [("SDR-GP, paper's recipe", "SDR-GP"), ("NCA-GP", "NCA-GP"), ("ARD GP", None), ("mine", None)]
)
def test_rows_of_the_paper(method, row):
    assert paper_row(method) == row
