"""Finished cells as a frame for the reports: one row per cell."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from distreduce.exceptions import StoreError
from distreduce_paper.experiment import Experiment
from distreduce_paper.store import COLUMNS, CellResult, Store


def load_frame(experiment: Experiment, store: Store) -> pd.DataFrame:
    """Return one row per successful cell that the experiment shows, in the order of its grid.

    The columns are experiment, data, method, seed, quick, the parameters of the cell, its scores (numbers, and lists
    for figures), seconds, cpu_seconds, peak_mb and machine.
    """
    rows = [_row(one) for one in load_results(experiment, store) if "error" not in one]
    return _sort(pd.DataFrame(rows), experiment) if rows else pd.DataFrame()


def load_results(experiment: Experiment, store: Store) -> list[CellResult]:
    """Return the results that the experiment shows: those of full runs, or of quick runs if there are no others."""
    sources = experiment.sources or (experiment.name,)
    results = {name: store.results(name) for name in sources}
    # An experiment with cells of its own shows a quick run if these are quick; borrowed cells follow.
    decisive = (experiment.name,) if experiment.run is not None else sources
    quick = all(one["quick"] for name in decisive for one in results[name])
    return [one for name in sources for one in results[name] if one["quick"] == quick]


def load_failures(experiment: Experiment, store: Store) -> list[CellResult]:
    """Return the results of the experiment's own cells that ended in an error."""
    results = load_results(experiment, store)
    return [one for one in results if "error" in one and one["experiment"] == experiment.name]


def _row(result: CellResult) -> dict[str, object]:
    # Files may come from other versions or machines, or have been edited.
    missing = [name for name in COLUMNS if name not in result]
    if missing:
        raise StoreError(
            f"A result of {result['experiment']!r:.100} lacks {missing[0]!r}; delete its line and run again."
        )
    return {**{name: result[name] for name in COLUMNS}, **result["parameters"], **result["result"]}


def _sort(frame: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    parameters = [name for name in experiment.grid if name in frame]
    # By the grid, not by the order of computing: the report must not depend on that.
    ranked = frame.assign(
        _data=_rank(experiment.datasets, frame["data"]), _method=_rank(experiment.methods, frame["method"])
    )
    try:
        ranked = ranked.sort_values(["experiment", "_data", "_method", *parameters, "seed"], kind="stable")
    except TypeError as error:  # strings among numbers
        raise StoreError(f"Cannot sort the parameters of {experiment.name!r} ({error}); run it again.") from error
    return ranked.drop(columns=["_data", "_method"]).reset_index(drop=True)


def _rank(own: Sequence[str], found: pd.Series) -> pd.Series:
    """Position of each name: first the experiment's own, then the others by alphabet."""
    # Methods and data sets of plugins come after the experiment's own.
    names = [*own, *sorted(set(found) - set(own))]
    return found.map({name: rank for rank, name in enumerate(names)})
