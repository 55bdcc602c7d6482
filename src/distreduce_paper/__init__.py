"""The paper's tables and figures, rebuilt through the public interface of distreduce. ``distreduce reproduce --help``.

Each table or figure is a module of :mod:`distreduce_paper.experiments`. Modules are imported on demand, so that
listing the experiments needs neither torch nor matplotlib.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Cell, Experiment, Selection

__all__ = ["NAMES", "Cell", "Experiment", "Selection", "load_experiment"]

# In the order of the report. Each is a module of `experiments` with an EXPERIMENT; the last five go beyond the paper.
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
    "picture",
    "classes",
    "uci",
    "readings",
)


def load_experiment(name: str) -> Experiment:
    """Import and return the experiment called `name`.

    Raises
    ------
    InvalidInputError
        If no experiment has this name.
    """
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise InvalidInputError(f"There is no experiment {name!r}. {hint}There are {', '.join(NAMES)}.")
    experiment: Experiment = import_module(f"distreduce_paper.experiments.{name}").EXPERIMENT
    return experiment
