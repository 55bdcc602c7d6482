"""The cases of ``distreduce bench``: what is timed is what it says."""

from __future__ import annotations

import time

import pytest
from sklearn.datasets import load_iris

from distreduce import SDR
from distreduce_paper import bench
from distreduce_paper.bench import Case, CaseResult, make_cases, run_cases

X, Y = load_iris(return_X_y=True)


def run(case: Case) -> CaseResult:
    (outcome,) = run_cases([case], lambda words: None)
    return outcome


def slept(seconds: float) -> float:
    time.sleep(seconds)
    return 0.0


@pytest.fixture(scope="module")
def outcome() -> CaseResult:
    return run(Case("", (3, 2), "J", {"ours": lambda: slept(0.05), "other": lambda: slept(0.1)}))


def test_seconds_are_those_of_the_fit(outcome):
    assert [run.seconds >= least for run, least in zip(outcome.timings, (0.05, 0.1), strict=True)] == [True, True]


def test_the_ratio_is_of_the_yardstick_to_ours(outcome):
    assert outcome.ratio == outcome.timings[1].seconds / outcome.timings[0].seconds


def test_every_fit_is_announced():
    said = []
    list(run_cases([Case("a set", (3, 2), "J", {"ours": lambda: 0.0, "other": lambda: 0.0})], said.append))
    assert said == ["a set: ours", "a set: other"]


@pytest.mark.parametrize(
    ("by", "options"),
    [("SDR", {}), ("paper's algorithm", {"solver": "alternating", "optimizer": "adam", "max_inner_iter": 1000})],
)
@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
def test_a_reduction_reaches_the_objective_of_its_solver(by, options):
    reached = bench._reduction("iris", X, Y, 8).fits[by]()
    assert reached == pytest.approx(SDR.paper(n_prototypes=8, random_state=0, **options).fit(X, Y).objective_)


def test_both_gaussian_processes_learn_what_is_there_to_learn():
    outcome = run(bench._regression("iris", X[:, :2], X[:, 2]))
    assert min(run.value for run in outcome.timings) > 0.8


@pytest.mark.parametrize(("quick", "names"), [(True, {"wine", "digits", "diabetes"}), (False, {"mixture of 12"})])
def test_cases_are_named_by_their_data_and_have_one_reference(quick, names):
    found = make_cases(quick=quick)
    assert names <= {case.name.split(",")[0] for case in found} and {len(case.fits) for case in found} == {2}
