"""Five thousand samples in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import data_sets
import distreduce

SCRIPT = """
import json, re, sys
from pathlib import Path
import numpy as np
from distreduce import SDR
from distreduce.metrics import homogeneity
with np.load(sys.argv[1], allow_pickle=False) as store:
    X, y = store["X"], store["y"]
model = SDR.paper(n_prototypes=100, max_iter=2, random_state=0).fit(X, y)
# Not ru_maxrss, which a new process inherits from the one that starts it.
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # kilobytes
print(json.dumps({"megabytes": peak, "homogeneity": homogeneity(y, model.labels_)}))
"""


@pytest.fixture(scope="module")
def fit_of_fashion(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Peak memory and homogeneity of a fit in a process of its own; the PCA is made here, not there."""
    X, y = data_sets.fashion(data_dir, n=5000)
    path = tmp_path_factory.mktemp("fashion") / "fashion.npz"
    np.savez(path, X=X, y=y)
    script = f"import sys; sys.path.insert(0, {str(Path(distreduce.__file__).parents[1])!r})\n{SCRIPT}"
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_memory_has_room_for_two_matrices_of_all_pairs(fit_of_fashion: dict[str, float]) -> None:
    assert fit_of_fashion["megabytes"] < 850  # 312 of the libraries, and 200 for each matrix of n² numbers


@pytest.mark.data
@pytest.mark.slow
def test_prototypes_are_nearly_pure(fit_of_fashion: dict[str, float]) -> None:
    assert fit_of_fashion["homogeneity"] > 0.95
