"""What a checkpoint says of a fit, as JSON and tensors, and back, with every number checked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce._utils.typing import Array
from distreduce.mapping.landmarks import Memory
from distreduce.solver.loop import Progress
from distreduce.solver.oracle import Coupled
from distreduce.solver.steps import Record, State, same_plan

FLAGS = ("frozen", "converged", "finished")


def to_state(at: Progress, write: Writer) -> Node:
    """The progress of a loop."""
    state, memory, history = at.state, at.memory, write.within("history")
    columns = {name: [getattr(record, name) for record in at.history] for name in _columns()}
    return {
        "iteration": at.iteration,
        **{name: getattr(at, name) for name in FLAGS},
        "settled": state.settled,
        "faults": list(at.faults),
        "plan": write.sparse("plan", state.coupled.plan),
        "transported": write.array("transported", state.coupled.transported),
        "embedding": write.array("embedding", state.embedding),
        "history": {name: history.array(name, np.asarray(column)) for name, column in columns.items()},
        "memory": None if memory is None else _write_memory(memory, state.coupled, write.within("memory")),
    }


def _write_memory(memory: Memory, coupled: Coupled, write: Writer) -> Node:
    """The plan that the map's memory is of is nearly always the plan of the state, and then not written twice."""
    own = None if same_plan(memory.plan, coupled.plan) else write.sparse("plan", memory.plan)
    return {"plan": own, "transported": write.array("transported", memory.transported), "updates": memory.updates}


def _columns() -> list[str]:
    return [field.name for field in fields(Record)]


def from_state(state: Node, read: Reader, start: Any, embedding: tuple[int, int]) -> Progress:
    """The progress, if it is one of a fit with the marginals of the plan `start` and an embedding of this shape."""
    flags = {name: read.part(state, name) for name in (*FLAGS, "settled")}
    require(all(type(flag) is bool for flag in flags.values()), "its flags are not in order")
    iteration, faults = read.part(state, "iteration"), read.part(state, "faults")
    require(type(iteration) is int and 0 <= iteration < 2**31, "its iteration is no number")
    require(isinstance(faults, list) and all(isinstance(fault, str) for fault in faults), "its faults are no texts")
    T, m = _plan(read, "plan", state, start), start.shape[1]
    coupled = Coupled(T, _table(read, "transported", state, (m, m)))
    Z = _table(read, "embedding", state, embedding)
    history = _history(read.part(state, "history"), read.within("history"))
    found = State(coupled, Z, history[-1], flags.pop("settled"))
    node = read.part(state, "memory")
    memory = None if node is None else _read_memory(node, coupled, read.within("memory"))
    return Progress(found, history, iteration, faults=tuple(faults), memory=memory, **flags)


def _read_memory(node: Node, coupled: Coupled, read: Reader) -> Memory:
    own, updates = read.part(node, "plan"), read.part(node, "updates")
    require(type(updates) is int and 0 <= updates < 2**31, "its memory is not in order")
    plan = coupled.plan if own is None else _plan(read, "plan", node, coupled.plan)
    M = read.array("transported", read.part(node, "transported"))
    return Memory(plan, _table_of("transported", M, (*M.shape[:1], plan.shape[1])), updates)


def _plan(read: Reader, name: str, node: Node, start: Any) -> Any:
    """A plan with as much mass in every row as `start` has."""
    plan = read.sparse(name, read.part(node, name))
    good = plan.shape == start.shape and plan.dtype == np.float64 and bool((plan.data >= 0).all())
    require(
        good and np.allclose(plan.sum(axis=1), start.sum(axis=1), rtol=1e-6, atol=0.0),
        f"its {name} is none of this fit",
    )
    return plan


def _table(read: Reader, name: str, node: Node, shape: tuple[int, int]) -> Array:
    return _table_of(name, read.array(name, read.part(node, name)), shape)


def _table_of(name: str, table: Array, shape: tuple[int, int]) -> Array:
    good = table.shape == shape and table.dtype == np.float64 and bool(np.isfinite(table).all())
    require(good, f"its {name} is none of this fit")
    return table


def _history(node: Node, read: Reader) -> tuple[Record, ...]:
    require(isinstance(node, dict) and [*sorted(node)] == sorted(_columns()), "its history is not in order")
    columns = {name: read.array(name, node[name]) for name in _columns()}
    lengths = {column.shape for column in columns.values()}
    require(len(lengths) == 1 and len(next(iter(lengths))) == 1 and lengths != {(0,)}, "its history is not in order")
    kinds = {name: "i" if name in ("iteration", "n_evaluations") else "f" for name in _columns()}
    require(all(columns[name].dtype.kind == kind for name, kind in kinds.items()), "its history is not in order")
    # Without targets there is no CKA.
    finite = all(np.isfinite(column).all() for name, column in columns.items() if name != "cka")
    require(finite, "its history has numbers that are none")
    return tuple(Record(*row) for row in zip(*(column.tolist() for column in columns.values()), strict=True))
