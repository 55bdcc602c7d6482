"""The map L: out-of-sample extension of the embedding by kernel ridge regression."""

from distreduce.mapping.choice import Candidate, MapChoice, TaughtSamples, choose_map
from distreduce.mapping.kernel_map import KernelMap, MapRegression, barycentres
from distreduce.mapping.left_out import LeftOut, left_out_embedding
from distreduce.mapping.relevance import relevance_length_scales

__all__ = [
    "Candidate",
    "KernelMap",
    "LeftOut",
    "MapChoice",
    "MapRegression",
    "TaughtSamples",
    "barycentres",
    "choose_map",
    "left_out_embedding",
    "relevance_length_scales",
]
