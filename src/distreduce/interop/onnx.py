"""The map of a model as an ONNX graph of a dozen operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce._utils.versions import import_optional
from distreduce.interop._formula import MapFormula, Path, map_formula, write_map

OPSET, IR_VERSION = 13, 8  # as old as the operators allow: runtimes reject newer versions than their own


def save_onnx(model: Any, path: Path) -> None:
    """Save the map of a model as an ONNX graph with input ``X`` (n, d) and output ``embedding`` (n, p), both float64.

    Parameters
    ----------
    model : SDR, DistR, SDRGPRegressor, SDRGPClassifier or Pipeline
        A fitted model, or a pipeline of StandardScalers that ends in one.
    path : str or path-like
        The file, written atomically.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    UnsavableModelError
        The input kernel is a Python function, or the pipeline has a step other than StandardScaler.
    ModelSaveError
        The file could not be written. An existing file is unchanged.
    """
    onnx = import_optional("onnx", "save_onnx needs onnx, which is not installed: pip install 'distreduce[onnx]'.")
    formula = map_formula(model)
    graph = _Graph(onnx)
    _add_map(graph, formula)
    made = graph.model(len(formula.offset), formula.coefficients.shape[1])
    onnx.checker.check_model(made)  # before anything is written
    write_map(path, lambda file: file.write(made.SerializeToString()))


class _Graph:
    """A list of operators that grows by calls: ``graph("Add", a, b)`` returns the name of the sum."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: Any, name: str | None = None) -> str:
        """Add an operator and return the name of its result; inputs are names, or arrays that become constants."""
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        result = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [result]))
        return result

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def model(self, d: int, p: int) -> Any:
        """Return the model from "X" (n, d) to "embedding" (n, p)."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        # The number of rows is the symbol "n": any batch size.
        inputs, outputs = (
            [helper.make_tensor_value_info(name, double, ["n", width])] for name, width in (("X", d), ("embedding", p))
        )
        graph = helper.make_graph(self.nodes, "distreduce", inputs, outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="distreduce")


def _add_map(graph: _Graph, formula: MapFormula, name: str | None = "embedding") -> str:
    """Add the operators of the formula, and return the name of the result."""
    u = graph("Div", graph("Sub", "X", formula.offset), formula.scale)
    if formula.kernel == "linear" and formula.centres is not None:
        return graph("MatMul", graph("MatMul", u, formula.centres.T), formula.coefficients, name=name)
    far = _squared_distances(graph, u, formula.centres)
    if formula.predictor is not None:
        # Not by Softmax, which runtimes may compute in single precision.
        parts = graph("Exp", _add_map(graph, formula.predictor, None))
        v = graph("Div", parts, graph("Mul", graph("ReduceSum", parts, np.array([1])), np.float64(formula.reach)))
        far = graph("Add", far, _squared_distances(graph, v, formula.predicted))
    # The kernel matrix K, by the formula of its kernel.
    if formula.kernel == "rbf":
        K = graph("Exp", graph("Mul", far, np.float64(-0.5)))
    else:
        base = graph("Mul", far, np.float64(0.5 / formula.alpha))
        K = graph("Pow", graph("Add", base, np.float64(1.0)), np.float64(-formula.alpha))
    return graph("MatMul", K, formula.coefficients, name=name)


def _squared_distances(graph: _Graph, u: str, centres: Array | None) -> str:
    """Add |u|² − 2⟨u, c⟩ + |c|², at least 0; u² where u are distances."""
    squares = graph("Mul", u, u)
    if centres is None:
        return squares
    # Since opset 13 the axes of ReduceSum are an input.
    norms = graph("Add", graph("ReduceSum", squares, np.array([1])), (centres**2).sum(axis=1))
    # Rounding can make the sum negative.
    return graph("Max", graph("Add", norms, graph("MatMul", u, -2.0 * centres.T)), np.float64(0.0))
