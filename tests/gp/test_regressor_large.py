"""Many samples: to predict in bounded memory, and to train through prototypes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm

from distreduce.gp import GPRegressor, SDRGPRegressor, _experts

MEMORY = """
import resource
import numpy as np
from distreduce.gp import SDRGPRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 4))
model = SDRGPRegressor(experts=[], gp_steps=5, random_state=0).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=100))
new = rng.normal(size=(100_000, 4))
model.predict(new[:10], return_std=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mean, std = model.predict(new, return_std=True)
assert np.isfinite(mean).all() and np.isfinite(std).all() and len(mean) == len(std) == 100_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_hundred_thousand_samples_are_predicted_in_bounded_memory():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 200_000, run.stdout  # kilobytes; 96,000 in parts, 395,000 at once


def waves(n, seed):
    """Ten periods on either axis: 300 rows cannot follow them, 2,000 can."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(10 * X[:, 0]) * np.cos(10 * X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.mark.usefixtures("light")
def test_more_samples_than_an_exact_gp_takes_are_all_learned_from(monkeypatch):
    """Those of the reduction alone have a mean log density of -0.7, an exact GP of 600 has 0.68, and noise 0.88."""
    monkeypatch.setattr(_experts, "EXACT_ROWS", 800)
    (X, y), (new, truth) = waves(2000, 0), waves(500, 1)
    model = SDRGPRegressor(n_prototypes=50, max_reduction_samples=300, experts=[], random_state=0).fit(X, y)
    some = GPRegressor().fit(X[:600], y[:600])
    found, least = (norm.logpdf(truth, *each.predict(new, return_std=True)).mean() for each in (model, some))
    assert found > least + 0.05
