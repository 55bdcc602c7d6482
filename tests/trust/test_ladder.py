"""Numbers that leave their range at every rung of a reduction's ladder (decision 17): what is kept, what is told."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from trust.faults import MODELS, NUMBERS, Faulty, X, fails, nan, numbers, refuses

from distreduce import SDR
from distreduce._utils import linalg
from distreduce.exceptions import IllConditionedWarning, NumericalError, RolledBackWarning
from distreduce.mapping import KernelMap, MapRegression
from distreduce.mapping.landmarks import LandmarkRegression
from distreduce.solver import dense, objective
from distreduce.solver.dense import DenseOracle
from distreduce.solver.sharded import ShardedOracle

pytestmark = pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
KINDS = pytest.mark.parametrize("kind", MODELS)
EVERY_FAULT = pytest.mark.parametrize("fault", [nan, fails(np.linalg.LinAlgError("injected"))], ids=["nan", "raises"])
ALWAYS = np.inf


@cache
def undisturbed(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[kind]().fit(X, NUMBERS)


@pytest.fixture
def evaluations(monkeypatch: Any) -> Any:
    """Spoil calls of the embedding's objective: of the asked for backend, or of NumPy's too."""

    def spoil(fault: Any, first: int, last: float | None = None, *, numpy_too: bool = True) -> Faulty:
        counter = Faulty(lambda value: value, fault, first, last)
        real = objective.make_objective

        def make(problem: Any, backend: str = "auto", *rest: Any) -> Any:
            objective = real(problem, backend, *rest)
            return (lambda Z: counter(objective(Z))) if numpy_too or backend != "numpy" else objective

        monkeypatch.setattr(objective, "make_objective", make)
        return counter

    return spoil


def oracles(monkeypatch: Any, method: str, fault: Any, first: int, last: float | None = None) -> list[Faulty]:
    """Spoil a method of both oracles."""
    found = [Faulty(getattr(oracle, method), fault, first, last) for oracle in (DenseOracle, ShardedOracle)]
    for oracle, faulty in zip((DenseOracle, ShardedOracle), found, strict=True):
        monkeypatch.setattr(oracle, method, faulty)
    return found


# Smaller step.
@KINDS
@EVERY_FAULT
@pytest.mark.parametrize("call", [2, 7])
def test_an_evaluation_that_fails_costs_a_step_and_nothing_else(evaluations, kind, fault, call):
    evaluations(fault, call)
    model = MODELS[kind]().fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all()
    assert model.objective_ <= undisturbed(kind).history_["objective"][0] + 1e-3 * abs(undisturbed(kind).objective_)


@EVERY_FAULT
def test_adam_goes_on_with_half_the_step(evaluations, fault):
    evaluations(fault, 5)
    model = SDR(8, optimizer="adam", learning_rate=0.1, max_iter=0, max_inner_iter=60, random_state=0).fit(X, NUMBERS)
    assert model.history_["n_evaluations"][0] > 20 and np.isfinite(numbers(model)).all()


# The equations in NumPy's double precision, in the place of a backend that finds no number.
@KINDS
def test_a_backend_that_never_answers_is_replaced(evaluations, kind):
    evaluations(nan, 1, ALWAYS, numpy_too=False)
    model = MODELS[kind]().fit(X, NUMBERS)
    np.testing.assert_allclose(model.objective_, undisturbed(kind).objective_, rtol=0.05)


# Double precision.
def test_an_affinity_that_leaves_single_precision_is_computed_in_double(monkeypatch):
    expected = undisturbed("SDR, dense").embedding_
    monkeypatch.setattr(dense, "SINGLE_PRECISION_FROM", 2)
    real, seen = dense.symmetric_entropic_affinity, []

    def only_double(distances, *rest, **options):
        seen.append(distances.dtype.name)
        found = real(distances, *rest, **options)
        if distances.dtype == np.float32:
            found.matrix[0, 0] = np.nan
        return found

    monkeypatch.setattr(dense, "symmetric_entropic_affinity", only_double)
    model = MODELS["SDR, dense"]().fit(X, NUMBERS)
    assert seen == ["float32", "float64"]
    np.testing.assert_array_equal(model.embedding_, expected)


def test_an_affinity_that_is_never_finite_is_an_error_with_a_name(monkeypatch):
    real = dense.symmetric_entropic_affinity

    def broken(*args, **options):
        found = real(*args, **options)
        found.matrix[0, 0] = np.nan
        return found

    monkeypatch.setattr(dense, "symmetric_entropic_affinity", broken)
    with pytest.raises(NumericalError, match="affinity is not finite"):
        MODELS["SDR, dense"]().fit(X, NUMBERS)


@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_a_structure_that_is_not_finite_is_an_error_that_carries_the_start(monkeypatch, kind):
    oracles(monkeypatch, "structure_constant", nan, 1)
    with pytest.raises(NumericalError, match="affinity is not finite") as caught:
        MODELS[kind]().fit(X, NUMBERS)
    assert caught.value.best.plan.shape == (120, 8) and caught.value.best.history == ()


# Jitter.
@pytest.mark.parametrize("kind", ["SDR, dense", "DistR, sparse"])
def test_a_map_that_is_not_positive_definite_gets_jitter(monkeypatch, kind):
    monkeypatch.setattr(linalg, "factorise_in_place", Faulty(linalg.factorise_in_place, refuses, 1))
    with pytest.warns(IllConditionedWarning, match="1e-10"):
        model = MODELS[kind]().fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all()


@pytest.mark.parametrize("kind", ["SDR, dense", "DistR, sparse"])
def test_a_map_that_no_jitter_repairs_is_an_error_with_a_name(monkeypatch, kind):
    faulty = Faulty(linalg.factorise_in_place, refuses, 1, ALWAYS)
    monkeypatch.setattr(linalg, "factorise_in_place", faulty)
    with pytest.raises(NumericalError, match="far from positive definite"):
        MODELS[kind]().fit(X, NUMBERS)
    assert faulty.calls == 12


# Roll back.
STEPS = {"the T-step": "couple", "the map's values": "map_fitted"}


@KINDS
@EVERY_FAULT
@pytest.mark.parametrize("method", STEPS.values(), ids=STEPS)
def test_a_coupling_that_fails_leaves_the_state_before_it(monkeypatch, kind, fault, method):
    oracles(monkeypatch, method, fault, 1)
    with pytest.warns(RolledBackWarning, match="Outer iteration 1 failed"):
        model = MODELS[kind]().fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all() and not model.converged_
    assert model.objective_ <= undisturbed(kind).history_["objective"][0]


@KINDS
@EVERY_FAULT
@pytest.mark.parametrize("method", ["map_quadratic", "dependence_target", "supervision"])
def test_an_embedding_that_fails_on_a_new_plan_leaves_the_state_before_it(monkeypatch, kind, fault, method):
    before = undisturbed(kind)
    spoilt = oracles(monkeypatch, method, fault if method != "dependence_target" else _spoilt_target(fault), 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RolledBackWarning)
        model = MODELS[kind]().fit(X, NUMBERS)
    told = [str(one.message) for one in caught if one.category is RolledBackWarning]
    assert np.isfinite(numbers(model)).all() and model.objective_ <= before.history_["objective"][0]
    assert bool(told) == (max(faulty.calls for faulty in spoilt) >= 2 and not (kind[0] == "D" and method[0] == "d"))


def _spoilt_target(fault):
    return lambda value: value if value[0] is None else fault(value)


@KINDS
def test_evaluations_that_fail_from_some_call_on_leave_the_best_state(evaluations, kind):
    evaluations(nan, 12, ALWAYS)
    with pytest.warns(RolledBackWarning, match="kept the best state"):
        model = MODELS[kind]().fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all() and not model.converged_
    assert model.history_["objective"].is_monotonic_decreasing


def test_no_memory_in_mid_fit_leaves_the_state_before_it(monkeypatch):
    oracles(monkeypatch, "couple", fails(MemoryError("injected")), 2)
    with pytest.warns(RolledBackWarning, match="MemoryError"):
        model = MODELS["SDR, dense"]().fit(X, NUMBERS)
    assert model.n_iter_ >= 2


def test_the_warning_points_at_the_callers_line(monkeypatch):
    oracles(monkeypatch, "couple", nan, 1)
    with pytest.warns(RolledBackWarning) as caught:
        MODELS["SDR, dense"]().fit(X, NUMBERS)
    assert caught[0].filename == __file__


# The error, with what there is.
@KINDS
@EVERY_FAULT
def test_no_first_embedding_is_an_error_that_carries_the_start(evaluations, kind, fault):
    evaluations(fault, 1, ALWAYS)
    with pytest.raises(NumericalError, match="first embedding") as caught:
        MODELS[kind]().fit(X, NUMBERS)
    assert np.isfinite(caught.value.best.prototypes).all() and caught.value.best.history == ()


@KINDS
@EVERY_FAULT
def test_no_map_is_an_error_that_carries_the_reduction(monkeypatch, kind, fault):
    # The dense map is solved for before every T-step as well; the last call is the map of the result, or of a fold.
    with monkeypatch.context() as watching:
        watched = Faulty(MapRegression.coefficients, nan, 0)
        watching.setattr(MapRegression, "coefficients", watched)
        MODELS[kind]().fit(X, NUMBERS)
    for projection, call in ((MapRegression, watched.calls), (LandmarkRegression, 1)):
        monkeypatch.setattr(projection, "coefficients", Faulty(projection.coefficients, fault, call))
    with pytest.raises(NumericalError, match="`best`") as caught:
        MODELS[kind]().fit(X, NUMBERS)
    assert caught.value.best.objective == undisturbed(kind).objective_


@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_a_place_that_is_not_finite_is_an_error_and_leaves_an_earlier_fit(monkeypatch, kind):
    model = MODELS[kind]().fit(X, NUMBERS)
    before = numbers(model)
    monkeypatch.setattr(KernelMap, "__call__", Faulty(KernelMap.__call__, nan, 1))
    with pytest.raises(NumericalError, match="embedding_") as caught:
        model.fit(X[::-1], NUMBERS[::-1])
    np.testing.assert_array_equal(numbers(model), before)
    assert caught.value.best.history
