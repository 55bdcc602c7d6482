"""The methods that SDR is compared with, as scikit-learn estimators."""

from sklearn.decomposition import PCA

from distreduce.baselines.constant_spread import ConstantSpread
from distreduce.baselines.embedding_gp import EmbeddingGP
from distreduce.baselines.kernel_supervised_pca import KernelSupervisedPCA
from distreduce.baselines.nca import NCA

# The ARD Gaussian processes on X, without a reduction: a baseline that the paper does not have.
from distreduce.gp import GPClassifier as ARDGPClassifier
from distreduce.gp import GPRegressor as ARDGPRegressor

__all__ = ["NCA", "PCA", "ARDGPClassifier", "ARDGPRegressor", "ConstantSpread", "EmbeddingGP", "KernelSupervisedPCA"]
