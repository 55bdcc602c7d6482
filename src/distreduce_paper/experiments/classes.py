"""Beyond the paper: probabilities of classes against what practitioners use, with clean and with noisy labels."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from distreduce_paper.experiment import Experiment
from distreduce_paper.experiments._prediction import fit_and_score
from distreduce_paper.experiments.picture import SETS
from distreduce_paper.problems import Array, Problem, add_own_problems
from distreduce_paper.report.blocks import Block, Table, Text

OURS = "SDR-GP"
OTHERS = ("ARD GP", "linear", "SVC, Platt", "random forest", "boosted trees")
BEHIND = 0.02  # of the best other method in log probability and in accuracy; the calibration error may be 0.03 larger
NOTES = """\
Five 80/20 splits, features standardized by the training part, default parameters everywhere. Each cell shows the \
mean log probability of the true class, the accuracy, and the expected calibration error (ECE) of the largest \
probability. *ARD GP* is `GPClassifier`, *linear* is logistic regression, *SVC, Platt* a support vector machine with \
a sigmoid on cross-validated decisions. *Flipped* labels are changed to one of the other two classes, in the held-out \
part too. *Noisy XOR* has four clusters in two of six features and 10 % of its labels exchanged. *Few samples* has 80 \
samples in 100 features, of which five matter. CatBoost is a row where it is installed and asked for (`--methods \
CatBoost`)."""


def _noisy_xor(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 6))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    return X, np.where(rng.uniform(size=500) < 0.1, ~y, y).astype(int)


_few_samples = partial(make_classification, 80, 100, n_informative=5, n_redundant=0, class_sep=1.5)
OWN = {
    "noisy XOR": Problem(_noisy_xor, "classification", seeded=True),
    "few samples, many features": Problem(lambda seed: _few_samples(random_state=seed), "classification", seeded=True),
}
add_own_problems(OWN)
NAMES = (*(name for name, each in SETS.items() if each.task == "classification" and "noise" not in name), *OWN)


def report(frame: pd.DataFrame) -> list[Block]:
    """Show all methods on every data set, and how far ours is behind the best other one."""
    means = frame.groupby(["data", "method"], sort=False)[["mlp", "accuracy", "ece"]].mean()
    rows, behind = [], []
    for data, part in means.groupby(level="data", sort=False):
        own = part.droplevel("data")
        rows.append({"data": str(data)} | {str(name): _text(own.loc[name]) for name in own.index})
        if OURS in own.index and len(own) > 1:
            ours, others = own.loc[OURS], own.drop(index=OURS)
            lead = others[["mlp", "accuracy"]].max() - ours[["mlp", "accuracy"]]
            behind.append((str(data), *lead, ours["ece"] - others["ece"].min()))
    table = Table("Log probability / accuracy / ECE, means over seeds.", pd.DataFrame(rows).fillna("–"))
    return [table, _limits(pd.DataFrame(behind, columns=["data", "mlp", "accuracy", "ece"]))] if behind else [table]


def _text(scores: pd.Series) -> str:
    return f"{scores['mlp']:.3f} / {scores['accuracy']:.3f} / {scores['ece']:.3f}".replace("-", "−")


def _limits(behind: pd.DataFrame) -> Text:
    """Count the data sets on which ours is within the limits of the best other method, score by score."""
    limits = {"mlp": ("log probability", BEHIND), "accuracy": ("accuracy", BEHIND), "ece": ("ECE", 0.03)}
    parts = []
    for column, (name, limit) in limits.items():
        outside = behind[behind[column] > limit + 1e-9]
        misses = ", ".join(f"{row['data']} ({row[column]:.3f})" for _, row in outside.iterrows())
        count = f"{len(behind) - len(outside)} of {len(behind)}"
        parts.append(f"{name} at most {limit} behind: {count}" + (f" (not {misses})" if misses else ""))
    return Text("SDR-GP and the best of the others: " + "; ".join(parts) + ".")


EXPERIMENT = Experiment(
    name="classes",
    title="Probabilities of classes",
    paper="",
    datasets=NAMES,
    task="classification",
    methods=(OURS, *OTHERS),
    run=fit_and_score,
    report=report,
    notes=NOTES,
)
