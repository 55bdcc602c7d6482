"""Versions and machine, for files that record what wrote them."""

from __future__ import annotations

import platform

import numpy as np

import distreduce
from distreduce._utils.versions import available_cores, library_versions, machine


def test_versions_of_installed_packages():
    expected = {"distreduce": distreduce.__version__, "python": platform.python_version(), "numpy": np.__version__}
    assert library_versions(["numpy", "a-package-that-does-not-exist"]) == expected


def test_machine_in_one_line():
    assert f"{available_cores()} cores" in machine() and "\n" not in machine()
