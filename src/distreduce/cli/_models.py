"""The models that ``distreduce fit`` fits: the picture, the predictor, and simple models for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distreduce._utils.typing import Array, Index
from distreduce.baselines import ConstantSpread
from distreduce.estimators import SDR
from distreduce.gp import SDRGPClassifier, SDRGPRegressor
from distreduce.solver.dense import MOST_CROSS_FITTED
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.target import Target

OURS, LINEAR, TREES, NOTHING = "SDR-GP", "linear", "trees", "no model"
MODELS = (OURS, LINEAR, TREES, NOTHING)
RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
MOST_ROWS = 100_000  # in the picture by default; fitted in half a minute
IDENTITY_STEPS = 1000  # of the one solve for the embedding that an identity plan needs


@dataclass(frozen=True)
class FitOptions:
    """Options of ``distreduce fit`` that concern the models; None is the model's own default."""

    prototypes: int | None = None
    components: int = 2
    eta: float | None = None
    perplexity: float | None = None
    test_size: float = 0.2
    max_rows: int | None = None
    seed: int = 0
    predict: bool = True
    checkpoint: str | None = None
    group: str | None = None
    time: str | None = None
    weights: str | None = None
    experts: tuple[str, ...] | None = None

    @property
    def picture_rows(self) -> int:
        """Most rows in the picture; fewer where they take n×n arrays."""
        if self.max_rows is not None:
            return self.max_rows
        dense = self.prototypes == 0 or self.group is not None or self.time is not None
        return MOST_CROSS_FITTED if dense else MOST_ROWS

    @property
    def within(self) -> str:
        """The new rows that left-out places hold for: parts of the time of the fit are left out, not the future."""
        return f"from the time of the fit ({self.time})" if self.time is not None else ""


def describe_models(task: str) -> dict[str, str]:
    """Return a sentence about each model of the comparison."""
    linear = "logistic" if task == "classification" else "ridge"
    nothing = "the shares of the classes" if task == "classification" else "the mean of the target"
    return {
        OURS: "the predictor of this fit: Gaussian processes on the embedding and on all columns, a linear model and "
        "trees, weighted by how well each predicts rows that it has not seen.",
        LINEAR: f"{linear} regression on all columns.",
        TREES: "gradient-boosted trees on all columns.",
        NOTHING: f"{nothing} in the training rows, whatever the columns say.",
    }


def fit_picture(data: PreparedTable, options: FitOptions, rows: Index) -> SDR:
    """Fit SDR to these rows, including those without a target; after an interrupt, return the best so far."""
    count = choose_prototypes(len(rows), data.target) if options.prototypes is None else options.prototypes
    given = {"eta": options.eta, "perplexity": options.perplexity}
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if count == 0:  # the identity plan of one prototype per row is a stationary point already (decision 12)
        parameters |= {"max_iter": 0, "max_inner_iter": IDENTITY_STEPS, "affinity": "dense"}
    parameters |= {"task": data.target.task, "random_state": options.seed, "checkpoint": options.checkpoint}
    model = SDR(options.components, n_prototypes=count or None, **parameters)
    try:
        y, weights = data.target.rows(rows).y, take_weights(data, rows)
        model.fit(data.X[rows], y, sample_weight=weights, groups=take_blocks(data, rows))
    except KeyboardInterrupt:
        if not hasattr(model, "prototypes_"):  # interrupted before the first result
            raise
    return model


def take_weights(data: PreparedTable, rows: Index) -> Array | None:
    return None if data.aside.weights is None else data.aside.weights[rows]


def take_blocks(data: PreparedTable, rows: Index) -> Any:
    """Return the groups that these rows lie in, or the parts of time, ordered; None without any, or if it is one."""
    blocks, weights = data.aside.blocks, data.aside.weights
    used = rows if weights is None else rows[weights[rows] > 0]
    if blocks is None or np.ptp(blocks[used]) == 0:
        return None
    return blocks[rows] if data.aside.times is None else pd.Categorical(blocks[rows], ordered=True)


def choose_prototypes(n: int, target: Target) -> int:
    """Return a tenth of the rows, between 10 and 50, at least two per class; 0 (one per row) for fewer than 20 rows."""
    classes = 0 if target.labels is None else target.y.nunique()
    wanted = max(min(50, n // 10), 10, 2 * classes)
    return 0 if n < 20 or wanted >= n else wanted


def make_model(name: str, target: Target, options: FitOptions) -> Any:
    """Return an unfitted model by its name in `MODELS`; `OURS` is the predictor."""
    classes, seed = target.task == "classification", options.seed
    if name == OURS:
        # The predictor chooses for itself: dimensions and weight of the target in the picture are for the picture.
        chosen: dict[str, Any] = {} if options.experts is None else {"experts": list(options.experts)}
        return (SDRGPClassifier if classes else SDRGPRegressor)(**chosen, random_state=seed)
    if classes:
        simple = {
            LINEAR: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            TREES: HistGradientBoostingClassifier(random_state=seed),
            NOTHING: DummyClassifier(),
        }
        return simple[name]
    trees: Any = HistGradientBoostingRegressor(random_state=seed)
    numbers = {
        LINEAR: make_pipeline(StandardScaler(), RidgeCV(RIDGES)),
        TREES: trees if len(target.names) == 1 else MultiOutputRegressor(trees),
        NOTHING: DummyRegressor(),
    }
    return ConstantSpread(numbers[name])
