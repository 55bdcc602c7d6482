"""An ONNX graph that is written as formulas: a `Value` stands for an array and has NumPy's operators.

No MatMul may stand next to a product with a number: onnxruntime joins the two and rounds the number to single precision
(MatMulScaleFusion). Numbers are in the constant matrices instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from distreduce._utils.typing import Array, FilePath
from distreduce._utils.versions import import_optional
from distreduce.interop._formula import MapFormula, write_map

OPSET, ML_OPSET, IR_VERSION = 13, 2, 8  # as old as the operators allow: runtimes reject newer versions than their own
ML = "ai.onnx.ml"  # the second set of operators, for categories
Given = Union["Value", Any]  # arrays and numbers become constants


class Graph:
    """A list of operators that grows by calls: ``graph("Add", a, b)`` is the sum."""

    def __init__(self, function: str) -> None:
        advice = f"{function} needs onnx, which is not installed: pip install 'distreduce[onnx]'."
        self.onnx = import_optional("onnx", advice)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def __call__(self, operator: str, *inputs: Given, nth: int = 0, **attributes: Any) -> Value:
        """Add an operator and return its result, or the one of this number among several."""
        names = [given.name if isinstance(given, Value) else self._add_constant(given) for given in inputs]
        results = [f"{operator}_{len(self.nodes)}_{k}" for k in range(nth + 1)]
        self.nodes.append(self.onnx.helper.make_node(operator, names, results, **attributes))
        return Value(self, results[-1])

    def _add_constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.ascontiguousarray(np.float64(value) if isinstance(value, int | float) else value)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def read(self, name: str, *widths: int, kind: str = "DOUBLE") -> Value:
        """Return an input of the graph; the number of rows is the symbol "n": any batch size."""
        self.inputs.append(self._declare(name, widths, kind))
        return Value(self, name)

    def save(self, path: FilePath, outputs: dict[str, tuple[Value, tuple[int, ...]]], notes: dict[str, str]) -> None:
        """Write a model with these outputs, by name with the widths of their rows."""
        helper = self.onnx.helper
        named = [helper.make_node("Identity", [value.name], [name]) for name, (value, _) in outputs.items()]
        results = [self._declare(name, widths, "DOUBLE") for name, (_, widths) in outputs.items()]
        graph = helper.make_graph(self.nodes + named, "distreduce", self.inputs, results, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="distreduce")
        helper.set_model_props(model, notes)
        self.onnx.checker.check_model(model)  # before anything is written
        write_map(path, lambda file: file.write(model.SerializeToString()))

    def _declare(self, name: str, widths: tuple[int, ...], kind: str) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, getattr(self.onnx.TensorProto, kind), ["n", *widths])


def _operator(name: str) -> Callable[..., Value]:
    """Return a method that adds an operator of a value and, if it has two operands, of another."""

    def method(self: Value, *others: Given) -> Value:
        return self.graph(name, self, *others)

    return method


@dataclass(frozen=True, eq=False)
class Value:
    """The result of an operator, of float64 unless said otherwise."""

    graph: Graph
    name: str
    __array_ufunc__ = None  # array + value is value's business

    __add__ = __radd__ = _operator("Add")
    __mul__ = __rmul__ = _operator("Mul")
    __sub__, __truediv__, __pow__ = _operator("Sub"), _operator("Div"), _operator("Pow")
    exp, log, sqrt = _operator("Exp"), _operator("Log"), _operator("Sqrt")
    at_least, at_most = _operator("Max"), _operator("Min")

    def __matmul__(self, other: Given) -> Value:
        outer = isinstance(other, np.ndarray) and len(other) == 1  # of one column, whose scale is a number
        return self.graph("Mul" if outer else "MatMul", self, other)

    def sum(self, axis: int) -> Value:
        """The sum, which keeps its axis; since opset 13 the axes are an input."""
        return self.graph("ReduceSum", self, np.array([axis]))

    def widen(self, axis: int) -> Value:
        """The same values with another axis of length one."""
        return self.graph("Unsqueeze", self, np.array([axis]))

    def swap(self) -> Value:
        """The transpose of each matrix of a batch."""
        return self.graph("Transpose", self, perm=[0, 2, 1])

    def take(self, start: int, stop: int, axis: int = 1) -> Value:
        return self.graph("Slice", self, *(np.array([k]) for k in (start, stop, axis)))

    def cast(self, kind: str = "DOUBLE") -> Value:
        return self.graph("Cast", self, to=getattr(self.graph.onnx.TensorProto, kind))


def add_map(x: Value, formula: MapFormula) -> Value:
    """Add the operators of a map's formula."""
    u = (x - formula.offset) / formula.scale
    if formula.kernel == "linear" and formula.centres is not None:
        return u @ formula.centres.T @ formula.coefficients
    far = u * u if formula.centres is None else squared_distances(u, formula.centres)
    if formula.predictor is not None and formula.predicted is not None:
        parts = add_map(x, formula.predictor).exp()  # not Softmax, which runtimes may compute in single precision
        far = far + squared_distances(parts / (parts.sum(1) * formula.reach), formula.predicted)
    base = far * (-0.5 if formula.kernel == "rbf" else 0.5 / formula.alpha)
    return (base.exp() if formula.kernel == "rbf" else (base + 1.0) ** -formula.alpha) @ formula.coefficients


def squared_distances(u: Value, centres: Array) -> Value:
    """|u|² − 2⟨u, c⟩ + |c|², which rounding can make negative."""
    return ((u * u).sum(1) + (centres**2).sum(axis=1) + u @ (-2.0 * centres.T)).at_least(0.0)
