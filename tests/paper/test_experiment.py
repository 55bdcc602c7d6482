"""Which cells an experiment has, and which of them a selection takes."""

from __future__ import annotations

import pytest

from distreduce.exceptions import InvalidInputError
from distreduce_paper import NAMES, Experiment, Selection, load_experiment, methods, problems
from distreduce_paper.experiment import check_selection

GRID = Experiment(
    "grid",
    "A grid",
    "nothing",
    report=lambda frame: [],
    datasets=("a", "b"),
    methods=("x", "y"),
    grid={"m": (1, 2, 3), "eta": (0.1, 1.0)},
    quick_grid={"m": (1,), "eta": (0.1,)},
    skips=lambda data, method: (data, method) == ("b", "y"),
    run=lambda cell: {},
)


def test_every_combination_is_a_cell_once():
    assert len({cell.key for cell in GRID.cells()}) == len(GRID.cells()) == 3 * (3 * 2) * 5


def test_pairs_that_do_not_go_together_are_left_out():
    assert {(cell.data, cell.method) for cell in GRID.cells()} == {("a", "x"), ("a", "y"), ("b", "x")}


def test_quick_takes_the_quick_grid_and_two_seeds():
    cells = GRID.cells(Selection(quick=True))
    assert {(*cell.parameters.values(), cell.seed, cell.quick) for cell in cells} == {
        (1, 0.1, 0, True),
        (1, 0.1, 1, True),
    }


def test_quick_takes_no_more_seeds_than_there_are():
    one = Experiment("one", "", "", lambda frame: [], datasets=("a",), methods=("x",), seeds=1)
    assert [cell.seed for cell in one.cells(Selection(quick=True))] == [0]


@pytest.mark.parametrize("quick", [True, False])
def test_the_number_of_seeds_asked_for_counts(quick):
    assert {cell.seed for cell in GRID.cells(Selection(seeds=7, quick=quick))} == set(range(7))


def test_fewer_seeds_are_a_part_of_more():
    assert set(GRID.cells(Selection(seeds=2))) < set(GRID.cells(Selection(seeds=3)))


def test_names_asked_for_come_in_their_order():
    assert list(dict.fromkeys(cell.method for cell in GRID.cells(Selection(methods=("y", "x"))))) == ["y", "x"]


def test_a_name_asked_for_twice_is_taken_once():
    assert GRID.cells(Selection(methods=("x", "x"), datasets=("a", "a"))) == GRID.cells(Selection(("a",), ("x",)))


def test_a_registered_method_of_another_kind_is_not_taken():
    assert GRID.cells(Selection(methods=("FGW-only",))) == []


def test_a_registered_method_that_is_no_row_can_be_asked_for():
    methods.add_predictor("mine", regression=lambda seed: None)
    assert {cell.method for cell in GRID.cells(Selection(methods=("mine",)))} == {"mine"}


@pytest.mark.parametrize(("kind", "taken"), [("predictor", {"mine"}), ("reduction", set())])
def test_a_registered_data_set_can_be_asked_for_by_experiments_of_its_kind(kind, taken):
    problems.add_problem("mine", problems.Problem(lambda seed: None, "regression"), kinds=("predictor",))
    one = Experiment("one", "", "", lambda frame: [], kind=kind, datasets=("a",), methods=("x",))
    assert {cell.data for cell in one.cells(Selection(datasets=("mine",)))} == taken


@pytest.mark.parametrize(
    ("selection", "known"),
    [(Selection(datasets=("moon",)), "'a', 'b'"), (Selection(methods=("moon",)), ", 'random forest', 'x', 'y'")],
)
def test_an_unknown_name_is_refused_with_those_that_there_are(selection, known):
    with pytest.raises(InvalidInputError, match=rf"'moon' is in none of grid; .*{known}\."):
        check_selection(selection, [GRID])


def test_a_name_of_any_of_the_experiments_is_accepted():
    check_selection(Selection(datasets=("boston",)), [GRID, load_experiment("regression")])


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_of_the_paper_has_cells_or_shows_those_of_others(name):
    one = load_experiment(name)
    assert one.name == name and (one.cells() if one.run else set(one.sources) <= set(NAMES))


@pytest.mark.parametrize("name", [name for name in NAMES if load_experiment(name).run])
def test_every_cell_of_the_paper_names_a_known_data_set_and_method(name):
    known = methods.get_registry(load_experiment(name).kind)
    assert all(cell.method in known and problems.get_problem(cell.data) for cell in load_experiment(name).cells())


def test_an_unknown_experiment_is_refused_with_the_one_that_is_meant():
    with pytest.raises(InvalidInputError, match=r"Did you mean 'regression'\? There are prototypes, "):
        load_experiment("regresion")


def test_a_data_set_of_the_other_task_is_passed_over():
    problems.add_problem("labels", problems.Problem(lambda seed: None, "classification"))

    assert load_experiment("regression").cells(Selection(datasets=("labels",))) == []


@pytest.mark.parametrize(("name", "method"), [("beta", "linear"), ("eta", "DistR")])
def test_a_method_that_an_experiment_cannot_run_is_passed_over(name, method):
    assert load_experiment(name).cells(Selection(methods=(method,))) == []
