"""The map L: out-of-sample extension of the embedding by kernel ridge regression."""

from distreduce.mapping.kernel_map import KernelMap, MapRegression, Predictions, barycentres
from distreduce.mapping.left_out import LeftOut, left_out_embedding
from distreduce.mapping.relevance import relevance_length_scales

__all__ = [
    "KernelMap",
    "LeftOut",
    "MapRegression",
    "Predictions",
    "barycentres",
    "left_out_embedding",
    "relevance_length_scales",
]
