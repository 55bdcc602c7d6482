"""The weighted sample that a fit works on: in memory, or in shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce._utils.hashing import fingerprint_of_rows
from distreduce._utils.typing import Array, Index
from distreduce.sharding.cells import Probes
from distreduce.sharding.shards import Shard, ShardPass, Shards


@dataclass(frozen=True)
class Sample:
    """Distinct samples with their weights and targets; rows of targets that are NaN are unsupervised."""

    features: Any  # rows of X (n, d), dense or sparse, or, if `precomputed`, their mutual distances (n, n)
    weights: Array  # h (n,)
    precomputed: bool = False
    targets: Array | None = None  # Y of the supervision loss (n, c)
    kernel_targets: Array | None = None  # Y of the dependence term (n, c)
    shares: Array | None = None  # predicted shares of classes (n, c) of a subsample: further features of the map

    def take(self, rows: Index) -> Sample:
        features = self.features[np.ix_(rows, rows)] if self.precomputed else self.features[rows]
        targets, kernel_targets = (None if Y is None else Y[rows] for Y in (self.targets, self.kernel_targets))
        return Sample(features, self.weights[rows], self.precomputed, targets, kernel_targets)

    def fingerprints(self) -> list[str]:
        return [fingerprint_of_rows(self.features, self.targets, self.kernel_targets)]


@dataclass(frozen=True)
class ShardedSample:
    """Distinct samples in shards with the parts "features", "shares", "cells", "targets" and "kernel_targets"."""

    shards: Shards
    weights: Array  # h of all samples (n,)
    subsample: Sample  # a random one, in this process
    probes: Probes  # which samples the neighbours of those of a cell are sought among

    def fingerprints(self) -> list[str]:
        return self.shards.collect(_Fingerprint())


@dataclass(frozen=True)
class _Fingerprint(ShardPass[str]):
    """Digest of a shard's rows."""

    reads = ("features", "targets", "kernel_targets")

    def __call__(self, shard: Shard) -> str:
        return fingerprint_of_rows(shard.features, shard.targets, shard.kernel_targets)
