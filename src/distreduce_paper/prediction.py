"""What the experiments with predictors share: fit on 80 %, score the rest, and which row is which of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve, classification_scores, regression_scores
from distreduce.metrics.intervals import interval_scores, observed_shares
from distreduce_paper.cell import Cell
from distreduce_paper.measure import measured
from distreduce_paper.methods import PREDICTORS
from distreduce_paper.problems import Split, problem, split

REGRESSION = ("boston", "energy", "concrete")
CLASSIFICATION = ("mnist2k", "coil20")
OURS = ("SDR-GP", "SDR-GP, embedding alone", "SDR-GP, paper's recipe", "SDR-GP, paper's algorithm")
OTHERS = ("ARD GP", "NCA-GP", "KSPCA-GP", "UMAP-GP", "PCA-GP", "linear", "DGP", "DKL", "DKL-pretrained")
N_LEVELS = 99  # of the calibration curves, as in the paper


def lacks_task(data: str, method: str) -> bool:
    """Whether the method cannot predict this kind of target."""
    return getattr(PREDICTORS[method], problem(data).task) is None


def paper_row(method: str) -> str | None:
    """The paper's row that a method of ours stands for."""
    if method.startswith("SDR-GP"):
        return "SDR-GP"
    return method if method in ("NCA-GP", "KSPCA-GP", "UMAP-GP", "DGP", "DKL", "DKL-pretrained") else None


def fitted(cell: Cell) -> tuple[Any, Split, float]:
    """The cell's model, its data, and the seconds that the fit took."""
    method, task = PREDICTORS[cell.method], problem(cell.data).task
    make = getattr(method, task)
    if make is None:
        raise InvalidInputError(f"{cell.method} has no {task}.")
    parts = split(cell.data, cell.seed, images=method.images, quick=cell.quick)
    with measured() as cost:
        model = make(cell.seed).fit(parts.X_train, parts.y_train)
    return model, parts, cost.seconds


def fit_and_score(cell: Cell) -> dict[str, Any]:
    """All scores on the held-out part, in units of the standardised targets, and the seconds of the fit.

    Densities are those of Gaussians of the predicted mean and deviation, as in the paper; intervals are a model's own.
    """
    model, parts, seconds = fitted(cell)
    if problem(cell.data).task == "classification":
        proba = model.predict_proba(parts.X_test)
        scores: dict[str, Any] = classification_scores(parts.y_test, proba, model.classes_)
    else:
        mean, std = model.predict(parts.X_test, return_std=True)
        scores = regression_scores(parts.y_test, mean, std)
        levels, observed = calibration_curve(parts.y_test, mean, std, n_levels=N_LEVELS)
        if hasattr(model, "predict_quantiles"):
            scores |= interval_scores(model, parts.X_test, parts.y_test, n_levels=N_LEVELS)
            observed = observed_shares(model, parts.X_test, parts.y_test, levels)
        scores["coverage"] = observed.round(4).tolist()
    return {name: _plain(value) for name, value in scores.items()} | {"fit_seconds": round(seconds, 4)}


def _plain(value: Any) -> Any:
    """Six digits: more than seeds agree on, and files stay small."""
    return value if isinstance(value, list) else float(f"{np.float64(value):.6g}")
