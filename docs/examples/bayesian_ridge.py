"""Your own method: scikit-learn's Bayesian ridge regression as a row of Table 1."""

from sklearn.linear_model import BayesianRidge

from distreduce_paper.methods import add_predictor

add_predictor("Bayesian ridge", regression=lambda seed: BayesianRidge())
