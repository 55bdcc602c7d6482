"""The texts of the page that depend on the fit: facts of the header, warnings, the call to repeat, and its history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from distreduce._utils.text import count_of, number_text
from distreduce.plotting.history import draw_cka, draw_terms
from distreduce.report.content import MAX_TARGETS, Subject
from distreduce.report.evidence import describe_optimism
from distreduce.report.held_out import Given, interval_text, name_score, score_text
from distreduce.report.renderer import LOOKS, Figure, make_figure

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # the address of a function differs from run to run


class Fact(NamedTuple):
    """A value of the header, its name and what it means."""

    value: str
    name: str
    note: str


def collect_facts(subject: Subject, named: Mapping[str, Given]) -> list[Fact]:
    """Return the header: sizes, task, and the score of the first of the held-out predictions."""
    model = subject.model
    n, m = model.coupling_.shape
    used = int(np.count_nonzero(model.prototype_weights_))
    # How much was reduced to how little.
    drawn = f"of {subject.n_rows:,} rows; " if subject.n_rows > n else ""
    facts = [Fact(f"{n:,}", "samples", f"{drawn}{model.n_features_in_:,} features")]
    if subject.one_to_one:
        facts.append(Fact(f"{m:,}", "prototypes", "one for every sample"))
    else:
        spare = f"; {m:,} were allowed, {used:,} were enough" if used < m else ""
        facts.append(Fact(f"{used:,}", "prototypes", f"{number_text(n / used, 3)} samples each on average{spare}"))
    facts.append(_describe_task(subject))
    return [*facts, *_describe_score(subject, named)]


def _describe_score(subject: Subject, named: Mapping[str, Given]) -> list[Fact]:
    """Return the score that people came for: of held-out rows, or else of samples left out of the map."""
    if named:
        first = next(iter(named.values()))
        rest = ", ".join(f"{name} {score_text(each)}" for name, each in list(named.items())[1:])
        rows = f"{interval_text(first)}; {count_of(len(np.asarray(first.y)), 'row')}"
        return [Fact(score_text(first), f"held-out {name_score(first)}", f"{rows}; {rest}" if rest else rows)]
    verdict = describe_optimism(subject.model, subject.within)
    if verdict is None:
        return []
    name = "accuracy" if hasattr(subject.model, "classes_") else "R²"
    return [Fact(verdict.scores[0][2], f"left-out {name}", "of 10 nearest neighbours on the map")]


def _describe_task(subject: Subject) -> Fact:
    task = getattr(subject.model, "task_", None)
    if task is None:
        return Fact("no target", "task", "the map follows the features alone")
    if task == "classification":
        return Fact("classes", "task", f"{len(subject.model.classes_)} classes")
    n_targets = subject.model.prototype_targets_.shape[1]
    return Fact("numbers", "task", "regression" if n_targets == 1 else f"regression of {n_targets} targets")


def collect_warnings(subject: Subject) -> list[str]:
    """Return what this page does not show, and whether the fit was unfinished."""
    model, selection, found = subject.model, subject.selection, []
    n, p = len(model.embedding_), model.prototypes_.shape[1]
    used = int(np.count_nonzero(model.prototype_weights_))
    if not model.converged_:
        found.append(
            "The fit stopped at its limit of iterations before it had converged, so the picture may still change. "
            "Fit again with a larger max_iter."
        )
    # What the page leaves out.
    if len(selection.samples) < n:
        found.append(f"The map draws {len(selection.samples):,} of the {n:,} samples, chosen at random.")
    if len(selection.prototypes) < used:
        found.append(f"The map draws the {len(selection.prototypes):,} heaviest of the {used:,} prototypes in use.")
    if p > 2:
        found.append(f"The embedding has {p} dimensions; the map shows its projection on the two principal axes.")
    n_targets = model.prototype_targets_.shape[1] if getattr(model, "task_", None) == "regression" else 0
    if n_targets > MAX_TARGETS:
        found.append(f"The page shows the first {MAX_TARGETS} of the {n_targets} targets.")
    return found


def describe_call(subject: Subject) -> str:
    """Return the calls in Python that make the page."""
    y = "" if getattr(subject.model, "task_", None) is None else ", y"
    return ADDRESS.sub("", f"model = {subject.model!r}.fit(X{y})\nwrite_report(path, model, X, y)")


def describe_end(subject: Subject) -> str:
    """Return how the fit ended."""
    rounds = count_of(subject.model.n_iter_, "outer iteration")
    if subject.model.converged_:
        return f"The fit converged after {rounds}: a further one would have changed the objective by less than tol."
    return f"The fit stopped at its limit of {rounds}; a larger max_iter continues it."


def draw_history(subject: Subject) -> list[Figure]:
    """Return charts of the objective with its terms, and of the CKA."""
    history = subject.model.history_
    if len(history) < 2:  # one iteration has no course
        return []
    caption = (
        "The fit minimises the objective, the sum of its terms, so the black line falls; single terms may rise. "
        "Gromov–Wasserstein: samples that are alike lie together on the map. Supervision and dependence: the map "
        "follows the target. Projection: the map can be computed from the features, and smoothly."
    )
    figures = [make_figure("The objective and its terms", caption, partial(draw_terms, history=history))]
    if history["cka"].notna().any():
        caption = (
            "CKA (centred kernel alignment): how strongly the places of the prototypes follow the targets that the fit "
            "has seen, from 0 (not at all) to 1 (fully). It is high even for noise, so it is not a score."
        )
        draw = partial(draw_cka, history=history, marker=".", **LOOKS[0])
        figures.append(make_figure("Dependence on the target (CKA)", caption, draw))
    return figures
