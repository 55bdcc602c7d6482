"""Supervised distributional reduction: few weighted, low-dimensional prototypes of (X, y), and a map to them."""

from distreduce.estimators import SDR, DistR

__version__ = "0.1.0"
__all__ = ["SDR", "DistR", "__version__"]
