"""Versions, for files that record what wrote them."""

from __future__ import annotations

import platform

import numpy as np

import distreduce
from distreduce._utils.text import library_versions


def test_versions_of_installed_packages():
    expected = {"distreduce": distreduce.__version__, "python": platform.python_version(), "numpy": np.__version__}
    assert library_versions(["numpy", "a-package-that-does-not-exist"]) == expected
