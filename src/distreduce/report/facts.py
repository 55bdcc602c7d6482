"""The texts of the page that depend on the fit: facts of the header, warnings, the call to repeat, and its history."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import numpy as np

from distreduce._utils.text import count_of
from distreduce.plotting.history import draw_cka, draw_terms
from distreduce.report.charts import LOOKS, Figure, make_figure
from distreduce.report.content import MAX_TARGETS, Selection, Subject
from distreduce.report.encode import number_text

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # the address of a function differs from run to run


class Fact(NamedTuple):
    """A value of the header, its name and what it means."""

    value: str
    name: str
    note: str


def collect_facts(subject: Subject) -> list[Fact]:
    """Return the header: sizes, task, CKA if there is nothing better, and how the fit ended."""
    model = subject.model
    n, m = model.coupling_.shape
    used = int(np.count_nonzero(model.prototype_weights_))
    # How much was reduced to how little.
    facts = [Fact(f"{n:,}", "samples", f"{model.n_features_in_:,} features")]
    if subject.one_to_one:
        facts.append(Fact(f"{m:,}", "prototypes", "one for every sample"))
    else:
        average = number_text(n / used, 3)
        facts.append(Fact(f"{used:,}", "prototypes", f"of {m:,} requested; {average} samples each on average"))
    facts.append(_describe_task(subject))
    # Without scores of left-out samples, the CKA, with a warning: it is easily taken for a score.
    cka = float(model.history_["cka"].iloc[-1])
    if not np.isnan(cka) and not hasattr(model, "neighbor_scores_"):
        note = "fit between map and training targets, from 0 to 1; high even for noise, so not a score"
        facts.append(Fact(f"{cka:.3f}", "CKA", note))
    rounds = count_of(model.n_iter_, "iteration")
    if model.converged_:
        return [*facts, Fact("converged", "fit", f"after {rounds}")]
    return [*facts, Fact("stopped early", "fit", f"after {rounds}, the limit; raise max_iter to continue")]


def _describe_task(subject: Subject) -> Fact:
    task = getattr(subject.model, "task_", None)
    if task is None:
        return Fact("no target", "task", "the map follows the features alone")
    if task == "classification":
        return Fact("classes", "task", f"{len(subject.model.classes_)} classes")
    n_targets = subject.model.prototype_targets_.shape[1]
    return Fact("numbers", "task", "regression" if n_targets == 1 else f"regression of {n_targets} targets")


def collect_warnings(subject: Subject, selection: Selection) -> list[str]:
    """Return what this page does not show, and whether the fit was unfinished."""
    model, found = subject.model, []
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


def draw_history(subject: Subject) -> list[Figure]:
    """Return charts of the objective with its terms, and of the CKA."""
    history = subject.model.history_
    if len(history) < 2:  # one iteration has no course
        return []
    caption = (
        "The fit minimises the objective. Its terms: gromov-wasserstein (keeps the neighbourhoods of the samples), "
        "supervision and dependence (follow the target), projection (error and roughness of the map from the features)."
    )
    figures = [make_figure("The objective and its terms", caption, partial(draw_terms, history=history))]
    if history["cka"].notna().any():
        caption = "How strongly the places of the prototypes depend on the training targets: 0 not at all, 1 fully."
        draw = partial(draw_cka, history=history, marker=".", **LOOKS[0])
        figures.append(make_figure("Dependence on the target (CKA)", caption, draw))
    return figures
