"""Data of benchmarks/gp.py: the paper's five sets, and synthetic ones with the noise we choose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import data_sets  # noqa: E402

Array = np.ndarray


@dataclass(frozen=True)
class Split:
    """Training and test part."""

    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array


@dataclass(frozen=True)
class Problem:
    """How to make (X, y), and whether y are classes."""

    make: Callable[[int, Path | None], tuple[Array, Array]]
    classes: bool = False

    def split(self, seed: int, folder: Path | None, images: bool = False) -> Split:
        """80/20. Numbers are standardised by the training part; images are reduced to 50 principal components of it.

        Methods that read images get them, COIL-20 averaged from 128 × 128 to 32 × 32 for their sake.
        """
        X, y = self.make(seed, folder)
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        if images and X.shape[1] == 128 * 128:
            X_train, X_test = (
                part.reshape(-1, 32, 4, 32, 4).mean(axis=(2, 4)).reshape(-1, 1024) for part in (X_train, X_test)
            )
        if self.classes and not images:
            pca = PCA(50, random_state=0).fit(X_train)
            scale = pca.transform(X_train).std()
            X_train, X_test = pca.transform(X_train) / scale, pca.transform(X_test) / scale
        if not self.classes:
            X_train, X_test = _standardised(X_train, X_test)
            y_train, y_test = _standardised(y_train, y_test)
        return Split(X_train, X_test, y_train, y_test)


def _standardised(train: Array, test: Array) -> tuple[Array, Array]:
    scaler = StandardScaler().fit(train.reshape(len(train), -1))
    return tuple(scaler.transform(part.reshape(len(part), -1)).reshape(part.shape) for part in (train, test))  # type: ignore[return-value]


def _from_file(name: str, seed: int, folder: Path | None) -> tuple[Array, Array]:
    return getattr(data_sets, name)(folder)  # type: ignore[no-any-return]


def _mnist(seed: int, folder: Path | None) -> tuple[Array, Array]:
    return data_sets.mnist(folder, seed=seed)  # type: ignore[arg-type]


def _coil(seed: int, folder: Path | None) -> tuple[Array, Array]:
    return data_sets._images(folder / "coil20.npz")  # type: ignore[operator]


def _friedman(n: int, noise: float, seed: int, folder: Any) -> tuple[Array, Array]:
    return make_friedman1(n, noise=noise, random_state=seed)  # type: ignore[no-any-return]


def _step(seed: int, folder: Any) -> tuple[Array, Array]:
    """Steps along one feature and in a corner of two others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(500, 6))
    return X, 2.0 * (X[:, 0] > 0.5) + 1.0 * (X[:, 1] > 0.3) * (X[:, 2] > 0.6) + 0.1 * rng.normal(size=500)


def _heteroscedastic(seed: int, folder: Any) -> tuple[Array, Array]:
    """Noise that grows twelvefold along a feature that says nothing about the mean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(500, 6))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + (0.05 + 0.6 * X[:, 2]) * rng.normal(size=500)


REGRESSION = ("boston", "energy", "concrete")
CLASSIFICATION = ("mnist2k", "coil20")
PROBLEMS: dict[str, Problem] = {
    **{name: Problem(partial(_from_file, name)) for name in REGRESSION},
    **{
        f"friedman {n}, noise {noise}": Problem(partial(_friedman, n, float(noise)))
        for n in (300, 1000)
        for noise in (0, 1, 3, 5)
    },
    "steps": Problem(_step),
    "heteroscedastic": Problem(_heteroscedastic),
    "mnist2k": Problem(_mnist, classes=True),
    "coil20": Problem(_coil, classes=True),
}
