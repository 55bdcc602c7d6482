"""Fitted models of every kind, small enough to be saved many times over."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor
from distreduce.gp import GPClassifier, GPRegressor, _stack
from distreduce.kernels import RBF, Delta, Linear, RationalQuadratic
from distreduce.losses import LOSSES

N = 24
RNG = np.random.RandomState(0)
X = RNG.standard_normal((N, 3))
NEW = RNG.standard_normal((7, 3))
NUMBERS = X[:, 0] + 0.1 * RNG.standard_normal(N)
GROUPS = np.argsort(np.argsort(NUMBERS)) * 3 // N
WORDS = np.array(["ash", "bïrch", "柏"])[GROUPS]
PARTLY = np.where(np.arange(N) % 3 == 0, np.nan, NUMBERS)
FRAME = pd.DataFrame(X, columns=["a", "größe", "c d"])
THIN, NEW_THIN = (sparse.csr_array(RNG.uniform(-1, 1, (rows, 6)).clip(0)) for rows in (N, 7))
SHARES = np.full((N, 5), 0.05) + 0.75 * np.eye(5)[np.arange(N) % 5]

# Four classes, too many for a line: predictions join the features of the map.
SPOTS, SPOT_OF = make_blobs(N, centers=4, n_features=3, random_state=1)

# name: (model, X, y, new rows)
CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "regression": (SDR(n_prototypes=5, random_state=0), X, NUMBERS, NEW),
    "one prototype a sample": (SDR(random_state=0), X, NUMBERS, NEW),
    "one dimension": (SDR(1, n_prototypes=5, random_state=np.int64(3)), X, NUMBERS, NEW),
    "words": (SDR(n_prototypes=5, random_state=0), X, WORDS, NEW),
    "integers": (SDR(n_prototypes=5, random_state=0, task="classification"), X, GROUPS - 7, NEW),
    "booleans": (SDR(n_prototypes=5, random_state=0), X, GROUPS > 0, NEW),
    "fractions": (SDR(n_prototypes=5, random_state=0, task="classification"), X, GROUPS / 3, NEW),
    "bytes": (SDR(n_prototypes=5, random_state=0), X, np.array([b"u", b"vw", b"x"])[GROUPS], NEW),
    "predictions as features": (SDR(1, n_prototypes=9, random_state=0), SPOTS, SPOT_OF, SPOTS[:7] + 0.5),
    "several targets": (SDR(n_prototypes=5, random_state=0), X, np.c_[NUMBERS, X[:, 1] ** 2], NEW),
    "named targets": (
        SDR(n_prototypes=5, random_state=0),
        FRAME,
        pd.DataFrame({"p": NUMBERS, "q": X[:, 1]}),
        FRAME[:3],
    ),
    "semi-supervised": (SDR(n_prototypes=5, random_state=0), X, PARTLY, NEW),
    "distances": (SDR(n_prototypes=5, metric="precomputed", random_state=0), cdist(X, X), NUMBERS, cdist(NEW, X)),
    "sparse array": (SDR(n_prototypes=5, random_state=0), THIN, NUMBERS, NEW_THIN),
    "sparse matrix": (
        DistR(n_prototypes=5, random_state=0),
        sparse.csr_matrix(THIN),
        None,
        sparse.csr_matrix(NEW_THIN),
    ),
    "unsupervised": (DistR(n_prototypes=5, random_state=0), X, None, NEW),
    "unsupervised, one a sample": (DistR(3, random_state=0, n_jobs=1), X, None, NEW),
    "learned scales": (SDR(n_prototypes=5, length_scale="ard", random_state=0), X, NUMBERS, NEW),
    "array of scales": (SDR(n_prototypes=5, length_scale=np.array([1.0, 2.0, 0.3]), random_state=0), X, NUMBERS, NEW),
    "list of scales": (SDR(n_prototypes=5, length_scale=[1.0, 2.0, 0.3], random_state=0), X, NUMBERS, NEW),
    "tuple of scales": (DistR(n_prototypes=5, length_scale=(1, 2, 3), random_state=0), X, None, NEW),
    "linear": (DistR(n_prototypes=5, input_kernel="linear", random_state=0), X, None, NEW),
    "kernels": (
        SDR(
            n_prototypes=5,
            input_kernel=RationalQuadratic(2.0, 0.7),
            target_kernel=Delta(),
            embedding_kernel=Linear(),
            target_loss=LOSSES["cross_entropy"],
            eta=np.float64(100.0),
            random_state=0,
        ),
        X,
        WORDS,
        NEW,
    ),
    "scaled kernel": (DistR(n_prototypes=5, input_kernel=RBF([1.0, 2.0, 3.0]), random_state=0), X, None, NEW),
    "dense start": (SDR(n_prototypes=5, init=SHARES, random_state=0), X, NUMBERS, NEW),
    "sparse start": (SDR(n_prototypes=5, init=sparse.csc_matrix(SHARES), random_state=0), X, NUMBERS, NEW),
    "numbered start": (SDR(n_prototypes=5, init=(np.arange(N) % 5).tolist(), random_state=0), X, NUMBERS, NEW),
}
TABLE = np.c_[NUMBERS, X[:, 1] ** 2]
QUICK_REGRESSOR = SDRGPRegressor(experts=[], gp_steps=3, random_state=0)
MANY = RNG.standard_normal((60, 3))
SKEWED = np.exp(2 * MANY[:, 0] + 0.2 * RNG.standard_normal(60))
NOISY = np.random.default_rng(1).standard_normal((150, 3))
NOISY[:, 2] = NOISY[:, 0] + np.exp(1.5 * NOISY[:, 1]) * NOISY[:, 2]  # the target, whose noise grows with a feature
# The classes built on Gaussian processes, in the same form.
GP_CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "GPRegressor": (GPRegressor(), X, NUMBERS, NEW),
    "GPRegressor, one column": (GPRegressor(), X, NUMBERS[:, None], NEW),
    "GPRegressor, several targets": (GPRegressor(), FRAME, TABLE, FRAME[:3]),
    "GPRegressor, no noise": (GPRegressor(), X, X[:, 0], NEW),
    "GPRegressor, columns in memory": (GPRegressor(gp_optimizer="adam"), np.asfortranarray(X), NUMBERS, NEW),
    "GPRegressor, copies": (GPRegressor(), np.r_[X, X[:9]], np.r_[NUMBERS, NUMBERS[:9] + 0.1], NEW),
    "SDRGPRegressor": (SDRGPRegressor(gp_steps=3, random_state=0), X, NUMBERS, NEW),
    "SDRGPRegressor, several targets": (QUICK_REGRESSOR, FRAME, TABLE, FRAME[:3]),
    "SDRGPRegressor, warped": (SDRGPRegressor(experts=[], gp_steps=5, random_state=0), MANY, SKEWED, NEW),
    "SDRGPRegressor, noise": (
        SDRGPRegressor(experts=[], gp_steps=5, random_state=0),
        NOISY[:, :2],
        NOISY[:, 2],
        NEW[:, :2],
    ),
    "SDRGPRegressor, embedding alone": (SDRGPRegressor(3, residual=False, gp_steps=3, random_state=0), X, NUMBERS, NEW),
    "SDRGPRegressor, paper": (SDRGPRegressor.paper(random_state=0), X, NUMBERS, NEW),
    "SDRGPRegressor, prototypes": (
        SDRGPRegressor(
            n_prototypes=6, max_reduction_samples=20, perplexity=5.0, gp_steps=3, experts=[], random_state=0
        ),
        X,
        NUMBERS,
        NEW,
    ),
    "GPClassifier": (GPClassifier(random_state=0), X, WORDS, NEW),
    "GPClassifier, numbers": (GPClassifier(n_draws=9, random_state=0), FRAME, GROUPS - 7, FRAME[:3]),
    "SDRGPClassifier": (SDRGPClassifier(2, gp_steps=3, random_state=0), X, WORDS, NEW),
    "SDRGPClassifier, two texts of Python": (
        SDRGPClassifier(2, gp_steps=3, random_state=0),
        FRAME,
        np.where(GROUPS > 0, "ash", "oak").astype(object),
        FRAME[:3],
    ),
    "SDRGPClassifier, paper": (SDRGPClassifier.paper(2, n_draws=32, random_state=0), X, GROUPS > 0, NEW),
    "SDRGPClassifier, prototypes": (
        SDRGPClassifier(
            2, n_prototypes=5, max_reduction_samples=20, perplexity=5.0, experts=[], gp_steps=3, random_state=0
        ),
        X,
        2.0 * GROUPS,
        NEW,
    ),
}
_FITTED: dict[str, Any] = {}


def fitted_model(name: str) -> Any:
    """The model of that case, fitted once a session, with all experts of a stack, also those without weight."""
    if name not in _FITTED:
        model, inputs, targets, _ = (CASES | GP_CASES)[name]
        with mock.patch.object(_stack, "LEAST_WEIGHT", -1.0):
            _FITTED[name] = model.fit(inputs) if targets is None else model.fit(inputs, targets)
    return _FITTED[name]


def full_model() -> Any:
    """A fitted SDR with words for labels, feature names and a sparse start: most of what a file can hold."""
    if "full" not in _FITTED:
        _FITTED["full"] = SDR(n_prototypes=5, init=sparse.csr_array(SHARES), random_state=0).fit(FRAME, WORDS)
    return _FITTED["full"]


def predictions(model: Any, new: Any) -> np.ndarray:
    """What a model says about new samples, as one array: probabilities, or means and standard deviations."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(new))
    return np.array(model.predict(new, return_std=True))


def predictions_with_covariance(model: Any, new: Any) -> np.ndarray:
    """The same, and how the predictions of the samples vary together where a model says so."""
    if hasattr(model, "predict_proba"):
        return predictions(model, new)
    return np.r_[predictions(model, new).ravel(), model.predict(new, return_cov=True)[1].ravel()]
