"""The two tables of deep kernel learning with and without pretraining: cells of Tables 1 and 2."""

from __future__ import annotations

import pandas as pd

from distreduce_paper.blocks import Block, Text
from distreduce_paper.comparison import comparison_tables
from distreduce_paper.experiment import Experiment
from distreduce_paper.prediction import CLASSIFICATION, REGRESSION, paper_row

METHODS = ("DKL", "DKL-pretrained", "SDR-GP", "SDR-GP, paper's recipe", "SDR-GP, paper's algorithm")
NOTES = """\
*DKL* trains network and GP together, *DKL-pretrained* trains the network alone first. The same networks as in the \
paper, the same splits as in the tables above."""


def report(frame: pd.DataFrame) -> list[Block]:
    """Both tables of every data set beside the paper's."""
    kept = frame[frame["method"].isin(METHODS)] if len(frame) else frame
    numbers = kept[kept["data"].isin(REGRESSION)] if len(kept) else kept
    classes = kept[kept["data"].isin(CLASSIFICATION)] if len(kept) else kept
    return [
        Text(NOTES),
        *comparison_tables(numbers, "gp_regression", {"mll": "mll", "mse": "mse"}, paper_row),
        *comparison_tables(classes, "gp_classification", {"mlp": "mlp", "accuracy": "acc"}, paper_row),
    ]


EXPERIMENT = Experiment(
    name="dkl",
    title="Variants of deep kernel learning",
    paper="the two tables of DKL variants (appendix)",
    datasets=(*REGRESSION, *CLASSIFICATION),
    methods=METHODS,
    sources=("regression", "classification"),
    report=report,
)
