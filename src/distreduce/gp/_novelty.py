"""How unlike the training samples a new sample is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distreduce._utils.numerics import nearest
from distreduce._utils.typing import Array, Index
from distreduce.gp._exact import evenly_spaced

NEIGHBOURS = 5  # one may be an outlier itself
REFERENCE = 5000  # training samples that new ones are compared with


@dataclass(frozen=True)
class Novelty:
    """Distinct training samples (k, d), and sorted mean distances of each to its nearest others (k,)."""

    inputs: Array
    distances: Array

    @classmethod
    def of(cls, distinct: Array, copies: Index) -> Novelty:
        """From distinct standardised samples; near copies count once."""
        first = np.unique(copies, return_index=True)[1]
        inputs = distinct[first[evenly_spaced(len(first), REFERENCE)]]
        k = min(NEIGHBOURS, len(inputs) - 1)
        if k == 0:
            return cls(inputs, np.zeros(1))
        distance = nearest(inputs, inputs, k + 1)[0][:, 1:]  # without itself
        return cls(inputs, np.sort(distance.mean(axis=1)))

    def __call__(self, inputs: Array) -> Array:
        """P-values of samples."""
        k = max(1, min(NEIGHBOURS, len(self.inputs) - 1))
        distance = nearest(inputs, self.inputs, k)[0].mean(axis=1)
        farther = len(self.distances) - np.searchsorted(self.distances, distance, side="left")
        return np.asarray((1 + farther) / (1 + len(self.distances)))
