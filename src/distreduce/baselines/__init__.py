"""The methods that SDR is compared with, as scikit-learn estimators, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distreduce.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

    from distreduce.baselines.ard_gp import ARDGPClassifier, ARDGPRegressor
    from distreduce.baselines.cluster_then_reduce import ClusterThenReduce
    from distreduce.baselines.deep_gp import DeepGPRegressor
    from distreduce.baselines.dkl import DKLClassifier, DKLRegressor
    from distreduce.baselines.embedding_gp import EmbeddingGP
    from distreduce.baselines.kernel_supervised_pca import KernelSupervisedPCA
    from distreduce.baselines.linear import LinearBaseline
    from distreduce.baselines.nca import NCA
    from distreduce.baselines.reduce_then_cluster import ReduceThenCluster
    from distreduce.baselines.supervised_umap import SupervisedUMAP

__all__ = [
    "NCA",
    "PCA",
    "ARDGPClassifier",
    "ARDGPRegressor",
    "ClusterThenReduce",
    "DKLClassifier",
    "DKLRegressor",
    "DeepGPRegressor",
    "EmbeddingGP",
    "KernelSupervisedPCA",
    "LinearBaseline",
    "ReduceThenCluster",
    "SupervisedUMAP",
]

_MODULES = {
    "NCA": "distreduce.baselines.nca",
    "PCA": "sklearn.decomposition",
    "ARDGPClassifier": "distreduce.baselines.ard_gp",
    "ARDGPRegressor": "distreduce.baselines.ard_gp",
    "ClusterThenReduce": "distreduce.baselines.cluster_then_reduce",
    "DKLClassifier": "distreduce.baselines.dkl",
    "DKLRegressor": "distreduce.baselines.dkl",
    "DeepGPRegressor": "distreduce.baselines.deep_gp",
    "EmbeddingGP": "distreduce.baselines.embedding_gp",
    "KernelSupervisedPCA": "distreduce.baselines.kernel_supervised_pca",
    "LinearBaseline": "distreduce.baselines.linear",
    "ReduceThenCluster": "distreduce.baselines.reduce_then_cluster",
    "SupervisedUMAP": "distreduce.baselines.supervised_umap",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        # Any other missing module is a defect, not an extra to install.
        if error.name not in ("torch", "gpytorch"):
            raise
        raise MissingDependencyError(f"{name} needs {error.name}: pip install 'distreduce[gp]'.") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
