"""Data sets by name, ``load("boston")``, and files of one's own, ``load("my.csv", target="price")``."""

from distreduce.datasets.dataset import Dataset
from distreduce.datasets.loading import fetch, load, names

__all__ = ["Dataset", "fetch", "load", "names"]
