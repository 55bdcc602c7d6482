"""The data and the problems that our solver and the yardstick both get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from distreduce._utils.threads import workers
from distreduce.affinity import squared_distances, student_affinity, symmetric_entropic_affinity
from distreduce.coupling.initial import initial_plan
from distreduce.coupling.problem import CouplingProblem, affinity_times_plan, structure_matrices
from distreduce.dependence import dependence_target
from distreduce.embedding.optimize import initial_prototypes
from distreduce.embedding.plain import EmbeddingProblem
from distreduce.kernels import Delta
from distreduce.losses import CrossEntropyLoss
from distreduce.sharding.sample import Sample
from distreduce.solver.dense import DenseOracle
from distreduce.solver.loop import solve
from distreduce.solver.problem import Settings

Array = NDArray[np.float64]

# The paper's constants; no out-of-sample map (projection=None), which its distributional reduction does not have.
# Without the map J has many minima, and which one is found depends on how often the plan follows Z. With inner loops of
# 10 steps it was no worse than the yardstick's from both starts tried (COIL-20, principal coordinates: −307 against
# −256; N(0, 1): −104 against 34); with the default 100 it was −200 and −167.
PAPER = Settings(alpha=0.2, eta=1000.0, target_form="transport", max_inner_iter=10, max_iter=400)
DEFAULT_SCHEDULE = {"max_inner_iter": 100, "max_iter": 50}
PERPLEXITY = 20.0
COIL_SIZE, COIL_CLASSES = 1440, 20


@dataclass(frozen=True)
class Labelled:
    """Features (n, d), labels (n,), and their name in the table."""

    X: Array
    y: NDArray[np.integer]
    name: str


def mixture(n: int, seed: int = 0) -> Labelled:
    """20 Gaussian clusters in 50 dimensions that overlap a little, on one global scale."""
    X, y = make_blobs(n, 50, centers=COIL_CLASSES, cluster_std=4.0, random_state=seed)
    return Labelled(X / X.std(), y, f"synthetic mixture, n={n}")


def coil20(folder: Path | None, n: int = COIL_SIZE) -> Labelled:
    """COIL-20 by 50 principal components on one global scale (its first n rows drawn at random), or a mixture."""
    path = None if folder is None else folder / "coil20.npz"
    if path is None or not path.is_file():
        return mixture(n)
    with np.load(path, allow_pickle=False) as store:
        images, labels = store["images"], store["labels"].astype(int)
    # The preparation of the experiments: 50 components, divided by one number.
    scores = PCA(50, random_state=0).fit_transform(images.reshape(len(images), -1) / 255.0)
    rows = np.sort(np.random.default_rng(0).permutation(len(scores))[:n])
    return Labelled(scores[rows] / scores.std(), labels[rows], f"COIL-20, n={len(rows)}")


def one_hot(labels: NDArray[np.integer]) -> Array:
    return np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)


def reduction_problem(data: Labelled, m: int, n_threads: int, init: str = "spectral") -> DenseOracle:
    """SDR without the map, from the paper's spectral plan and the principal coordinates of its prototypes."""
    weights, Y, random_state = np.ones(len(data.X)), one_hot(data.y), np.random.RandomState(0)
    with workers(n_threads) as pool:
        D = squared_distances(data.X, workers=pool)
        C = symmetric_entropic_affinity(D, PERPLEXITY, overwrite=True, workers=pool).matrix
        plan = initial_plan(init, m, weights=weights, affinity=C, features=data.X, random_state=random_state)
    start = initial_prototypes(data.X, plan, 2, random_state, precomputed=False)
    sample = Sample(data.X, weights, targets=Y, kernel_targets=Y)
    return DenseOracle(
        sample=sample,
        affinity=C,
        plan=plan,
        prototypes=start,
        target_loss=CrossEntropyLoss(),
        target_kernel=Delta(),
    )


def embedding_problem(problem: DenseOracle) -> EmbeddingProblem:
    """The Z-step of the paper's objective at the problem's own plan."""
    plan = problem.plan
    mass = np.asarray(plan.sum(axis=0)).ravel()
    target, omega = dependence_target(plan, problem.sample.kernel_targets, Delta(), PAPER.target_form, PAPER.dependence)
    A = plan.T @ affinity_times_plan(problem.affinity, plan)
    # Rounding leaves TᵀCT slightly asymmetric.
    return EmbeddingProblem(mass, 0.5 * (A + A.T), (mass > 0).astype(float), target, omega)


def coupling_problem(problem: DenseOracle, Z: Array) -> CouplingProblem:
    """The T-step of the paper's objective at the embedding Z, all prototypes in the normaliser."""
    f2, h2 = structure_matrices(student_affinity(Z), PAPER.loss)
    C, h, Y = problem.affinity, problem.sample.weights, problem.sample.targets
    return CouplingProblem(C, h, f2, h2, targets=Y, loss=problem.target_loss, alpha=PAPER.alpha)


def objective_of(problem: DenseOracle, plan: sparse.csr_array, Z: Array) -> float:
    """The paper's J at (T, Z) by our own plain evaluation: no outer iteration, and an optimiser of no steps."""
    still = replace(PAPER, optimizer="adam", max_iter=0, max_inner_iter=0, backend="numpy")
    return solve(replace(problem, plan=plan, prototypes=Z), still).objective
