"""Rows drawn at random, in the shares of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

Rows = NDArray[np.intp]


def drawn(rows: Rows, labels: NDArray[Any] | None, size: int, seed: int) -> Rows:
    """`size` of the rows, sorted: classes in their shares where that can be, and every class of a single row.

    Rows without a label are a class of their own. `labels` are those of all rows of the file.
    """
    if size >= len(rows):
        return rows
    if labels is None:
        return np.sort(np.random.default_rng(seed).choice(rows, size=size, replace=False))
    codes = pd.factorize(labels[rows], use_na_sentinel=False)[0]
    single = np.bincount(codes)[codes] == 1
    kept, rest, codes = rows[single], rows[~single], codes[~single]
    wanted = size - len(kept)
    if wanted <= 0:  # nearly every row is a class of its own
        return np.sort(np.random.default_rng(seed).choice(rows, size=size, replace=False))
    n_classes = len(np.unique(codes))
    shares = codes if min(wanted, len(rest) - wanted) >= n_classes else None
    part, _ = train_test_split(rest, train_size=wanted, stratify=shares, random_state=seed)
    return np.sort(np.concatenate([kept, part]))
