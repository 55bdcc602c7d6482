"""Finished cells as a frame for the reports: a row a cell."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from distreduce.exceptions import StoreError
from distreduce_paper.experiment import Experiment
from distreduce_paper.record import COLUMNS, Record
from distreduce_paper.store import Store


def results(experiment: Experiment, store: Store) -> pd.DataFrame:
    """All cells with a result that the experiment shows, in the order of its grid whatever the order they ended in.

    Columns: experiment, data, method, seed, quick, the cell's parameters, its results (numbers, and lists for
    figures), seconds, cpu_seconds, peak_mb, machine.
    """
    frame = pd.DataFrame([_row(record) for record in shown(experiment, store) if "error" not in record])
    return frame if frame.empty else _sorted(frame, experiment)


def shown(experiment: Experiment, store: Store) -> list[Record]:
    """The records that the experiment is about: those of full runs, or of quick ones as long as there are no others."""
    sources = experiment.sources or (experiment.name,)
    records = {name: store.records(name) for name in sources}
    decisive = (experiment.name,) if experiment.run is not None else sources
    quick = all(record["quick"] for name in decisive for record in records[name])
    return [record for name in sources for record in records[name] if record["quick"] == quick]


def failures(experiment: Experiment, store: Store) -> list[Record]:
    """The experiment's own cells that ended in an error."""
    return [one for one in shown(experiment, store) if "error" in one and one["experiment"] == experiment.name]


def _row(record: Record) -> dict[str, object]:
    missing = [name for name in COLUMNS if name not in record]
    if missing:
        raise StoreError(
            f"A record of {record['experiment']!r:.100} lacks {missing[0]!r}; delete its line, and run again."
        )
    return {**{name: record[name] for name in COLUMNS}, **record["parameters"], **record["result"]}


def _sorted(frame: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    parameters = [name for name in experiment.grid if name in frame]
    ranks = {"data": _ranks(experiment.datasets, frame["data"]), "method": _ranks(experiment.methods, frame["method"])}
    order = frame.assign(**{f"_{name}": frame[name].map(rank) for name, rank in ranks.items()})
    keys = ["experiment", "_data", "_method", *parameters, "seed"]
    try:
        ordered = order.sort_values(keys, kind="stable")
    except TypeError as error:  # texts among numbers
        raise StoreError(
            f"Parameters of {experiment.name!r} cannot be put in order ({error}); run it again."
        ) from error
    return ordered.drop(columns=["_data", "_method"]).reset_index(drop=True)


def _ranks(own: Sequence[str], found: pd.Series) -> dict[str, int]:
    names = [*own, *sorted(set(found) - set(own))]
    return {name: rank for rank, name in enumerate(names)}
