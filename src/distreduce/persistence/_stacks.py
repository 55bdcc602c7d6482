"""State of the regressors' Gaussian processes: training inputs and hyperparameters, never a factorisation.

Exact processes are built again from what they were trained on. All targets share a view's inputs, stored once, as do
smooth and rough processes on X; what differs between targets is stored as one array with a row a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce._utils.typing import Array
from distreduce.gp._exact import ExactGP
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._inducing import SparseGP
from distreduce.gp._stack import KERNELS, Process, Stack
from distreduce.gp._tails import Tails
from distreduce.persistence._checks import (
    check_floats,
    check_keys,
    check_positive,
    check_shape,
    check_size,
    check_table,
    refusing_numbers,
)

SAME_INPUTS = {"rough_inputs": "inputs"}  # views that are another one, whose inputs they share
GAUSSIAN = Tails()
TAILS = ("share", "narrow", "wide")
BY_TARGET = ("length_scales", "signal", "noise")
SPARSE = ("inner", "projected")  # not compact, nor their inputs: rounding would be magnified by the inverse of `inner`


def write_stacks(stacks: tuple[Stack, ...], write: Writer) -> Node:
    """The predictors of all targets."""
    first = next(iter(stacks[0].processes.values()))
    targets = None
    if isinstance(first, ExactGP):
        table = np.stack([next(iter(stack.processes.values())).target for stack in stacks], axis=1)
        targets = write.array("targets", table, compact=True)
    return {
        "targets": targets,
        "variance_scale": write.array("variance_scale", np.array([stack.variance_scale for stack in stacks])),
        "tails": _write_tails(stacks, write),
        "processes": [_write_view(view, stacks, write.within(view)) for view in stacks[0].processes],
    }


def _write_tails(stacks: tuple[Stack, ...], write: Writer) -> Node:
    """None where all are Gaussian, as in files of format 1."""
    if all(stack.tails == GAUSSIAN for stack in stacks):
        return None
    return write.array("tails", np.array([[getattr(stack.tails, name) for name in TAILS] for stack in stacks]))


def _write_view(view: str, stacks: tuple[Stack, ...], write: Writer) -> Node:
    processes: list[Any] = [stack.processes[view] for stack in stacks]
    exact = isinstance(processes[0], ExactGP)
    inputs = processes[0].inputs if exact else processes[0].inducing
    tables = {name: np.array([getattr(gp.hyperparameters, name) for gp in processes]) for name in BY_TARGET}
    tables["weight"] = np.array([stack.weights[view] for stack in stacks])
    if not exact:
        tables |= {name: np.array([getattr(gp, name) for gp in processes]) for name in SPARSE}
    arrays = {name: write.array(name, table) for name, table in tables.items()}
    shared = view in SAME_INPUTS
    return {"view": view, "inputs": None if shared else write.array("inputs", inputs, compact=exact), **arrays}


@dataclass(frozen=True)
class StackParts:
    """Arrays of the predictors of all targets, checked but not yet built; without `targets` they are sparse."""

    variance_scale: Array
    targets: Array | None
    tails: Array | None
    views: Mapping[str, Mapping[str, Array]]

    @property
    def widths(self) -> dict[str, int]:
        """Number of columns of each view."""
        return {view: arrays["inputs"].shape[1] for view, arrays in self.views.items()}

    def build(self) -> tuple[Stack, ...]:
        """The predictors; refused unless each can predict."""
        with refusing_numbers():
            stacks = tuple(self._stack(t) for t in range(len(self.variance_scale)))
            for view, arrays in self.views.items():
                moments = [stack.processes[view].moments(arrays["inputs"][:1]) for stack in stacks]
                require(bool(np.isfinite(moments).all()), f"the GP on {view} predicts no finite numbers")
        return stacks

    def _stack(self, t: int) -> Stack:
        weights = {view: float(arrays["weight"][t]) for view, arrays in self.views.items()}
        processes = {view: self._process(view, arrays, t) for view, arrays in self.views.items()}
        tails = GAUSSIAN if self.tails is None else Tails(*map(float, self.tails[t]))
        return Stack(processes, weights, float(self.variance_scale[t]), tails)

    def _process(self, view: str, arrays: Mapping[str, Array], t: int) -> Process:
        found = Hyperparameters(arrays["length_scales"][t], float(arrays["signal"][t]), float(arrays["noise"][t]))
        if self.targets is not None:
            return ExactGP(arrays["inputs"], self.targets[:, t], found, KERNELS[view])
        none = np.empty(0)  # what a fit weighs processes by is not needed any more
        return SparseGP(arrays["inputs"], found, arrays["inner"][t], arrays["projected"][t], none, (none, none))


def read_stacks(node: Node, read: Reader) -> StackParts:
    """What :func:`write_stacks` wrote."""
    before = isinstance(node, dict) and "tails" not in node  # format 1
    check_keys("stacks_", node, {"targets", "variance_scale", "processes", *(() if before else ("tails",))})
    variance_scale = read.array("variance_scale", node["variance_scale"])
    require(variance_scale.ndim == 1 and len(variance_scale) > 0, "stacks_.variance_scale is no row")
    check_positive("stacks_.variance_scale", variance_scale)
    targets = None
    if node["targets"] is not None:
        targets = read.array("targets", node["targets"])
        check_floats("stacks_.targets", targets)
    require(isinstance(node["processes"], list) and len(node["processes"]) > 0, "stacks_ has no processes")
    views: dict[str, Mapping[str, Array]] = {}
    for part in node["processes"]:
        check_keys("a process", part, {"view", "inputs", "weight", *BY_TARGET, *(SPARSE if targets is None else ())})
        view = part["view"]
        require(isinstance(view, str) and view in KERNELS and view not in views, "a process has no view of its own")
        shared = views.get(SAME_INPUTS.get(view, ""))
        views[view] = _read_view(part, len(variance_scale), read.within(view), shared)
    found = StackParts(variance_scale, targets, _read_tails(node.get("tails"), len(variance_scale), read), views)
    _check_stacks(found)
    return found


def _read_tails(node: Node, n_targets: int, read: Reader) -> Array | None:
    if node is None:
        return None
    tails = read.array("tails", node)
    check_floats("stacks_.tails", tails)
    check_shape("stacks_.tails", tails, n_targets, len(TAILS))
    share, narrow, wide = tails.T
    check_positive("stacks_.tails", tails[:, 1:])
    sound = (share >= 0) & (share < 1) & (abs((1 - share) * narrow + share * wide - 1) < 1e-6)
    require(bool(sound.all()), "stacks_.tails are of no distribution of variance 1")
    return tails


def _read_view(node: Node, n_targets: int, read: Reader, shared: Mapping[str, Array] | None) -> Mapping[str, Array]:
    """Arrays of a view; with inputs of its own, unless it shares those of another."""
    own = {name: part for name, part in node.items() if name != "view"}
    if node["inputs"] is None:
        require(shared is not None, "a process has no inputs")
        own.pop("inputs")
    arrays = {name: read.array(name, part) for name, part in own.items()}
    if node["inputs"] is None and shared is not None:
        arrays["inputs"] = shared["inputs"]
    for name, value in arrays.items():
        check_floats(read.prefix + name, value)
    check_table(read.prefix + "inputs", arrays["inputs"])
    m, d = arrays["inputs"].shape
    shapes = {"length_scales": (d,), "inner": (m, m), "projected": (m,)}
    for name in arrays.keys() - {"inputs"}:
        check_shape(read.prefix + name, arrays[name], n_targets, *shapes.get(name, ()))
    for name in BY_TARGET:
        check_positive(read.prefix + name, arrays[name])
    return arrays


def _check_stacks(found: StackParts) -> None:
    weights = np.array([arrays["weight"] for arrays in found.views.values()])
    require(bool((weights >= 0).all()) and bool((abs(weights.sum(axis=0) - 1) < 1e-9).all()), "weights do not sum to 1")
    if found.targets is None:
        return
    n, n_targets = len(next(iter(found.views.values()))["inputs"]), len(found.variance_scale)
    for view, arrays in found.views.items():
        check_shape(f"stacks_.{view}.inputs", arrays["inputs"], n, arrays["inputs"].shape[1])
    check_shape("stacks_.targets", found.targets, n, n_targets)
    check_size(n, n * n_targets * len(found.views))
