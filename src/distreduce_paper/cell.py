"""A cell is one fit to be scored. Experiments consist of cells, the runner computes them, the store keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Cell:
    """Which method is fitted to which data. Cells with the same `key` have the same result on any machine.

    Attributes
    ----------
    experiment : str
        Name of the experiment, one of ``distreduce_paper.NAMES``.
    data : str
        Name of the data set in :mod:`distreduce_paper.problems`.
    method : str
        Name of the method in :mod:`distreduce_paper.methods`.
    seed : int
        Seed of the sample, the split and the method: for one seed, every method sees the same samples.
    parameters : mapping
        Further parameters that the experiment varies, such as ``{"n_prototypes": 100}``.
    quick : bool
        Whether this is the small version, for trying things out.
    """

    experiment: str
    data: str
    method: str
    seed: int
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    quick: bool = False

    @property
    def key(self) -> str:
        """The cell's identity as one line of JSON."""
        return json.dumps(self.as_dict(), sort_keys=True)  # the order of parameters does not matter

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dict that JSON can represent."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Cell:
        """Build the cell that `fields` describe; keys that are not fields of a cell are ignored."""
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})

    def __str__(self) -> str:
        parameters = "".join(f", {name}={value}" for name, value in self.parameters.items())
        return f"{self.experiment}: {self.method} on {self.data}{parameters}, seed {self.seed}"

    def __hash__(self) -> int:
        # The generated hash would fail, because `parameters` is a dict.
        return hash(self.key)
