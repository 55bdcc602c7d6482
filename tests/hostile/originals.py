"""The table that files are made of."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd


@cache
def table() -> pd.DataFrame:
    """A table with a column of every kind."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=24).round(2)
    dates = pd.date_range("2019-01-01", periods=24, freq="40D")
    return pd.DataFrame(
        {
            "size": size, "town": rng.choice(["007", "Oslo", "Bern"], 24), "sold": dates.strftime("%Y-%m-%d"),
            "new": rng.random(24) > 0.5, "rooms": rng.integers(1, 9, 24), "price": (2 * size).round(2),
        }
    )  # fmt: skip
