"""Table 1: Gaussian processes on the three UCI sets."""

from __future__ import annotations

import pandas as pd

from distreduce_paper.blocks import Block, Text
from distreduce_paper.comparison import comparison_tables
from distreduce_paper.experiment import Experiment
from distreduce_paper.prediction import OTHERS, OURS, REGRESSION, fit_and_score, lacks_task, paper_row

NOTES = """\
Two components, 80/20 splits, targets standardised by the training part. MLL is the mean log density of a held-out \
target, noise included, of the Gaussian with the predicted mean and deviation. Four rows are ours: *SDR-GP* is \
`SDRGPRegressor()` as it comes (a plain ARD GP teaches the metric, a GP is trained on leave-one-out embeddings, and \
its prediction is mixed with those of a smooth and of a rough plain GP); *embedding alone* leaves the plain GPs out \
of the mixture; the *paper's recipe* is its objective, constants and GP of 20 Adam steps with the map eliminated and \
L-BFGS; the *paper's algorithm* alternates Z, map and plan with Adam at 0.001 as printed. The ARD GP on all \
features, trained to convergence, is a row that the paper lacks."""


def report(frame: pd.DataFrame) -> list[Block]:
    """The table of every data set beside the paper's."""
    return [Text(NOTES), *comparison_tables(frame, "gp_regression", {"mll": "mll", "mse": "mse"}, paper_row)]


EXPERIMENT = Experiment(
    name="regression",
    title="Gaussian processes, regression",
    paper="Table 1",
    datasets=REGRESSION,
    task="regression",
    methods=(*OURS, *OTHERS),
    run=fit_and_score,
    report=report,
    skips=lacks_task,
)
