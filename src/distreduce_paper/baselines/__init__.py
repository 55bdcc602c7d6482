"""The paper's own baselines, as scikit-learn estimators, imported on first use: the deep ones need torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distreduce.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from distreduce_paper.baselines.deep_gp import DeepGPRegressor
    from distreduce_paper.baselines.dkl import DKLClassifier, DKLRegressor
    from distreduce_paper.baselines.linear import LinearBaseline
    from distreduce_paper.baselines.supervised_umap import SupervisedUMAP
    from distreduce_paper.baselines.two_steps import ClusterThenReduce, ReduceThenCluster

__all__ = [
    "ClusterThenReduce", "DKLClassifier", "DKLRegressor", "DeepGPRegressor", "LinearBaseline", "ReduceThenCluster",
    "SupervisedUMAP",
]  # fmt: skip

_MODULES = {
    "ClusterThenReduce": "two_steps",
    "DKLClassifier": "dkl",
    "DKLRegressor": "dkl",
    "DeepGPRegressor": "deep_gp",
    "LinearBaseline": "linear",
    "ReduceThenCluster": "two_steps",
    "SupervisedUMAP": "supervised_umap",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        # Any other missing module is a defect, not an extra to install.
        if error.name not in ("torch", "gpytorch"):
            raise
        raise MissingDependencyError(f"{name} needs {error.name}: pip install 'distreduce[gp]'.") from error
