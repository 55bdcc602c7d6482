"""SDR, DistR and SDRImputer as scikit-learn estimators."""

from distreduce.estimators._distr import DistR
from distreduce.estimators._imputer import SDRImputer
from distreduce.estimators._refits import align_embedding, cross_val_embedding
from distreduce.estimators._sdr import SDR

__all__ = ["SDR", "DistR", "SDRImputer", "align_embedding", "cross_val_embedding"]
