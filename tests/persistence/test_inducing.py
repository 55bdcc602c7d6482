"""Sparse GPs, which only old files hold, against the formulas of Titsias written out."""

from __future__ import annotations

import numpy as np

from distreduce.gp import _exact
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import RBF
from distreduce.persistence._processes import SparseGP, whiten

FOUND = Hyperparameters(np.array([0.8, 1.6]), 1.3, 0.2)


def covariance(A, B):
    return FOUND.signal * RBF(1.0)(A / FOUND.length_scales, B / FOUND.length_scales)


def test_moments_and_covariance_are_titsias_formulas(rng, monkeypatch):
    X, Z, new, y = (rng.normal(size=shape) for shape in ((40, 2), (7, 2), (9, 2), 40))
    A = whiten(Z, X, FOUND) / np.sqrt(FOUND.noise)
    gp = SparseGP(Z, FOUND, np.eye(7) + A @ A.T, A @ y / np.sqrt(FOUND.noise))
    Kzz, Kzx, Kzn = covariance(Z, Z), covariance(Z, X), covariance(Z, new)
    S = np.linalg.inv(Kzz + Kzx @ Kzx.T / FOUND.noise)
    expected = covariance(new, new) - Kzn.T @ (np.linalg.inv(Kzz) - S) @ Kzn + FOUND.noise * np.eye(9)
    monkeypatch.setattr(_exact, "BATCH_NUMBERS", 21)  # three rows at a time
    mean, variance = gp.moments(new)
    np.testing.assert_allclose(mean, Kzn.T @ S @ Kzx @ y / FOUND.noise, atol=1e-6)
    np.testing.assert_allclose(variance, expected.diagonal(), atol=1e-6)
    np.testing.assert_allclose(gp.covariance(new), expected, atol=1e-6)
