"""The paper is rebuilt with what every user of the library has; import-linter checks the rooms, this the names.

Files, locks and words for messages, in `_utils`, are no part of the method, and shared.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import distreduce_paper

ROOT = Path(distreduce_paper.__file__).parent
# The baselines are estimators like the library's own; pyproject.toml names what they share with these.
PATHS = sorted(path for path in ROOT.rglob("*.py") if path.parent.name != "baselines")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_name_of_the_library_is_imported(path):
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    library = [name.split(".") for name in names if name.split(".")[0] == "distreduce"]
    methods = [parts for parts in library if parts[1:2] != ["_utils"]]
    assert [parts for parts in methods if any(part.startswith("_") for part in parts)] == []
