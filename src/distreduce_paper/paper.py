"""The numbers that the paper prints, and how ours compare with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from distreduce_paper.blocks import Verdict

# The paper rounds to two digits: a standard deviation of "0.00" is anything up to half of the last one.
ROUNDING = 0.005
_DUST = 1e-9  # 0.16 is one deviation of 0.02 from 0.14, whatever binary fractions say

# Data sets and metrics as the report writes them.
LABELS = {
    "boston": "Boston",
    "energy": "Energy",
    "concrete": "Concrete",
    "mnist2k": "MNIST-2k",
    "coil20": "COIL-20",
    "fashion": "Fashion-MNIST",
    "snareseq": "SNAREseq",
    "s_curve": "S-curve",
    "swiss_roll": "Swiss roll",
    "friedman": "Friedman",
    "mll": "MLL",
    "mse": "MSE",
    "mlp": "MLP",
    "acc": "accuracy",
    "cka": "CKA",
    "silhouette": "silhouette × 100",
    "train": "train R²",
    "test": "test R²",
}


@dataclass(frozen=True)
class Printed:
    """A mean and a standard deviation (None where the paper gives none), and which direction is better."""

    mean: float
    std: float | None
    higher_is_better: bool


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(files("distreduce_paper").joinpath("paper.json").read_text("utf-8"))
    return tables


def label(name: str) -> str:
    """A data set or metric as the report writes it; a name that the paper does not have stays as it is."""
    return LABELS.get(name, name)


def title(table: str) -> str:
    """What the paper's table shows."""
    return str(_tables()[table]["paper_table"])


def printed(table: str, method: str, data: str, metric: str) -> Printed | None:
    """The paper's number, or None if it has none for this method, data set and metric."""
    one = _tables()[table]
    value = one["rows"].get(method, {}).get(data, {}).get(metric)
    if value is None:
        return None
    return Printed(value["mean"], value.get("std"), one["better"][metric] == "higher")


def distance(values: ArrayLike, paper: Printed) -> float:
    """How much better our mean is than the paper's, in standard deviations of the paper; negative is worse."""
    gain = float(np.mean(np.asarray(values))) - paper.mean
    return (gain if paper.higher_is_better else -gain) / max(paper.std or 0.0, ROUNDING)


def verdict(values: ArrayLike, paper: Printed) -> Verdict:
    """Equal: within one standard deviation of the paper's own seeds, or what rounds to its digits."""
    away = distance(values, paper)
    if abs(away) <= 1.0 + _DUST:
        return "equal"
    return "better" if away > 0 else "worse"
