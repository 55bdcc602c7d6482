"""Many samples: to predict in bounded memory, and to train through prototypes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from distreduce.gp import GPRegressor, SDRGPRegressor

MEMORY = """
import resource
import numpy as np
from distreduce.gp import SDRGPRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 4))
model = SDRGPRegressor(gp_steps=5, random_state=0).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=100))
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
    assert int(run.stdout) < 250_000, run.stdout  # kilobytes; 140,000 in parts, 420,000 at once


def friedman(n, seed):
    return make_friedman1(n, n_features=8, noise=1.0, random_state=seed)


@pytest.mark.slow
def test_more_samples_than_an_exact_gp_takes_train_and_predict_as_well_as_an_exact_gp_of_some():
    X, y = friedman(5000, 0)
    new, truth = friedman(1000, 1)
    model = SDRGPRegressor(n_prototypes=50, max_reduction_samples=500, random_state=0).fit(X, y)
    some = GPRegressor().fit(X[:600], y[:600])

    def density(estimator):
        mean, std = estimator.predict(new, return_std=True)
        return float(np.mean(-0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((truth - mean) / std) ** 2))

    assert density(model) > density(some) - 0.02
