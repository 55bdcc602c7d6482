"""The map as an ONNX graph of a dozen operators, for onnxruntime and its relatives."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from distreduce.exceptions import MissingDependencyError
from distreduce.interop._archive import Path, write_whole
from distreduce.interop._plain import PlainMap, plain_map

OPSET, IR_VERSION = 13, 8  # as old as the operators allow: runtimes refuse what is newer than they are


def save_onnx(model: Any, path: Path) -> None:
    """Write the map of a model as an ONNX graph: input ``X`` (n, d), output ``embedding`` (n, p), both float64.

    Parameters
    ----------
    model, path
        As for :func:`save_map`.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    UnsavableModelError, ModelSaveError
        As for :func:`save_map`.
    """
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        raise MissingDependencyError(
            "save_onnx needs onnx, which is not installed: pip install 'distreduce[onnx]'."
        ) from error
    plain = plain_map(model)
    graph = _Graph(onnx)
    _map(graph, plain)
    made = graph.model(len(plain.offset), plain.coefficients.shape[1])
    onnx.checker.check_model(made)
    write_whole(path, lambda file: file.write(made.SerializeToString()))


class _Graph:
    """A list of operators that grows by calls: ``graph("Add", a, b)`` is the name of the sum."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: Any, name: str | None = None) -> str:
        """The name of a new operator's result; inputs are names, or numbers that become constants."""
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        result = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [result]))
        return result

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def model(self, d: int, p: int) -> Any:
        """The graph from "X" (n, d) to "embedding" (n, p)."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        inputs, outputs = (
            [helper.make_tensor_value_info(name, double, ["n", width])] for name, width in (("X", d), ("embedding", p))
        )
        graph = helper.make_graph(self.nodes, "distreduce", inputs, outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="distreduce")


def _map(graph: _Graph, plain: PlainMap) -> None:
    """The formula of :class:`PlainMap`."""
    u = graph("Div", graph("Sub", "X", plain.offset), plain.scale)
    if plain.kernel == "linear" and plain.centres is not None:
        K = graph("MatMul", u, plain.centres.T)
    elif plain.kernel == "rbf":
        K = graph("Exp", graph("Mul", _sq_distances(graph, plain, u), np.float64(-0.5)))
    else:
        base = graph("Mul", _sq_distances(graph, plain, u), np.float64(0.5 / plain.alpha))
        K = graph("Pow", graph("Add", base, np.float64(1.0)), np.float64(-plain.alpha))
    graph("MatMul", K, plain.coefficients, name="embedding")


def _sq_distances(graph: _Graph, plain: PlainMap, u: str) -> str:
    """|u|² − 2⟨u, c⟩ + |c|², and at least 0; u² where u are distances."""
    squares = graph("Mul", u, u)
    if plain.centres is None:
        return squares
    norms = graph("Add", graph("ReduceSum", squares, np.array([1])), (plain.centres**2).sum(axis=1))
    return graph("Max", graph("Add", norms, graph("MatMul", u, -2.0 * plain.centres.T)), np.float64(0.0))
