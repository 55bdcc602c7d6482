"""A small table as people have them, and options for a fast fit."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUICK = ("--no-predict", "--prototypes", "4")


def messy(n=60):
    """A number, a category, a date, a switch, an identifier, a constant, and a target that follows the first two."""
    rng = np.random.default_rng(0)
    size, town = rng.normal(size=n).round(3), rng.choice(["Rome", "Oslo", "Bern"], n)
    return pd.DataFrame(
        {
            "id": range(n),
            "size": size,
            "town": town,
            "sold": pd.date_range("2019-01-01", periods=n, freq="20D").strftime("%d.%m.%Y"),
            "fresh": rng.random(n) > 0.5,
            "owner": [f"person {i}" for i in range(n)],
            "planet": "Earth",
            "price": (2 * size + (town == "Oslo") + 0.1 * rng.normal(size=n)).round(3),
        }
    )
