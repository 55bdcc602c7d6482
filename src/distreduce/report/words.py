"""What the page says in plain words: the facts of the fit, what to beware of, and how to make the page again."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from distreduce._utils.text import count_of
from distreduce.plotting._plots import TERMS
from distreduce.plotting.palette import OKABE_ITO
from distreduce.report.content import MAX_TARGETS, Choice, Subject
from distreduce.report.encode import number_text
from distreduce.report.figures import Figure
from distreduce.report.svg import Chart

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where a function lies in memory differs from run to run


class Fact(NamedTuple):
    """A figure of the header, its name and what it means."""

    value: str
    name: str
    note: str


def facts(subject: Subject) -> list[Fact]:
    """The header: sizes, task, CKA and how the fit ended."""
    model = subject.model
    n, m = model.coupling_.shape
    used = int(np.count_nonzero(model.prototype_weights_))
    found = [Fact(f"{n:,}", "samples", f"{model.n_features_in_:,} features")]
    if subject.one_to_one:
        found.append(Fact(f"{m:,}", "prototypes", "one for every sample"))
    else:
        found.append(
            Fact(f"{used:,}", "prototypes", f"of {m:,} asked for; {number_text(n / used, 3)} samples each on average")
        )
    found.append(Fact(*_task(subject)))
    last = float(model.history_["cka"].iloc[-1])
    if not np.isnan(last):
        found.append(Fact(f"{last:.3f}", "CKA", "how far places follow the target: 0 not at all, 1 fully"))
    rounds = count_of(model.n_iter_, "iteration")
    if model.converged_:
        found.append(Fact("converged", "fit", f"after {rounds}: more would change nothing"))
    else:
        found.append(Fact("stopped early", "fit", f"after {rounds}, its limit: raise max_iter to go on"))
    return found


def _task(subject: Subject) -> tuple[str, str, str]:
    task = getattr(subject.model, "task_", None)
    if task is None:
        return "no target", "task", "places follow the features alone"
    if task == "classification":
        return "classes", "task", f"{len(subject.model.classes_)} classes"
    n_targets = subject.model.prototype_targets_.shape[1]
    return "numbers", "task", "regression" if n_targets == 1 else f"regression of {n_targets} targets"


def warnings_of(subject: Subject, choice: Choice) -> list[str]:
    """What this page does not show, or shows of an unfinished fit."""
    model, found = subject.model, []
    n, m = model.coupling_.shape
    used = int(np.count_nonzero(model.prototype_weights_))
    if not model.converged_:
        found.append(
            "The fit stopped at its limit of iterations before it had converged: the picture may still change. "
            "Fit again with a larger max_iter."
        )
    if len(choice.samples) < n:
        found.append(f"The map draws {len(choice.samples):,} of the {n:,} samples, chosen at random.")
    if len(choice.prototypes) < used:
        found.append(f"The map draws the {len(choice.prototypes):,} heaviest of the {used:,} prototypes in use.")
    p = model.prototypes_.shape[1]
    if p > 2:
        found.append(f"The reduction has {p} dimensions; the map is its shadow on the two principal axes.")
    n_targets = model.prototype_targets_.shape[1] if getattr(model, "task_", None) == "regression" else 0
    if n_targets > MAX_TARGETS:
        found.append(f"The page shows the first {MAX_TARGETS} of the {n_targets} targets.")
    return found


def command_of(subject: Subject, command: str | None) -> str:
    """The command as given, or the call in Python."""
    if command is not None:
        return command
    y = "" if getattr(subject.model, "task_", None) is None else ", y"
    return ADDRESS.sub("", f"model = {subject.model!r}.fit(X{y})\nwrite_report(path, model, X, y)")


def history(subject: Subject) -> list[Figure]:
    """The objective and its terms as change since the first iteration, and the CKA."""
    table = subject.model.history_
    if len(table) < 2:
        return []
    steps = table["iteration"].to_numpy()
    terms = {name: table[name].to_numpy() for name in TERMS if table[name].to_numpy().any()}
    changes = {name: values - values[0] for name, values in terms.items()}
    low, high = min(v.min() for v in changes.values()), max(v.max() for v in changes.values())
    chart = Chart(
        (steps[0], steps[-1]), (float(low), float(high)), ("iteration", "change since the start"), "objective"
    )
    key = []
    for place, (name, values) in enumerate(changes.items()):
        css = f"c{(place - 1) % (len(OKABE_ITO) - 1)}" if place else "total"
        chart.line(steps, values, f"curve {css}", dots=len(steps) <= 60)
        key.append((f"{name.replace('_', '-')} (ends at {number_text(float(terms[name][-1]))})", css))
    figures = [Figure("The objective and its terms", chart.markup(), "Lower is better; flat at the end is done.", key)]
    cka = table["cka"].to_numpy()
    if np.isfinite(cka).any():
        chart = Chart((steps[0], steps[-1]), (min(0.0, float(np.nanmin(cka))), 1.0), ("iteration", "CKA"), "CKA")
        chart.line(steps[np.isfinite(cka)], cka[np.isfinite(cka)], "curve c0", dots=len(steps) <= 60)
        caption = "How far the places of the prototypes follow the target: 0 not at all, 1 fully."
        figures.append(Figure("Dependence on the target", chart.markup(), caption, []))
    return figures
