"""Your own data set: a function from a seed to X and y."""

from sklearn.datasets import load_diabetes

from distreduce_paper.problems import Problem, add_problem

add_problem("diabetes", Problem(lambda seed: load_diabetes(return_X_y=True), task="regression"))
