"""
Predictions with uncertainty
============================

An interval is useful if it covers what it promises: nine in ten of the 90 % intervals should contain the truth.
``SDRGPRegressor`` mixes Gaussian processes on the reduction and on all features, a linear model and trees.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from distreduce import SDRGPRegressor
from distreduce.metrics import regression_scores
from distreduce.plotting import plot_calibration

X, y = load_diabetes(return_X_y=True)  # progression of the disease within a year: a noisy target
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
gp = SDRGPRegressor(random_state=0).fit(X_train, y_train)
(mean, std), (low, high) = gp.predict(X_test, return_std=True), gp.predict_interval(X_test, 0.9).T

# %%
# Left: the plane, new samples ringed. Right: each new sample with its 90 % interval. The intervals are wide, because
# the ten features say only so much about the target.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
style = {"cmap": "viridis", "vmin": y.min(), "vmax": y.max()}
left.scatter(*gp.transform(X_train).T, c=y_train, s=12, linewidth=0, alpha=0.6, **style)
dots = left.scatter(*gp.transform(X_test).T, c=y_test, s=30, edgecolor="black", linewidth=0.6, **style)
figure.colorbar(dots, ax=left, label="disease progression")
left.set(title="the plane behind the prediction", xticks=[], yticks=[])
order, places = np.argsort(mean), np.arange(len(mean))
inside = ((low <= y_test) & (y_test <= high))[order]
right.vlines(places, low[order], high[order], color="#0072B2", alpha=0.3, linewidth=2)
right.scatter(places[inside], y_test[order][inside], s=12, color="#333333", label="in its interval")
right.scatter(places[~inside], y_test[order][~inside], s=24, color="#D55E00", label="not in it")
right.set(title=f"{inside.mean():.0%} of new samples in their 90 % interval", xlabel="new samples, by prediction")
right.legend(frameon=False)

# %%
# Calibration at every level: a curve below the diagonal means over-confidence. The default is compared with a GP on
# the plane alone, and with the paper's recipe, whose GP is trained on an embedding that has seen the targets.
alone, paper = SDRGPRegressor(residual=False, random_state=0), SDRGPRegressor.paper(random_state=0)
others = {"the plane alone": alone, "the paper's recipe": paper}
fits = {name: model.fit(X_train, y_train).predict(X_test, return_std=True) for name, model in others.items()}
answers = {"SDR-GP": (mean, std), **fits}
_, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
plot_calibration({name: (y_test, *answer) for name, answer in answers.items()}, ax)
table = pd.DataFrame({name: regression_scores(y_test, *answer) for name, answer in answers.items()}).T
table[["mll", "mse", "mace", "coverage_90"]].round(3)

# %%
# ``mll`` is the mean log density (higher is better), ``mse`` the mean squared error, ``mace`` the calibration error
# (lower is better). The paper's recipe learns the noise. The default weights its experts by samples they have not seen:
pd.Series(gp.stacks_[0].weights).sort_values(ascending=False).round(2)

# %%
# How unlike the training samples is a new one? A small p-value warns of an extrapolation.
gp.novelty(np.r_[X_test[:2], 5 * X_test[:1]]).round(3)
