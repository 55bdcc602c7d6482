"""A cell: one fit to be scored. Experiments are made of cells, the runner computes them and the store keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Cell:
    """What is fitted to what. Two cells with the same `key` have the same result on any machine.

    Attributes
    ----------
    experiment, data, method : str
        Names in the registries of experiments, problems and methods.
    seed : int
        Of the draw, of the split and of the method: equal seeds give every method the same samples.
    parameters : mapping
        What the experiment varies beyond that, such as ``{"n_prototypes": 100}``.
    quick : bool
        A small version, for trying things out.
    """

    experiment: str
    data: str
    method: str
    seed: int
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    quick: bool = False

    @property
    def key(self) -> str:
        """The cell's identity as a line of JSON."""
        return json.dumps(self.as_dict(), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return {
            "experiment": self.experiment,
            "data": self.data,
            "method": self.method,
            "seed": self.seed,
            "parameters": dict(self.parameters),
            "quick": self.quick,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Cell:
        """The cell of a record; what a record holds beyond the cell's fields is left aside."""
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})

    def __str__(self) -> str:
        varied = "".join(f", {name}={value}" for name, value in self.parameters.items())
        return f"{self.experiment}: {self.method} on {self.data}{varied}, seed {self.seed}"

    def __hash__(self) -> int:
        return hash(self.key)
