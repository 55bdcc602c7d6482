"""The sentences and marks of the page that are always the same."""

from __future__ import annotations

from distreduce_paper.blocks import Verdict

TITLE = "The paper rebuilt, next to its own numbers"
INTRODUCTION = """\
Every table and figure of *Supervised Distributional Reduction via Optimal Transport and Dependence Maximization*, \
computed with `distreduce`. The numbers come from `distreduce reproduce all`; `distreduce reproduce report` made this \
page from them and computed nothing again."""
HOW_TO_READ = """\
Ours is the mean ± sample standard deviation (divisor *n* − 1; the paper does not say which it uses) over five seeds; \
another number of seeds is given in brackets. The *difference* is ours less the paper's in standard deviations of the \
paper, signed so that + is better: ▲ better by more than one, = equal within one, ▼ worse by more than one. Where the \
paper prints a deviation of 0.00 or none, half of its last digit (0.005) takes that place."""
NOTHING = "No number of the paper has been computed yet: `distreduce reproduce all` computes them all."
QUICK = "Quick run: small data, not comparable with the paper."
NO_REASON = "Why is open."
MARKS: dict[Verdict, str] = {"better": "▲", "equal": "=", "worse": "▼"}
# Our estimator with its defaults, our other rows held against an SDR row of the paper, and the rest.
GROUPS = ("SDR as it comes", "Other SDR rows", "Other methods")
