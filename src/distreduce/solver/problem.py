"""The reduction problem: a weighted sample, the constants of the objective J, and the settings of the solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    coupling_tol: float = 0.01  # tolerance of a T-step in units of `tol`


@dataclass(frozen=True)
class ReductionProblem:
    """Minimize J (see :func:`distreduce.solver.objective.objective`) over T, Z and L for one weighted sample."""

    sample: Sample | ShardedSample
    settings: Settings
    n_components: int  # dimension p of the prototypes
    n_prototypes: int | None  # m; None is one prototype per sample
    perplexity: float
    init: Any  # name of the initial coupling, or the coupling itself with one row per sample
    target_loss: BregmanLoss
    target_kernel: Kernel | None  # None without targets
    input_kernel: Kernel  # K of the out-of-sample map
    mu: float  # weight of the distance between prototypes and map
    map_reg: float  # ridge penalty λ of the map
    unit: float = 1.0  # X was divided by this number; the fitted map divides new samples by it
    scales: Array | None = None  # (d,), by which the features were also divided; the fitted map takes them undivided
    fold_scales: Sequence[Array] | None = None  # the scales as learned without each fold
    folds: Index | None = None  # (n,), the fold in which a sample is left out, for left-out places in memory
    # The targets (n, c) that the coupling sees if a fold is left out; None if they are those of the sample.
    fold_targets: Mapping[int, Array] | None = None
    # Whether prototypes end where the map puts their samples; the ridge draws it away from where the fit puts them.
    relaxed: bool = False
    has_signal: bool = True  # False: the targets were left out because X says nothing about them
    n_neighbors: int | None = None  # in the graph of a sharded sample; None is three times the perplexity
