"""What the page says, gathered from the records before it is Markdown or HTML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from distreduce.exceptions import InvalidInputError
from distreduce_paper.blocks import Block, Comparison, Figure, Table
from distreduce_paper.cell import Cell
from distreduce_paper.experiment import Experiment, Selection
from distreduce_paper.record import Record
from distreduce_paper.results import failures, results, shown
from distreduce_paper.store import Store


@dataclass(frozen=True)
class Failure:
    """Cells that ended in the same error, with the traceback of the first."""

    kind: str
    message: str
    traceback: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """An experiment.

    Attributes
    ----------
    name, title, paper : str
        As the experiment says.
    blocks : tuple of Block
        What it shows; empty if there is nothing to show yet.
    command : str
        What computes its cells, and those of others that it shows.
    finished, missing : int
        Cells of its own with a result, and cells of its grid without any record.
    seconds : float
        Of all its own cells together.
    quick : bool
        What it shows is of a quick run.
    borrowed : tuple of str
        Names of other experiments whose cells it shows.
    failures : tuple of Failure
    """

    name: str
    title: str
    paper: str
    blocks: tuple[Block, ...]
    command: str
    finished: int
    missing: int
    seconds: float
    quick: bool
    borrowed: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of all its tables."""
        return tuple(one for block in self.blocks if isinstance(block, Table) for one in block.comparisons)


@dataclass(frozen=True)
class Page:
    """The whole report; machines with their number of cells, packages with their versions."""

    sections: tuple[Section, ...]
    machines: tuple[tuple[str, int], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """In the order of the page."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))


def gathered(experiments: Sequence[Experiment], store: Store) -> Page:
    """The page of these experiments, in their order."""
    sections = tuple(_section(experiment, store) for experiment in experiments)
    records = {Cell.from_dict(record).key: record for one in experiments for record in shown(one, store)}
    machines = Counter(str(record["machine"]) for record in records.values())
    packages = {(name, version) for record in records.values() for name, version in record["versions"].items()}
    versions = {name: ", ".join(sorted(v for other, v in packages if other == name)) for name, _ in packages}
    page = Page(sections, tuple(sorted(machines.items())), tuple(sorted(versions.items())))
    _check_names(page.figures)
    return page


def _section(experiment: Experiment, store: Store) -> Section:
    records = shown(experiment, store)
    own = [record for record in records if record["experiment"] == experiment.name]
    quick = bool(records) and all(record["quick"] for record in records)
    known = {Cell.from_dict(record).key for record in own}
    wanted = experiment.cells(Selection(quick=quick)) if experiment.run is not None else []
    frame = results(experiment, store)
    return Section(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        blocks=tuple(experiment.report(frame)) if len(frame) else (),
        command=f"distreduce reproduce run {' '.join(experiment.sources or (experiment.name,))}",
        finished=sum("error" not in record for record in own),
        missing=sum(cell.key not in known for cell in wanted),
        seconds=math.fsum(record["seconds"] for record in own if math.isfinite(record["seconds"])),
        quick=quick,
        borrowed=tuple(name for name in experiment.sources if name != experiment.name),
        failures=_grouped(failures(experiment, store)),
    )


def _grouped(records: Sequence[Record]) -> tuple[Failure, ...]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(records, key=lambda one: Cell.from_dict(one).key):
        groups.setdefault((record["error"]["type"], record["error"]["message"]), []).append(record)
    return tuple(
        Failure(kind, message, own[0]["error"]["traceback"], tuple(str(Cell.from_dict(record)) for record in own))
        for (kind, message), own in groups.items()
    )


def _check_names(figures: Sequence[Figure]) -> None:
    twice = [name for name, count in Counter(figure.name for figure in figures).items() if count > 1]
    if twice:
        raise InvalidInputError(
            f"Several figures of the report are called {twice[0]!r}, which is their file's name too; rename one."
        )
