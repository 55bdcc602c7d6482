"""Data sets by name, ``load("boston")``, and files of one's own, ``load("my.csv", target="price")``."""

from distreduce.datasets.bundle import Dataset
from distreduce.datasets.loading import fetch, load, names

__all__ = ["Dataset", "fetch", "load", "names"]
