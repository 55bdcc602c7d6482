"""The fixed sentences and marks of the report."""

from __future__ import annotations

from distreduce_paper.report.blocks import Verdict

TITLE = "The paper rebuilt, next to its own numbers"
INTRODUCTION = """\
Every table and figure of *Supervised Distributional Reduction via Optimal Transport and Dependence Maximization*, \
computed with `distreduce`. `distreduce reproduce all` computes the numbers; `distreduce reproduce report` made this \
page from them without computing anything again."""
HOW_TO_READ = """\
Ours is the mean ± sample standard deviation (divisor *n* − 1; the paper does not say which it uses) over five seeds; \
a different number of seeds is given in brackets. The *difference* is ours minus the paper's in standard deviations \
of the paper, signed so that + is better: ▲ better by more than one, = equal within one, ▼ worse by more than one. \
Where the paper prints a deviation of 0.00 or none, half of its last digit (0.005) is used instead."""
NOTHING = "No number of the paper has been computed yet: `distreduce reproduce all` computes them all."
QUICK = "Quick run: small data, not comparable with the paper."
NO_REASON = "The reason is open."
MARKS: dict[Verdict, str] = {"better": "▲", "equal": "=", "worse": "▼"}
# Our estimators, our other rows compared with an SDR row of the paper, and the rest.
GROUPS = ("Our SDR (the paper's constants) and SDR-GP (defaults)", "Other SDR rows", "Other methods")
