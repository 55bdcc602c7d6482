"""The paper's tables and figures, rebuilt through the public interface of distreduce. ``distreduce reproduce --help``.

Each table or figure is a module of :mod:`distreduce_paper.experiments`. Modules are imported on demand, so that
listing the experiments needs neither torch nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module

from distreduce._utils.text import did_you_mean
from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Cell, Experiment, Selection

__all__ = ["NAMES", "Cell", "Experiment", "Selection", "load_experiment"]

# In the order of the report. Each is a module of `experiments` with an EXPERIMENT; the last five go beyond the paper.
NAMES = (
    "prototypes", "regression", "classification", "calibration", "bottleneck", "eta", "beta", "toys", "neighbours",
    "runtimes", "dkl", "honest", "picture", "classes", "uci", "readings",
)  # fmt: skip


def load_experiment(name: str) -> Experiment:
    """Import and return the experiment called `name`; raise InvalidInputError if there is none."""
    if name not in NAMES:
        hint = did_you_mean(name, NAMES)
        raise InvalidInputError(f"There is no experiment {name!r}. {hint}There are {', '.join(NAMES)}.")
    experiment: Experiment = import_module(f"distreduce_paper.experiments.{name}").EXPERIMENT
    return experiment
