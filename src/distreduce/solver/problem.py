"""The reduction problem: a weighted sample, the constants of the objective J, and the settings of the solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from distreduce._utils.typing import Array, Index
from distreduce.embedding.dependence_target import TargetForm
from distreduce.embedding.problem import Dependence, InnerLoss
from distreduce.kernels import DistanceKernel, Kernel, Linear, RationalQuadratic
from distreduce.losses import BregmanLoss
from distreduce.sharding.sample import Sample, ShardedSample


@dataclass(frozen=True)
class Settings:
    """Constants of the objective and of the solver, named as the parameters of :class:`distreduce.SDR`."""

    alpha: float = 0.2
    eta: float = 1000.0
    loss: InnerLoss = "kl"
    embedding_kernel: DistanceKernel | Linear = field(default_factory=RationalQuadratic)
    dependence: Dependence = "cka"
    target_form: TargetForm = "barycentric"
    solver: Literal["joint", "alternating"] = "joint"
    optimizer: Literal["lbfgs", "adam"] = "lbfgs"
    beta: float = 0.5
    learning_rate: float = 1e-3
    max_iter: int = 50
    max_inner_iter: int = 100
    tol: float = 1e-6
    backend: str = "auto"
    fixed_coupling: bool = False  # keep the initial coupling: there are no T-steps


@dataclass(frozen=True)
class ReductionProblem:
    """Minimize J (see :func:`distreduce.solver.objective.objective`) over T, Z and L for one weighted sample.

    Attributes
    ----------
    sample : Sample or ShardedSample
        Distinct samples, in memory or in shards.
    settings : Settings
        Constants of the objective and of the solver.
    n_components : int
        Dimension p of the prototypes.
    n_prototypes : int or None
        Number m of prototypes; None is one prototype per sample.
    perplexity : float
        Perplexity of the input affinity.
    init : str, array or sparse array
        Name of the initial coupling, or the coupling itself with one row per sample.
    target_loss : BregmanLoss
        Supervision loss.
    target_kernel : Kernel or None
        Kernel on the targets; None without targets.
    input_kernel : Kernel
        Kernel K of the out-of-sample map.
    mu : float
        Weight of the distance between prototypes and map.
    map_reg : float
        Ridge penalty λ of the map.
    unit : float
        X was divided by this number; the fitted map divides new samples by it.
    scales : (d,) array or None
        The features were also divided by these, one per feature; the fitted map takes features that were not.
    fold_scales : sequence of arrays or None
        The scales as learned without each fold.
    folds : (n,) array or None
        Fold in which a sample is left out, for left-out places in memory.
    relaxed : bool
        Whether prototypes end where the map puts their samples; the ridge draws it away from where the fit puts them.
    has_signal : bool
        False if the targets were left out because X says nothing about them.
    n_neighbors : int or None
        Number of neighbours in the graph of a sharded sample; None is three times the perplexity.
    """

    sample: Sample | ShardedSample
    settings: Settings
    n_components: int
    n_prototypes: int | None
    perplexity: float
    init: Any
    target_loss: BregmanLoss
    target_kernel: Kernel | None
    input_kernel: Kernel
    mu: float
    map_reg: float
    unit: float = 1.0
    scales: Array | None = None
    fold_scales: Sequence[Array] | None = None
    folds: Index | None = None
    relaxed: bool = False
    has_signal: bool = True
    n_neighbors: int | None = None
