"""The map L: out-of-sample extension of the embedding by kernel ridge regression."""

from distreduce.projection.kernel_map import KernelMap, Projection, barycentres
from distreduce.projection.relevance import relevance_length_scales

__all__ = ["KernelMap", "Projection", "barycentres", "relevance_length_scales"]
