"""The schema language: kinds of values, symbols for sizes, and records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distreduce._utils.tensor_file import Reader, RefusedError, Writer
from distreduce.persistence._models import REGISTRY
from distreduce.persistence._schema import Count, Floats, Indices, KeyedList, Kind, Maybe, Names, Record, Scalar


def round_trip(kind: Kind, value: Any, edit: Any = lambda node: None) -> Any:
    write = Writer()
    node = kind.write("value", value, write)
    edit(node)
    return kind.read("value", node, Reader(write.tensors), {})


POINTS = Record(
    {"n": Count("n"), "places": Floats(("n", "p")), "nearest": Indices(("n",), below="n"), "names": Names("p")}
)


def points(**changes: Any) -> Any:
    good = {"n": 3, "places": np.ones((3, 2)), "nearest": np.array([0, 2, 1]), "names": ["x", "y"]}
    return SimpleNamespace(**{**good, **changes})


def test_a_record_is_read_as_it_was_written() -> None:
    found = round_trip(POINTS, points())
    assert (found["n"], found["nearest"].tolist(), found["names"]) == (3, [0, 2, 1], ["x", "y"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 4}, r"value.places has the shape \(3, 2\), not \(n=4, p\)"),
        ({"names": ["x"]}, r"value.names has the shape \(1,\), not \(p=2\)"),
        ({"nearest": np.array([0, 1, 3])}, r"value.nearest has indices outside 0..2"),
        ({"places": np.full((3, 2), np.nan)}, "value.places has NaN or infinite values"),
        ({"places": np.ones((3, 0))}, r"value.places has the shape \(3, 0\), not \(n=3, p\)"),
        ({"places": np.ones((3, 2), dtype=np.float32)}, "value.places is of type float32, not float64"),
    ],
)
def test_fields_that_do_not_fit_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        round_trip(POINTS, points(**changes))


def test_a_field_that_is_missing_or_unknown() -> None:
    with pytest.raises(RefusedError, match="value lacks .'names'"):
        round_trip(POINTS, points(), lambda node: node.pop("names"))
    with pytest.raises(RefusedError, match="does not know: .'more'"):
        round_trip(POINTS, points(), lambda node: node.update(more=1))


def test_an_optional_field_may_be_absent_and_another_null() -> None:
    kind = Record({"a": Scalar(int), "b": Maybe(Scalar(str))}, optional=("a",))
    assert round_trip(kind, SimpleNamespace(b=None)) == {"b": None}


def test_records_of_a_list_have_sizes_of_their_own() -> None:
    kind = KeyedList("view", ("left", "right"), Record({"x": Floats(("n",))}))
    found = round_trip(kind, {"left": {"x": np.ones(2)}, "right": {"x": np.ones(3)}})
    assert {view: len(part["x"]) for view, part in found.items()} == {"left": 2, "right": 3}


@pytest.mark.parametrize("value", [True, "1", None, 0.0, -1, float("inf")])
def test_what_is_not_a_positive_number(value: Any) -> None:
    with pytest.raises(RefusedError):
        Scalar(float, positive=True).read("value", value, Reader({}), {})


def test_every_class_has_its_schema() -> None:
    reductions, predictors = ("SDR", "DistR", "SDRImputer"), ("GPRegressor", "GPClassifier")
    assert {*REGISTRY} == {*reductions, *predictors, "SDRGPRegressor", "SDRGPClassifier"}
