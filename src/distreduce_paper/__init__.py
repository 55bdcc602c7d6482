"""The paper's tables and figures: one file each, one runner, one store of results. ``distreduce reproduce --help``.

Experiments are imported when they are asked for, so that listing them needs neither torch nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module

from distreduce._utils.text import did_you_mean
from distreduce.exceptions import InvalidInputError
from distreduce_paper.cell import Cell
from distreduce_paper.experiment import Experiment, Selection

__all__ = ["NAMES", "Cell", "Experiment", "Selection", "experiment"]

# In the order of the report; each is a module of this package with an EXPERIMENT. The last two are not in the paper.
NAMES = (
    "prototypes",
    "regression",
    "classification",
    "calibration",
    "bottleneck",
    "eta",
    "beta",
    "toys",
    "neighbours",
    "runtimes",
    "dkl",
    "honest",
    "noise",
)


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in NAMES:
        meant = did_you_mean(name, NAMES)
        raise InvalidInputError(f"There is no experiment {name!r}. {meant}There are {', '.join(NAMES)}.")
    found: Experiment = import_module(f"distreduce_paper.{name}").EXPERIMENT
    return found
