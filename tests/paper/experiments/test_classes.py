"""The table of class probabilities: what it says of the limits."""

from __future__ import annotations

import pandas as pd

from distreduce_paper.experiments import classes
from distreduce_paper.report.blocks import Text


def frame(ours: tuple[float, float, float]) -> pd.DataFrame:
    scores = {"SDR-GP": ours, "linear": (-0.50, 0.80, 0.05), "CatBoost": (-0.60, 0.85, 0.02)}
    return pd.DataFrame(
        [
            {"data": "d", "method": name, "mlp": mlp, "accuracy": accuracy, "ece": ece}
            for name, (mlp, accuracy, ece) in scores.items()
        ]
    )


def verdict(ours: tuple[float, float, float]) -> str:
    last = classes.report(frame(ours))[-1]
    assert isinstance(last, Text)
    return last.text


def test_each_score_is_compared_with_its_best_other_method() -> None:
    assert verdict((-0.51, 0.84, 0.04)).count("1 of 1") == 3
    text = verdict((-0.55, 0.82, 0.06))
    assert "d (0.050)" in text and "d (0.030)" in text and "d (0.040)" in text and text.count("0 of 1") == 3
