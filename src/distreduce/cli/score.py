"""``distreduce score``: how well the predictor of a folder does on rows whose targets are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distreduce._utils.text import count_of, list_words
from distreduce.cli.apply import Directory, NoHeader, Quiet, Separator, open_results, read_layout
from distreduce.exceptions import InvalidInputError

if TYPE_CHECKING:
    from distreduce.report import HeldOut, HeldOutClasses
    from distreduce.tables.target import Target


def score(
    folder: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows with the columns and the targets of the fit.")],
    sep: Separator = None,
    no_header: NoHeader = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Score the predictor of a folder on rows whose targets are known.

    Use rows that the fit has not seen. Beside each score stands that of no
    model, as in `fit`: the mean of the training rows, or their class shares.
    Log densities are in units of the training rows' standard deviation. Rows
    are weighted by the column of the fit (--weights) and grouped by its column
    (--group), if the file has them; a group counts as one row in the 95 %
    interval. "By chance alone" is the calibration error of so few rows if all
    probabilities were exactly right.
    """
    layout = read_layout(sep, no_header)
    results = open_results(folder, file)
    import numpy as np

    from distreduce.cli._screen import count_rows
    from distreduce.report.predictions import score_held_out
    from distreduce.tables.aside import read_weights
    from distreduce.tables.cells import to_levels
    from distreduce.tables.findings import Findings
    from distreduce.tables.reading import read_table
    from distreduce.tables.target import read_target

    recipe, predictor = results.recipe, results.predictor
    table, findings = read_table(file, recipe.targets, recipe.as_text, layout=layout), Findings()
    target = read_target(table.targets, recipe.task or "auto", file.name, known=True)
    X, complete = recipe.matrix(table.features, file.name, findings)
    rows = np.flatnonzero(complete & target.known)
    if len(rows) < 2:
        raise InvalidInputError(f"{file.name} has fewer than two complete rows with a target.")
    with count_rows(silent=quiet or as_json):
        weighed, grouped = results.choice("weights"), results.choice("group")
        weights = read_weights(table.frame[weighed])[rows] if weighed in table.frame else np.ones(len(rows))
        groups = to_levels(table.frame[grouped]).iloc[rows].factorize()[0] if grouped in table.frame else None
        named, notes = _judge(predictor, X[rows], target.rows(rows), weights, groups)
        scores = {name: score_held_out(each) for name, each in named.items()}
        for name, what in ((weighed, "weights"), (grouped, "groups")):
            if name is not None and name not in table.frame:
                notes.append(f"{file.name} has no column {name!r}, the {what} of the fit: every row counts once.")
    if as_json:
        typer.echo(json.dumps({"rows": len(rows), "scores": scores}, indent=2))
        return
    typer.echo(f"{count_of(len(rows), 'row')} of {file.name}:")
    _print_scores(scores["predictor"], scores["no model"], named["predictor"])
    notes += [recipe.describe_missing(findings)] if findings.missing and recipe.missing == "impute" else []
    for line in () if quiet else (*notes, *findings.describe_surprises()):
        typer.echo(line, err=True)


def _print_scores(scores: dict[str, float], nothing: dict[str, float], predictions: HeldOut | HeldOutClasses) -> None:
    from distreduce.cli._screen import SCORES, score_text
    from distreduce.report.held_out import interval_text

    for name in filter(scores.__contains__, SCORES):
        beside = f"   (no model: {score_text(nothing[name], name)})" if name in nothing else ""
        if name in ("r2", "accuracy"):
            beside += f"   {interval_text(predictions)}"
        typer.echo(f"  {SCORES[name]:<18}{score_text(scores[name], name)}{beside}")


def _judge(
    predictor: Any, X: Any, target: Target, weights: Any, groups: Any
) -> tuple[dict[str, HeldOut | HeldOutClasses], list[str]]:
    """Return what the predictor and no model say of rows with a target, and what there is to say about it."""
    import numpy as np

    from distreduce.metrics.held_out import judge_numbers
    from distreduce.report import HeldOut, HeldOutClasses

    if target.task == "regression":
        y, trained = target.y.to_numpy(), predictor.target_scale_
        unit: dict[str, Any] = {"scale": trained.std.reshape(y.shape[1:]), "sample_weight": weights, "groups": groups}
        own = unit | judge_numbers(predictor, X, y)
        mean, std = predictor.predict(X, return_std=True)
        centre, spread = (np.broadcast_to(part.reshape(y.shape[1:]), y.shape) for part in (trained.mean, trained.std))
        return {"predictor": HeldOut(y, mean, std, **own), "no model": HeldOut(y, centre, spread, **unit)}, []
    # A class of the file matches one of the fit by its text: 1 may be a number in one and a text in the other.
    classes = np.array([str(label) for label in predictor.classes_])
    labels = np.array([str(label) for label in target.y])
    known = np.isin(labels, classes)
    notes = [] if known.all() else [f"{count_of(int((~known).sum()), 'row')} with classes that the fit did not know."]
    if known.sum() < 2:
        given, fitted = list_words(list(dict.fromkeys(labels.tolist()))), list_words(classes.tolist())
        raise InvalidInputError(f"The targets ({given}) are none of the classes of the fit ({fitted}).")
    reduction, proba = predictor.reduction_, predictor.predict_proba(X[known])
    shares = np.broadcast_to(reduction.prototype_weights_ @ reduction.prototype_targets_, proba.shape)
    aside = {"sample_weight": weights[known], "groups": None if groups is None else groups[known]}
    both = {"predictor": proba, "no model": shares}
    return {name: HeldOutClasses(labels[known], said, classes, **aside) for name, said in both.items()}, notes
