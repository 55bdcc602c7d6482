"""The two tables of deep kernel learning with and without pretraining, from cells of Tables 1 and 2."""

from __future__ import annotations

import pandas as pd

from distreduce_paper.experiment import Experiment
from distreduce_paper.experiments import classification, regression
from distreduce_paper.experiments._prediction import CLASSIFICATION, REGRESSION, paper_row
from distreduce_paper.report.blocks import Block
from distreduce_paper.report.comparison import comparison_tables

METHODS = ("DKL", "DKL-pretrained", "SDR-GP", "SDR-GP, paper's recipe", "SDR-GP, paper's algorithm")
NOTES = """\
*DKL* trains network and GP together; *DKL-pretrained* trains the network alone first. The networks are those of the \
paper, the splits those of the tables above."""


def report(frame: pd.DataFrame) -> list[Block]:
    """Compare both tables of each data set with the paper."""
    kept = frame[frame["method"].isin(METHODS)]
    # The frame mixes cells of both tables, which have different scores.
    numbers, classes = (kept[kept["data"].isin(names)] for names in (REGRESSION, CLASSIFICATION))
    return [
        *comparison_tables(numbers, "gp_regression", regression.METRICS, paper_row),
        *comparison_tables(classes, "gp_classification", classification.METRICS, paper_row),
    ]


EXPERIMENT = Experiment(
    name="dkl",
    title="Variants of deep kernel learning",
    paper="the two tables of DKL variants (appendix)",
    datasets=(*REGRESSION, *CLASSIFICATION),
    methods=METHODS,
    sources=("regression", "classification"),
    report=report,
    notes=NOTES,
)
