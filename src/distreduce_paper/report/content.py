"""The content of the report, gathered from the store before it is rendered as Markdown or HTML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Cell, Experiment, Selection
from distreduce_paper.report.blocks import Block, Comparison, Figure, Table, Text
from distreduce_paper.store import CellResult, Store, load_failures, load_frame, load_results


@dataclass(frozen=True)
class Failure:
    """Cells that ended in the same error, with the traceback of the first."""

    kind: str
    message: str
    traceback: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """The section of an experiment."""

    name: str
    title: str
    paper: str  # what it rebuilds of the paper
    blocks: tuple[Block, ...]  # empty if there is nothing to show yet
    command: str  # computes the cells that it shows
    finished: int  # own cells with a result
    missing: int  # cells of its grid that have not been computed
    seconds: float  # of all its own cells together
    quick: bool  # whether it shows a quick run
    borrowed: tuple[str, ...]  # other experiments whose cells it shows
    failures: tuple[Failure, ...]  # errors of its own cells

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons of all its tables."""
        return tuple(one for block in self.blocks if isinstance(block, Table) for one in block.comparisons)


@dataclass(frozen=True)
class Page:
    """The complete report: sections, machines with their number of cells, packages with their versions."""

    sections: tuple[Section, ...]
    machines: tuple[tuple[str, int], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures in the order of the page."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))


def build_page(experiments: Sequence[Experiment], store: Store) -> Page:
    """Build the page of these experiments, in their order."""
    sections = tuple(_build_section(experiment, store) for experiment in experiments)
    # Sections may show the same cells; each counts once.
    results = {Cell.from_dict(result).key: result for one in experiments for result in load_results(one, store)}
    machines = Counter(str(result["machine"]) for result in results.values())
    packages = {(name, version) for result in results.values() for name, version in result["versions"].items()}
    # Cells may have been computed with several versions of a package: list them all.
    versions = {name: ", ".join(sorted(v for other, v in packages if other == name)) for name, _ in packages}
    page = Page(sections, tuple(sorted(machines.items())), tuple(sorted(versions.items())))
    _check_figure_names(page.figures)
    return page


def _build_section(experiment: Experiment, store: Store) -> Section:
    results = load_results(experiment, store)
    own = [result for result in results if result["experiment"] == experiment.name]
    quick = bool(results) and all(result["quick"] for result in results)
    computed = {Cell.from_dict(result).key for result in own}
    # What is missing is judged by the grid of the run that is shown, quick or full.
    wanted = experiment.cells(Selection(quick=quick)) if experiment.run is not None else []
    frame = load_frame(experiment, store)
    notes = [Text(part) for part in experiment.notes.split("\n\n") if part]
    return Section(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        blocks=(*notes, *experiment.report(frame)) if len(frame) else (),
        command=f"distreduce reproduce run {' '.join(experiment.sources or (experiment.name,))}",
        finished=sum("error" not in result for result in own),
        missing=sum(cell.key not in computed for cell in wanted),
        # A killed cell has no time. The exact sum does not depend on the order of the cells.
        seconds=math.fsum(result["seconds"] for result in own if math.isfinite(result["seconds"])),
        quick=quick,
        borrowed=tuple(name for name in experiment.sources if name != experiment.name),
        failures=_group_failures(load_failures(experiment, store)),
    )


def _group_failures(results: Sequence[CellResult]) -> tuple[Failure, ...]:
    groups: dict[tuple[str, str], list[CellResult]] = {}
    # Sorted, so that the page does not depend on the order of computing.
    for result in sorted(results, key=lambda one: Cell.from_dict(one).key):
        groups.setdefault((result["error"]["type"], result["error"]["message"]), []).append(result)
    return tuple(
        Failure(kind, message, own[0]["error"]["traceback"], tuple(str(Cell.from_dict(one)) for one in own))
        for (kind, message), own in groups.items()
    )


def _check_figure_names(figures: Sequence[Figure]) -> None:
    repeated = [name for name, count in Counter(figure.name for figure in figures).items() if count > 1]
    if repeated:
        raise InvalidInputError(
            f"Several figures of the report are called {repeated[0]!r}, which is also the name of their file; "
            "rename one."
        )
