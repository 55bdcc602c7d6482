"""What an experiment is: a grid of cells, a function that computes one, and a function that shows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from distreduce.exceptions import InvalidInputError
from distreduce_paper.cell import Cell, Scalar

if TYPE_CHECKING:
    import pandas as pd

    from distreduce_paper.blocks import Block

Kind = Literal["predictor", "embedding", "reduction"]
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Selection:
    """Which cells of the experiments are wanted; None takes what the experiment says."""

    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name, title, paper : str
        Name on the command line, heading of the report, and the tables and figures of the paper it rebuilds
        (empty: it goes beyond the paper).
    kind : {"predictor", "embedding", "reduction"}
        Which registry of :mod:`distreduce_paper.methods` the methods come from.
    datasets, methods : tuple of str
        Rows and columns. Other registered names can be asked for on the command line.
    run : callable
        From a cell to its results: numbers, and lists for figures.
    report : callable
        From a frame, a row a finished cell, to the blocks of the report.
    grid, quick_grid : mapping
        Values of each further parameter; every combination is a cell.
    seeds : int
        Number of seeds.
    task : {"regression", "classification"}, optional
        The kind of targets that it is about; data sets of the other kind are passed over.
    skips : callable
        Whether a data set and a method do not go together.
    sources : tuple of str
        Names of the experiments whose cells it shows, if it has none of its own.
    exclusive : bool
        Its seconds matter: cells run one at a time with every core, after all others.
    """

    name: str
    title: str
    paper: str
    report: Callable[[pd.DataFrame], list[Block]]
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

    def cells(self, selection: Selection | None = None) -> list[Cell]:
        """Its own cells, data set by data set, every seed of a method before the next method."""
        selection = selection or Selection()
        grid = self.quick_grid if selection.quick and self.quick_grid else self.grid
        points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [
            Cell(self.name, data, method, seed, point, selection.quick)
            for data in self._wanted(self.datasets, selection.datasets, self._known_datasets())
            if self._suits(data)
            for method in self._wanted(self.methods, selection.methods, self._known_methods())
            if not self.skips(data, method)
            for point in points
            for seed in range(self._n_seeds(selection))
        ]

    def _n_seeds(self, selection: Selection) -> int:
        if selection.seeds is not None:
            return selection.seeds
        return min(self.seeds, QUICK_SEEDS) if selection.quick else self.seeds

    def _wanted(self, own: tuple[str, ...], asked: tuple[str, ...] | None, known: set[str]) -> tuple[str, ...]:
        """The experiment's own names; or of those asked for, in their order, the ones that it can run."""
        if asked is None or not self.datasets:
            return own
        return tuple(name for name in dict.fromkeys(asked) if name in own or name in known)

    def _suits(self, data: str) -> bool:
        from distreduce_paper import problems

        return data in self.datasets or self.task in (None, problems.problem(data).task)

    def _known_datasets(self) -> set[str]:
        from distreduce_paper import problems

        return problems.added(self.kind)

    def _known_methods(self) -> set[str]:
        from distreduce_paper import methods

        return set(methods.registry(self.kind))


def check_selection(selection: Selection, experiments: Sequence[Experiment]) -> None:
    """Refuse names of data sets and methods that none of the experiments has."""
    for what, asked in (("datasets", selection.datasets), ("methods", selection.methods)):
        known = {name for e in experiments for name in getattr(e, what)}
        known |= {name for e in experiments for name in getattr(e, f"_known_{what}")()}
        for name in asked or ():
            if name not in known:
                raise InvalidInputError(
                    f"--{what} {name!r} is in none of {', '.join(e.name for e in experiments)}; "
                    f"there are {', '.join(map(repr, sorted(known)))}."
                )
