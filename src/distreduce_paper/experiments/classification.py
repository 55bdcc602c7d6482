"""Table 2: Gaussian processes on the two image sets."""

from __future__ import annotations

from functools import partial

from distreduce_paper.experiment import Experiment
from distreduce_paper.experiments._prediction import CLASSIFICATION, OTHERS, OURS, fit_and_score, lacks_task, paper_row
from distreduce_paper.report.comparison import comparison_tables

METRICS = {"mlp": "mlp", "accuracy": "acc"}
NOTES = """\
Ten components, 80/20 splits, Dirichlet GPs. MLP is the mean log probability of the true class. MNIST-2k draws 2000 \
of the 10,000 test images for each seed. Methods see the first 50 principal components of the training images. Deep \
kernel learning sees the images themselves, with COIL-20 averaged to 32 × 32. The paper could not run its deep GP on \
these sets, and neither do we."""


EXPERIMENT = Experiment(
    name="classification",
    title="Gaussian processes, classification",
    paper="Table 2",
    datasets=CLASSIFICATION,
    task="classification",
    methods=tuple(name for name in (*OURS, *OTHERS) if name not in ("SDR-GP, embedding alone", "DGP")),
    run=fit_and_score,
    report=partial(comparison_tables, table="gp_classification", metrics=METRICS, counterpart=paper_row),
    notes=NOTES,
    skips=lacks_task,
)
