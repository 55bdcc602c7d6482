"""The numbers that the paper prints, and how ours compare with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from distreduce_paper.report.blocks import Verdict

# The paper rounds to two digits: a printed standard deviation of 0.00 is anything up to half of the last digit.
ROUNDING = 0.005
_TOLERANCE = 1e-9  # in binary fractions, 0.16 is more than one deviation of 0.02 from 0.14


@dataclass(frozen=True)
class PublishedNumber:
    """A mean of the paper, its standard deviation (None if the paper gives none), and which direction is better."""

    mean: float
    std: float | None
    higher_is_better: bool


@cache
def _read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("distreduce_paper").joinpath("published.json").read_text("utf-8"))
    return content


def label(name: str) -> str:
    """Return a data set or metric as the report writes it; names that the paper does not have stay as they are."""
    return str(_read()["labels"].get(name, name))


def table_title(table: str) -> str:
    """Return what a table of the paper shows."""
    return str(_read()["tables"][table]["paper_table"])


def get_published(table: str, method: str, data: str, metric: str) -> PublishedNumber | None:
    """Return the number of the paper, or None if it has none for this method, data set and metric."""
    content = _read()["tables"][table]
    # Missing rows, sets and metrics are all answered by None.
    value = content["rows"].get(method, {}).get(data, {}).get(metric)
    if value is None:
        return None
    return PublishedNumber(value["mean"], value.get("std"), content["better"][metric] == "higher")


def distance(values: ArrayLike, paper: PublishedNumber) -> float:
    """Return how much better our mean is, in standard deviations of the paper; negative values are worse."""
    # Signed so that positive is better, whichever direction the metric has.
    gain = float(np.mean(np.asarray(values))) - paper.mean
    return (gain if paper.higher_is_better else -gain) / max(paper.std or 0.0, ROUNDING)


def judge(values: ArrayLike, paper: PublishedNumber) -> Verdict:
    """Judge our mean: equal if it is within one standard deviation of the paper, or rounds to the printed digits."""
    gain = distance(values, paper)
    if abs(gain) <= 1.0 + _TOLERANCE:
        return "equal"
    return "better" if gain > 0 else "worse"
