"""Where a fit keeps its checkpoint, checked before any work, and by what it knows that the file is its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distreduce._utils.hashing import fingerprint
from distreduce._utils.versions import __version__
from distreduce.exceptions import InvalidInputError
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.solver.checkpoint import Checkpoint, check_place
from distreduce.solver.fit_sharded import LANDMARKS

# Parameters that change no bit of the result.
FREE = ("checkpoint", "n_jobs", "verbose")


@dataclass(frozen=True)
class Place:
    """A file that can be written, and the fingerprint of the parameters."""

    path: Path
    parameters: str

    def of(self, sample: Sample | ShardedSample) -> Checkpoint:
        """The checkpoint of a fit to this sample: its rows as the solver sees them, and in that order."""
        found = fingerprint(__version__, self.parameters, sample.weights, sample.fingerprints())
        return Checkpoint(self.path, found)


def checked_place(estimator: Any, n: int, *, sharded: bool) -> Place | None:
    """To be called before the generator of random numbers is used; None without a checkpoint."""
    if estimator.checkpoint is None:
        return None
    require_seed(estimator)
    path = Path(estimator.checkpoint)
    check_place(path, _room(estimator, n, sharded=sharded))
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in FREE}
    return Place(path, fingerprint(type(estimator).__name__, given))


def require_seed(estimator: Any) -> None:
    """A new seed in every fit would make every checkpoint one of another fit."""
    if estimator.checkpoint is not None and estimator.random_state is None:
        raise InvalidInputError(
            "checkpoint needs random_state, such as random_state=0: a fit can only go on from the start that it had."
        )


def _room(estimator: Any, n: int, *, sharded: bool) -> int:
    """Bytes of two files, for the new one is written beside the old: a plan of 20 a sample, and what is of size m."""
    m = estimator.n_prototypes or n
    return 2 * (20 * n + 8 * m * (m + estimator.n_components + (LANDMARKS if sharded else 0))) + 2**16
