"""The reduction problem, and the questions that the solver asks about its samples.

The outer loop itself knows only prototypes. Whether n×n arrays, shards in this process or shards on a cluster stand
behind an answer does not matter to it: answers have the size of the prototypes, or a few numbers per sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.dependence import Dependence, TargetForm
from distreduce.kernels import DistanceKernel, Kernel, Linear, RationalQuadratic
from distreduce.losses import BregmanLoss, InnerLoss, SquaredLoss
from distreduce.mapping import LeftOut, MapRegression, Predictions
from distreduce.mapping.folds import Folds
from distreduce.mapping.landmarks import LandmarkRegression
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
    # Accept the first iteration even if J rises: the initial coupling has seen targets that the T-step does not see.
    leave_start: bool = False
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
    scales: Array | None = None  # by which the map's features were also divided; the fitted map takes them undivided
    fold_scales: Sequence[Array] | None = None  # the scales as learned without each fold
    # Features (n, d + c) of the map, of which the last are predictions; None if they are those of the sample.
    map_features: Array | None = None
    predictions: Predictions | None = None
    folds: Folds | None = None  # in which samples are left out; on shards only where some have equal features
    # The targets (n, c) that the coupling sees if a fold is left out; None if they are those of the sample.
    fold_targets: Mapping[int, Array] | None = None
    # The predictions (n, c) among the map's features if a fold is left out, not divided; None if they stay.
    fold_predictions: Mapping[int, Array] | None = None
    # Whether the coupling sees, instead of a target, what the map's regression on the other samples says about it.
    expects_targets: bool = False
    # Whether the ridge of the map may be raised so that the map does not follow the steps between few prototypes.
    raises_map_reg: bool = False
    # Whether a prototype ends at the mean place of its samples on the map; a large ridge moves the map away from Z.
    prototypes_on_map: bool = False
    # Whether axes that are too narrow to see show more of the features instead.
    opens_axes: bool = False
    has_signal: bool = True  # False: the targets were left out because X says nothing about them
    n_neighbors: int | None = None  # in the graph of a sharded sample; None is three times the perplexity
    graph: Any = None  # similarities (n, n) to use as C; None computes C from the features


@dataclass(frozen=True)
class Coupled:
    """A coupling T (n, m) with the transported affinity TᵀCT (m, m), symmetric."""

    plan: Plan
    transported: Array


@dataclass(frozen=True, kw_only=True)
class SampleOracle(ABC):
    """Samples with their affinity C, targets and out-of-sample map; from `plan` and `prototypes` the loop starts."""

    plan: Plan
    prototypes: Array
    target_loss: BregmanLoss = field(default_factory=SquaredLoss)
    target_kernel: Kernel | None = None  # None leaves the dependence out
    projection: MapRegression | LandmarkRegression | None = None  # None leaves the map out of the objective
    map_inputs: Any = None  # training samples or landmarks; None if samples are given by their distances
    workers: Workers = SERIAL

    @abstractmethod
    def structure_constant(self, loss: InnerLoss) -> float:
        """Return the part of GW that depends on neither T nor Z."""

    @abstractmethod
    def transported(self, plan: Plan) -> Array:
        """Return TᵀCT (m, m)."""

    @abstractmethod
    def supervision(self, plan: Plan) -> float:
        """Return Σ_ij L_s(y_i, g_j*(T)) T_ij, zero without targets."""

    @abstractmethod
    def dependence_target(self, plan: Plan, settings: Settings) -> tuple[Array | None, Array | None]:
        """Return B (m, m) and ω (m,) of :mod:`distreduce.dependence`; None twice without targets."""

    def map_quadratic(self, plan: Plan) -> Array | None:
        """Return R (m, m), which is left of the map after its elimination; None without a map."""
        return None if self.projection is None else self.projection.quadratic(plan)

    def map_fitted(self, plan: Plan, prototypes: Array) -> Array | None:
        """Return the values KL (n, p) at the samples of the best map for T and Z; None without a map."""
        return None if self.projection is None else self.projection.fitted(plan, prototypes)

    @abstractmethod
    def couple(
        self, plan: Plan, f2: Array, h2: Array, prototypes: Array, fitted: Array | None, *, alpha: float, tol: float
    ) -> Coupled:
        """Solve the T-step from `plan`, with the cost (μ/2)|z_k − fitted_i|² if there is a map."""

    # Asked after the loop.
    def map_coefficients(self, F: Array) -> Array:
        """Return the coefficients L of the best map for the places F (n, p) of the samples."""
        assert self.projection is not None
        return self.projection.coefficients(F)

    @abstractmethod
    def project(self, directions: Array) -> Array:
        """Return the products (n, r) of the features with directions (d, r)."""

    @abstractmethod
    def left_out(self, plan: Plan, prototypes: Array, refine: Refine, draw: Draw) -> LeftOut | None:
        """Return where the samples would lie had the map not seen them; None without folds to leave out.

        Where the coupling has seen predictions that know the targets of left-out samples, `refine` repeats its last
        step without them. `draw` turns the places of the plan's prototypes into those of the picture.
        """

    @abstractmethod
    def medoids(self, plan: Plan) -> Index:
        """Return the sample that represents each prototype, −1 for unused ones; see `distreduce.solver.medoids`."""


# One T-step and one Z-step from the coupling and the prototypes of an oracle.
Refine = Callable[[SampleOracle], tuple[Plan, Array]]
# From places (k, p) of some samples, and their numbers, to places in the picture.
Draw = Callable[[Array, Index], Array]
