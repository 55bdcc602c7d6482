"""Held-out scores of the predictor and of two simpler models, all fitted to the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce.cli._draw import drawn
from distreduce.cli._models import Choices, on_components, ours, plain
from distreduce.cli._tables import class_table, judged_table, number_table, truth_columns
from distreduce.gp._target_scale import spread
from distreduce.metrics import classification_scores
from distreduce.metrics.held_out import held_out_scores
from distreduce.metrics.intervals import interval_levels
from distreduce.tables.prepare import PreparedTable

Rows = NDArray[np.intp]
OURS, PLAIN, COMPONENTS = "SDR-GP", "no reduction", "PCA"
METHODS = (OURS, PLAIN, COMPONENTS)
LEAST_ROWS = 10  # with fewer known targets a held-out part says nothing
MOST_TEST_ROWS = 10_000


class Comparison:
    """Three models fitted to the training rows and scored on the held-out ones.

    Attributes
    ----------
    train, test : arrays of row numbers
        Both empty where there are too few rows with a target.
    scores, seconds : dict
        By the name of the model.
    """

    def __init__(self, data: PreparedTable, choices: Choices) -> None:
        self.data, self.choices = data, choices
        self.scores: dict[str, dict[str, float]] = {}
        self.seconds: dict[str, float] = {}
        self._tables: list[pd.DataFrame] = []
        self.train, self.test = self._split(np.flatnonzero(data.usable & data.target.known))

    def _split(self, known: Rows) -> tuple[Rows, Rows]:
        labels, size = self.data.target.labels, round(self.choices.test_size * len(known))
        nothing = np.empty(0, dtype=np.intp)
        if not size or len(known) < LEAST_ROWS:
            return nothing, nothing
        train = drawn(known, labels, len(known) - size, self.choices.seed)
        test = drawn(np.setdiff1d(known, train), labels, MOST_TEST_ROWS, self.choices.seed)
        train = drawn(train, labels, self.choices.max_rows, self.choices.seed)
        if labels is not None:  # a class that nobody could learn is no test
            test = test[np.isin(labels[test].astype(str), labels[train].astype(str))]
        return (train, test) if len(test) > 1 else (nothing, nothing)

    def run(self, advance: Callable[[str], object]) -> None:
        """Fit and score; `advance` is told the name of each model first."""
        target, width = self.data.target, self.data.X.shape[1]
        makers: dict[str, Callable[[], Any]] = {
            OURS: lambda: ours(target, width, self.choices),
            PLAIN: lambda: plain(target, width, self.choices.seed, len(self.train)),
            COMPONENTS: lambda: on_components(target, width, self.choices),
        }
        for name in METHODS:
            advance(f"held-out score, {name}")
            if len(self.test):
                started = time.perf_counter()
                model = makers[name]().fit(self.data.X[self.train], target.values(self.train))
                self.scores[name] = self._score(name, model)
                self.seconds[name] = time.perf_counter() - started

    def _score(self, name: str, model: Any) -> dict[str, float]:
        """Scores of probabilities, or of numbers in units of the spread of the training targets; rmse in theirs."""
        X, y = self.data.X[self.test], self.data.target.values(self.test)
        if self.data.target.task == "classification":
            proba = model.predict_proba(X)
            self._keep(name, class_table(proba, model.classes_))
            return classification_scores(y, proba, model.classes_)
        if type(model).__name__ == "KNeighborsRegressor":  # has no uncertainty
            return held_out_scores(y, model.predict(X))
        mean, std = model.predict(X, return_std=True)
        scale = spread(self.data.target.values(self.train))
        levels = interval_levels(model, X, y) if hasattr(model, "predict_quantiles") else None
        names = self.data.target.names
        self._keep(name, number_table(model, X, names).join(judged_table(len(y), scale, levels, names)))
        return held_out_scores(y, mean, std, scale=scale, levels=levels)

    def _keep(self, name: str, table: pd.DataFrame) -> None:
        target = self.data.target
        truth = pd.DataFrame(target.y.iloc[self.test]).reset_index(drop=True)
        front = pd.DataFrame({"model": name, "row": self.test})
        self._tables.append(pd.concat([front, truth.set_axis(truth_columns(target.names), axis=1), table], axis=1))

    def predictions(self) -> pd.DataFrame | None:
        """A row a model and held-out row, or None."""
        return pd.concat(self._tables, ignore_index=True) if self._tables else None
