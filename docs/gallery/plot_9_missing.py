"""
Missing cells, filled in with their uncertainty
===============================================

Reductions and Gaussian processes do not accept NaN. ``SDRImputer`` fills in a missing cell by the prototypes that the
known cells of its row belong to, and says how uncertain that is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from distreduce import SDRImputer

# %%
# A third of the cells of the iris table is hidden, at random. The number of prototypes, and how far features are
# correlated within them, are chosen by further cells that the imputer hides from itself.
X, y = load_iris(return_X_y=True)
missing = np.random.default_rng(0).random(X.shape) < 0.33
table = np.where(missing, np.nan, X)
imputer = SDRImputer(random_state=0).fit(table)
filled, std = imputer.transform(table, return_std=True)
print(f"{len(imputer.prototypes_)} prototypes, shrinkage {imputer.shrinkage_}")

# %%
# We know what was hidden. The error is in standard deviations of each feature.
others = {
    "median": SimpleImputer(strategy="median"),
    "5 neighbours": KNNImputer(),
    "iterative": IterativeImputer(random_state=0, max_iter=50, tol=1e-2),
}
guesses = {name: other.fit_transform(table) for name, other in others.items()} | {"SDRImputer": filled}
errors = {name: np.sqrt(np.mean(((guess - X) / X.std(axis=0))[missing] ** 2)) for name, guess in guesses.items()}
covered = np.mean(np.abs(filled - X)[missing] < 1.645 * std[missing])
print(f"hidden cells: error {errors['SDRImputer']:.2f} (expected {imputer.hidden_error_:.2f})")
print(f"90 % intervals cover {covered:.0%} of them")

# %%
# Left: petal lengths that were missing, with 90 % intervals, against the truth. Right: the errors.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
cells = missing[:, 2]
left.errorbar(X[cells, 2], filled[cells, 2], 1.645 * std[cells, 2], fmt="none", ecolor="#CCCCCC", zorder=0)
left.scatter(X[cells, 2], filled[cells, 2], c=y[cells], cmap="viridis", s=20)
left.plot([1, 7], [1, 7], color="black", linewidth=0.7)
left.set(title="missing petal lengths", xlabel="truth (cm)", ylabel="filled in (cm)")
right.barh(list(errors), list(errors.values()), color=["#BBBBBB", "#BBBBBB", "#BBBBBB", "#4477AA"])
right.set(title="error, in standard deviations")
