"""The weighted sample that a fit works on: in memory, or in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distreduce._utils.hashing import fingerprint_of_rows
from distreduce._utils.typing import Array
from distreduce.sharding.cells import Probes
from distreduce.sharding.shards import Shard, ShardPass, Shards


@dataclass(frozen=True)
class Sample:
    """Distinct samples with their weights and targets.

    Attributes
    ----------
    features : (n, d) array or sparse matrix
        Rows of X or, if `precomputed`, their mutual distances (n, n).
    weights : (n,) array
        Weights h of the samples.
    precomputed : bool
        Whether `features` are distances.
    targets : (n, c) array or None
        Targets Y of the supervision loss; rows of NaN are unsupervised.
    kernel_targets : (n, c) array or None
        Targets Y of the dependence term; rows of NaN are unsupervised.
    """

    features: Any
    weights: Array
    precomputed: bool = False
    targets: Array | None = None
    kernel_targets: Array | None = None

    def fingerprints(self) -> list[str]:
        """Digests of the rows."""
        return [fingerprint_of_rows(self.features, self.targets, self.kernel_targets)]


@dataclass(frozen=True)
class ShardedSample:
    """Distinct samples in shards.

    Attributes
    ----------
    shards : Shards
        With the parts "features", "cells", "targets" and "kernel_targets" (see :class:`Sample`).
    weights : (n,) array
        Weights h of all samples.
    subsample : Sample
        A random subsample, in this process.
    probes : Probes
        Which cells the neighbours of the samples of a cell are sought in.
    others : list of lists
        Which shards the neighbours of the samples of a shard are sought in.
    """

    shards: Shards
    weights: Array
    subsample: Sample
    probes: Probes
    others: Sequence[Sequence[int]]

    def fingerprints(self) -> list[str]:
        """Digests of the rows, one per shard."""
        return self.shards.collect(_Fingerprint())


@dataclass(frozen=True)
class _Fingerprint(ShardPass[str]):
    """Digest of a shard's rows."""

    reads = ("features", "targets", "kernel_targets")

    def __call__(self, shard: Shard) -> str:
        return fingerprint_of_rows(shard.features, shard.targets, shard.kernel_targets)
