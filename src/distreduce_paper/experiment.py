"""A cell is one fit to be scored. An experiment is a grid of cells, and functions that compute one and show all.

The runner computes cells, the store keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from distreduce.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from distreduce_paper.report.blocks import Block

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


Kind = Literal["predictor", "embedding", "reduction"]
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Selection:
    """Which cells of the experiments to take; None leaves the choice to the experiment."""

    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        Heading in the report.
    paper : str
        The tables and figures of the paper that it rebuilds; empty if it goes beyond the paper.
    report : callable
        From a frame with one row per finished cell, of which there is at least one, to the blocks of the report.
    notes : str
        Paragraphs of the report that come first.
    kind : {"predictor", "embedding", "reduction"}
        The registry of :mod:`distreduce_paper.methods` that its methods come from.
    datasets : tuple of str
        Data sets of the grid. Further registered ones can be selected on the command line.
    more_datasets : tuple of str
        Its own data sets that are not in the grid, because not everyone has them; they can be selected.
    methods : tuple of str
        Methods of the grid. Further registered ones can be selected on the command line.
    run : callable, optional
        From a cell to its scores: numbers, and lists of numbers for figures.
    grid : mapping
        Values of each further parameter; every combination is a cell.
    quick_grid : mapping
        The grid of a quick run.
    seeds : int
        Number of seeds.
    task : {"regression", "classification"}, optional
        The task that it is about; data sets of the other task are skipped.
    skips : callable
        From a data set and a method to whether the experiment leaves the pair out.
    sources : tuple of str
        Names of the experiments whose cells it shows; empty for its own only.
    exclusive : bool
        Whether its seconds matter: cells then run one at a time with every core, after all others.
    """

    name: str
    title: str
    paper: str
    report: Callable[[pd.DataFrame], list[Block]]
    notes: str = ""
    kind: Kind = "predictor"
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    run: Callable[[Cell], dict[str, Any]] | None = None
    grid: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    quick_grid: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    seeds: int = 5
    task: Literal["regression", "classification"] | None = None
    skips: Callable[[str, str], bool] = lambda data, method: False
    sources: tuple[str, ...] = ()
    exclusive: bool = False
    more_datasets: tuple[str, ...] = ()

    def cells(self, selection: Selection | None = None) -> list[Cell]:
        """Return its own cells, one data set after the other, all seeds of a method before the next method."""
        selection = selection or Selection()
        grid = self.quick_grid if selection.quick and self.quick_grid else self.grid
        # Without a grid, the product is one empty point: a cell without parameters.
        points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [
            Cell(self.name, data, method, seed, point, selection.quick)
            # Data sets vary slowest, because `problems` and `baselines.embed_once` keep only the latest ones.
            for data in self._select(self.datasets, selection.datasets, self.known_datasets())
            if self._has_task(data)
            for method in self._select(self.methods, selection.methods, self.known_methods())
            if not self.skips(data, method)
            for point in points
            for seed in range(self._n_seeds(selection))
        ]

    def known_datasets(self) -> set[str]:
        """Return the data sets that can be selected."""
        from distreduce_paper import problems

        return {*self.datasets, *self.more_datasets, *problems.added_names(self.kind)}

    def known_methods(self) -> set[str]:
        """Return the methods that can be selected."""
        from distreduce_paper import methods

        return {*self.methods, *methods.get_registry(self.kind)}

    def _n_seeds(self, selection: Selection) -> int:
        if selection.seeds is not None:
            return selection.seeds
        return min(self.seeds, QUICK_SEEDS) if selection.quick else self.seeds

    def _select(self, own: tuple[str, ...], asked: tuple[str, ...] | None, known: set[str]) -> tuple[str, ...]:
        """Return the experiment's own names or, if names are asked for, the known ones in their order."""
        if asked is None or not self.datasets:
            return own
        return tuple(name for name in dict.fromkeys(asked) if name in known)

    def _has_task(self, data: str) -> bool:
        from distreduce_paper import problems

        # Own data sets suit the experiment; those of plugins may have the other task.
        return data in self.datasets or self.task in (None, problems.get_problem(data).task)


def check_selection(selection: Selection, experiments: Sequence[Experiment]) -> None:
    """Raise InvalidInputError if a selected data set or method is unknown to all of the experiments."""
    known = {
        "datasets": set[str]().union(*(one.known_datasets() for one in experiments)),
        "methods": set[str]().union(*(one.known_methods() for one in experiments)),
    }
    for option, names in known.items():
        for name in getattr(selection, option) or ():
            if name not in names:
                raise InvalidInputError(
                    f"--{option} {name!r} is in none of {', '.join(one.name for one in experiments)}; "
                    f"there are {', '.join(map(repr, sorted(names)))}."
                )
