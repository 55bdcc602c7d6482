"""Nothing in the package can run code that a file brings."""

from __future__ import annotations

from pathlib import Path

import pytest
from trust.forbidden import findings

import distreduce

SOURCE = Path(distreduce.__file__).parent


def test_no_source_file_can_run_what_a_file_brings() -> None:
    found = [line for path in SOURCE.rglob("*.py") for line in findings(path.read_text(), path.as_posix())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle", "from pickle import loads", "import marshal", "import shelve", "import dill.source",
        "import yaml", "eval(text)", "exec(text)", "__import__(name)", "joblib.load(path)", "from joblib import load",
        "torch.load(path)", "pd.read_pickle(path)", "frame.to_pickle(path)", "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.lib.format.read_array(file, allow_pickle=trusted)", "os.system(text)", "subprocess.run(text, shell=True)",
        "frame.query(text)", "spec.loader.exec_module(module)",
    ],
)  # fmt: skip
def test_the_search_finds(line: str) -> None:
    assert len(findings(line, "a.py")) == 1
