"""The same seed gives the same bits: again, with more threads, in another process with other thread settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import distreduce
from distreduce import SDR, DistR

SCRIPT = """
import hashlib
import numpy as np
from distreduce import SDR
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 80))
y = X[:, 0] ** 2 + X[:, 1]
digest = hashlib.sha256()
for m, d in ((None, 80), (30, 5)):
    model = SDR(n_prototypes=m, random_state=0, n_jobs={n_jobs}).fit(X[:, :d], y)
    for array in (model.embedding_, model.prototypes_, model.coupling_.toarray(), model.transform(X[:, :d] + 1)):
        digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""


def run(n_jobs: int | None, blas_threads: int) -> str:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(blas_threads))
    environment["PYTHONPATH"] = str(Path(distreduce.__file__).parents[1])
    script = SCRIPT.format(n_jobs=n_jobs)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_processes_with_other_thread_counts_give_the_same_bits() -> None:
    assert run(1, 1) == run(2, 4)


@pytest.mark.parametrize("estimator", [SDR, DistR])
@pytest.mark.parametrize("n_prototypes", [None, 25])
@pytest.mark.parametrize("d", [4, 90])
def test_number_of_threads_changes_no_bit(d: int, n_prototypes: Any, estimator: type, rng: np.random.Generator) -> None:
    X = rng.normal(size=(260, d))
    fits = [estimator(n_prototypes=n_prototypes, random_state=0, n_jobs=n_jobs).fit(X, X[:, 0]) for n_jobs in (1, 2)]
    assert all(np.array_equal(fit.embedding_, fits[0].embedding_) for fit in fits)


@pytest.mark.parametrize("init", ["auto", "random", "kmeans", "spectral"])
def test_same_seed_same_bits(init: str, classification: Any) -> None:
    first, second = (SDR(n_prototypes=9, init=init, random_state=5).fit(*classification) for _ in range(2))
    assert_array_equal(first.prototypes_, second.prototypes_)


def test_generator_is_used_up_as_scikit_learn_does(classification: Any) -> None:
    state = np.random.RandomState(5)
    first = SDR(n_prototypes=9, init="random", random_state=state).fit_transform(*classification)
    assert_array_equal(first, SDR(n_prototypes=9, init="random", random_state=5).fit_transform(*classification))


def test_global_generator_is_left_alone(classification: Any) -> None:
    np.random.seed(3)  # noqa: NPY002 (the legacy generator is the one that must not move)
    expected = np.random.RandomState(3).random_sample()
    SDR(n_prototypes=9, init="random").fit(*classification)
    assert np.random.random_sample() == expected  # noqa: NPY002


def test_fits_in_python_threads_do_not_disturb_each_other(classification: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = SDR(n_prototypes=9, random_state=0).fit_transform(*classification)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: SDR(n_prototypes=9, random_state=0).fit_transform(*classification), range(8)))
    assert all(np.array_equal(one, expected) for one in found)
