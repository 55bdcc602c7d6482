"""Kernels and losses in JSON, besides the plain values of :mod:`distreduce._utils.tensor_writer`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from distreduce._utils.tensor_reader import Reader, RefusedError, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce.exceptions import UnsavableModelError
from distreduce.kernels import RBF, Delta, Linear, RationalQuadratic
from distreduce.losses import LOSSES, BregmanLoss

KERNEL_CLASSES: dict[str, type] = {kind.__name__: kind for kind in (RBF, RationalQuadratic, Linear, Delta)}


@dataclass(frozen=True)
class ModelWriter(Writer):
    """Writes kernels and losses of this package by their names."""

    def other(self, name: str, value: Any) -> Node:
        if type(value) in KERNEL_CLASSES.values():
            parts = self.within(name)
            content = {part.name: parts.value(part.name, getattr(value, part.name)) for part in fields(value)}
            return {"kind": "kernel", "class": type(value).__name__, "fields": content}
        # The class itself: a user's subclass may have kept the name of its parent.
        if isinstance(value, BregmanLoss) and type(value) is type(LOSSES.get(value.name)):
            return {"kind": "loss", "name": value.name}
        raise UnsavableModelError(f"{self.prefix}{name} is {value!r}, which cannot be saved. {_advice(value)}")


@dataclass(frozen=True)
class ModelReader(Reader):
    """Reads what :class:`ModelWriter` wrote; names are looked up in tables of this package."""

    def other(self, name: str, node: Node) -> Any:
        kind = node.get("kind")
        if kind == "loss":
            loss = node.get("name")
            require(isinstance(loss, str) and loss in LOSSES, f"{self.prefix}{name} is an unknown loss")
            return LOSSES[str(loss)]
        require(kind == "kernel", f"{self.prefix}{name} is of an unknown kind")
        return self._kernel(name, node)

    def _kernel(self, name: str, node: Node) -> Any:
        kind = KERNEL_CLASSES.get(str(node.get("class")))
        content = self.part(node, "fields")
        if kind is None or not isinstance(content, dict):
            raise RefusedError(f"{self.prefix}{name} is an unknown kernel")
        names = {part.name for part in fields(kind)}  # the class is one of ours, but its arguments come from the file
        require(set(content) == names, f"{self.prefix}{name} does not have the parameters of {kind.__name__}")
        parts = self.within(name)
        values = {key: parts.value(key, value) for key, value in content.items()}
        # Kernels check ranges, not types.
        for value in values.values():
            good = isinstance(value, Real) or (kind is RBF and isinstance(value, tuple))
            require(good, f"{self.prefix}{name} has a parameter that is not a number")
        return kind(**values)


def _advice(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "Call set_params(random_state=None), or set an int, and save again; the fit is unchanged."
    return (
        f"Kernels of distreduce.kernels ({', '.join(KERNEL_CLASSES)}) and losses of distreduce.losses "
        f"({', '.join(LOSSES)}) can be saved; your own functions and classes cannot, because files never hold code. "
        "Fit with one of these, or reset a parameter that only the next fit uses with set_params."
    )
