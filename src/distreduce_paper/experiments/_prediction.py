"""What the experiments with predictors share: fit on 80 %, score the rest, and find the matching row of the paper."""

from __future__ import annotations

from typing import Any

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve, classification_scores, regression_scores
from distreduce.metrics.held_out import interval_levels, level_curve, level_scores
from distreduce_paper.experiment import Cell
from distreduce_paper.experiments._reductions import round_digits
from distreduce_paper.measure import measure
from distreduce_paper.methods import PREDICTORS
from distreduce_paper.problems import Split, get_problem, load_split

REGRESSION = ("boston", "energy", "concrete")
CLASSIFICATION = ("mnist2k", "coil20")
OURS = ("SDR-GP", "SDR-GP, embedding alone", "SDR-GP, paper's recipe", "SDR-GP, paper's algorithm")
OTHERS = ("ARD GP", "NCA-GP", "KSPCA-GP", "UMAP-GP", "PCA-GP", "linear", "DGP", "DKL", "DKL-pretrained")
IN_PAPER = ("NCA-GP", "KSPCA-GP", "UMAP-GP", "DGP", "DKL", "DKL-pretrained")


def lacks_task(data: str, method: str) -> bool:
    """Return whether the method cannot predict this kind of target."""
    return getattr(PREDICTORS[method], get_problem(data).task) is None


def paper_row(method: str) -> str | None:
    """Return the row of the paper that a method is compared with."""
    if method.startswith("SDR-GP"):
        return "SDR-GP"  # all variants of ours against the same row
    return method if method in IN_PAPER else None


def fit_predictor(cell: Cell) -> tuple[Any, Split, float]:
    """Fit the cell's model; return it with its data and the seconds of the fit."""
    method, task = PREDICTORS[cell.method], get_problem(cell.data).task
    make = getattr(method, task)
    # Not every experiment skips such pairs, and users may select any method.
    if make is None:
        raise InvalidInputError(f"{cell.method} does not support {task}.")
    parts = load_split(cell.data, cell.seed, images=method.images, quick=cell.quick)
    # Only the fit counts; loading and scoring do not.
    with measure() as cost:
        model = make(cell.seed).fit(parts.X_train, parts.y_train)
    return model, parts, cost.seconds


def fit_and_score(cell: Cell) -> dict[str, Any]:
    """Return all scores on the held-out part, in units of the standardized targets, and the seconds of the fit.

    Densities are those of a Gaussian with the predicted mean and deviation, as in the paper. Intervals are the model's
    own quantiles if it has any.
    """
    model, parts, seconds = fit_predictor(cell)
    if get_problem(cell.data).task == "classification":
        proba = model.predict_proba(parts.X_test)
        scores: dict[str, Any] = classification_scores(parts.y_test, proba, model.classes_)
    else:
        mean, std = model.predict(parts.X_test, return_std=True)
        scores = regression_scores(parts.y_test, mean, std)
        # Gaussian intervals, which the model's own quantiles replace below.
        observed = calibration_curve(parts.y_test, mean, std)[1]
        if hasattr(model, "predict_quantiles"):
            levels = interval_levels(model, parts.X_test, parts.y_test)
            scores, observed = scores | level_scores(levels), level_curve(levels)[1]
        scores["coverage"] = observed.round(4).tolist()
    # Seeds differ by more than six digits, and files stay small.
    short = {name: value if isinstance(value, list) else round_digits(value, 6) for name, value in scores.items()}
    return short | {"fit_seconds": round(seconds, 4)}
