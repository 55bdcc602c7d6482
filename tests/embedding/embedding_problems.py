"""Random Z-step problems, with a target matrix B made by explicit matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distreduce.embedding.plain import EmbeddingProblem


def symmetric(rng: np.random.Generator, m: int) -> np.ndarray:
    half = rng.uniform(0.0, 1.0, (m, m))
    return 0.5 * (half + half.T)


def centring(omega: np.ndarray) -> np.ndarray:
    """H = I − 1 pᵀ with p the normalised weights."""
    return np.eye(len(omega)) - np.outer(np.ones(len(omega)), omega / omega.sum())


def direction(K: np.ndarray, omega: np.ndarray, dependence: str) -> np.ndarray:
    """B of the target kernel K, by explicit matrices."""
    D = np.diag(omega)
    if dependence != "cka_uncentered":
        K = centring(omega) @ K @ centring(omega).T
    size = omega.sum() ** 2 if dependence == "hsic" else np.sqrt(np.trace(D @ K @ D @ K.T))
    return D @ K @ D / size


def random_problem(rng: np.random.Generator, m: int, *, n_empty: int = 0, **options) -> EmbeddingProblem:
    """Masses, transported affinity and targets at random; the last `n_empty` prototypes carry nothing at all."""
    occupied = np.r_[np.ones(m - n_empty), np.zeros(n_empty)]
    omega = occupied * rng.uniform(0.5, 2.0, m)
    Y = rng.normal(size=(m, 2))
    K = np.exp(-0.5 * ((Y[:, None] - Y[None]) ** 2).sum(axis=2))
    dependence = options.pop("dependence", "cka")
    R = rng.normal(size=(m, m)) if options.pop("with_map", False) else None
    problem = EmbeddingProblem(
        mass=occupied * rng.uniform(0.5, 3.0, m),
        transported=np.outer(occupied, occupied) * symmetric(rng, m),
        reference=occupied,
        target=direction(K, omega, dependence),
        target_weights=omega,
        quadratic=None if R is None else R @ R.T / m,
        eta=10.0,
        dependence=dependence,
    )
    return replace(problem, **options)
