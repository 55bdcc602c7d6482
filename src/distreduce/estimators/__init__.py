"""SDR and DistR as scikit-learn estimators."""

from distreduce.estimators._distr import DistR
from distreduce.estimators._sdr import SDR

__all__ = ["SDR", "DistR"]
