"""Fitted models of the report's tests: small ones of iris, with classes, numbers and no target."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from distreduce import SDR, DistR

IRIS = load_iris()


@pytest.fixture(scope="session")
def X():
    return IRIS.data


@pytest.fixture(scope="session")
def labels():
    """Species, as a named column."""
    return pd.Series(IRIS.target_names[IRIS.target], name="species")


@pytest.fixture(scope="session")
def lengths():
    """A continuous target that X knows."""
    return pd.Series(IRIS.data[:, 2] + 0.05 * np.arange(150) % 0.1, name="length")


@pytest.fixture(scope="session")
def classes(X, labels):
    return SDR(n_prototypes=12, random_state=0).fit(X, labels)


@pytest.fixture(scope="session")
def numbers(X, lengths):
    return SDR(n_prototypes=12, task="regression", random_state=0).fit(X, lengths)


@pytest.fixture(scope="session")
def unsupervised(X):
    return DistR(n_prototypes=12, random_state=0).fit(X)


@pytest.fixture(scope="session")
def read_page():
    """The data that the script of a written page reads."""

    def read(path):
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)
        return json.loads(found.group(1))

    return read


@pytest.fixture(scope="session")
def unpack():
    """A typed array of the page as NumPy reads it."""
    import base64

    return lambda node: np.frombuffer(base64.b64decode(node["data"]), dtype="<" + node["type"])
