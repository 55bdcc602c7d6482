"""The paper's data sets as (X, y), read from the folder of the `data_dir` fixture, and its synthetic splits.

Tabular X and continuous y are standardised per feature over the whole set. Image sets keep one global scale, because
rescaling every pixel or principal component would undo the geometry: their X is divided by one number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1, make_s_curve, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

Pair = tuple[np.ndarray, np.ndarray]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def boston(folder: Path) -> Pair:
    """506 × 13, one target."""
    return _table(folder / "boston.csv", n_targets=1)


def concrete(folder: Path) -> Pair:
    """1030 × 8, one target."""
    return _table(folder / "concrete.csv", n_targets=1)


def energy(folder: Path) -> Pair:
    """768 × 8, two targets: y is (768, 2)."""
    return _table(folder / "energy.csv", n_targets=2)


def coil20(folder: Path) -> Pair:
    """1440 × 50, 20 classes: PCA to 50 components, then one global scale."""
    return _pca_50(*_images(folder / "coil20.npz"))


def fashion(folder: Path, n: int = 10_000, seed: int = 0) -> Pair:
    """n × 50, 10 classes, drawn from the test split: PCA to 50 components, then one global scale."""
    return _pca_50(*_draw(*_images(folder / "fashion_mnist_t10k.npz"), n, seed))


def mnist(folder: Path, n: int = 2000, seed: int = 0) -> Pair:
    """n × 784, 10 classes, drawn from the test split: pixels divided by 255, the one global scale."""
    return _draw(*_images(folder / "mnist_t10k.npz"), n, seed)


def snareseq(folder: Path) -> Pair:
    """1047 × 19 chromatin features, 4 cell types; standardised per feature."""
    with np.load(folder / "snareseq.npz", allow_pickle=False) as store:
        return StandardScaler().fit_transform(store["chromatin"]), store["labels"].astype(int)


def s_curve(seed: int) -> Split:
    """S-curve, 100 points: X_train, X_test, y_train, y_test."""
    return _split(*make_s_curve(100, random_state=seed), seed)


def swiss_roll(seed: int) -> Split:
    """Swiss roll, 100 points: X_train, X_test, y_train, y_test."""
    return _split(*make_swiss_roll(100, random_state=seed), seed)


def friedman(seed: int) -> Split:
    """Friedman #1, 500 points: X_train, X_test, y_train, y_test."""
    return _split(*make_friedman1(500, random_state=seed), seed)


def _table(path: Path, n_targets: int) -> Pair:
    table = StandardScaler().fit_transform(np.genfromtxt(path, delimiter=",", skip_header=1))
    X, Y = table[:, :-n_targets], table[:, -n_targets:]
    return X, Y[:, 0] if n_targets == 1 else Y


def _images(path: Path) -> Pair:
    with np.load(path, allow_pickle=False) as store:
        images = store["images"]
        return images.reshape(len(images), -1) / 255.0, store["labels"].astype(int)


def _draw(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> Pair:
    rows = np.random.default_rng(seed).choice(len(X), size=n, replace=False)
    return X[rows], y[rows]


def _pca_50(X: np.ndarray, y: np.ndarray) -> Pair:
    scores = PCA(50, random_state=0).fit_transform(X)
    return scores / scores.std(), y


def _split(X: np.ndarray, y: np.ndarray, seed: int) -> Split:
    """An 80/20 split with X and y standardised by the training part alone."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    for_X, for_y = StandardScaler().fit(X_train), StandardScaler().fit(y_train[:, None])
    y_train, y_test = (for_y.transform(part[:, None])[:, 0] for part in (y_train, y_test))
    return for_X.transform(X_train), for_X.transform(X_test), y_train, y_test
