"""
Few labels, many samples
========================

Samples are cheap, labels are not. Samples with an unknown target (NaN, or None among strings) shape the geometry but
not the supervision.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from distreduce import SDR

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=800, stratify=y, random_state=0)


def fit_to_few(n_each, seed):
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.choice(np.flatnonzero(y_train == c), n_each, replace=False) for c in range(10)])
    partly = np.full(len(y_train), np.nan)
    partly[rows] = y_train[rows]
    return SDR(n_prototypes=60, task="classification", random_state=0).fit(X_train, partly), rows, partly


# %%
# Two labels per digit, 20 of 800: what the fit knew, and the truth.
model, rows, _ = fit_to_few(2, seed=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
style = {"cmap": "tab10", "vmin": -0.5, "vmax": 9.5, "linewidth": 0}
left.scatter(*model.embedding_left_out_.T, s=8, color="#CCCCCC", linewidth=0)
left.scatter(*model.embedding_left_out_[rows].T, c=y_train[rows], s=60, **style)
dots = right.scatter(*model.embedding_left_out_.T, c=y_train, s=12, alpha=0.7, **style)
left.set(title="what the fit knew: 20 labels", xticks=[], yticks=[])
right.set(title="the truth", xticks=[], yticks=[])
figure.colorbar(dots, ax=right, ticks=range(10), label="digit")

# %%
# Does it help? The nearest labelled sample predicts, by pixels and in the plane; label spreading for comparison.
nearest, counts, scores = KNeighborsClassifier(1), (1, 2, 4, 8), []
for n_each in counts:
    for seed in range(3):
        model, rows, partly = fit_to_few(n_each, seed)
        pixels = nearest.fit(X_train[rows], y_train[rows]).score(X_test, y_test)
        plane = nearest.fit(model.embedding_[rows], y_train[rows]).score(model.transform(X_test), y_test)
        spread = LabelSpreading(gamma=2).fit(X_train, np.nan_to_num(partly, nan=-1).astype(int)).score(X_test, y_test)
        scores.append([pixels, plane, spread])
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
names = ["nearest label by pixels", "nearest label in the plane", "label spreading"]
ax.plot(counts, np.reshape(scores, (4, 3, 3)).mean(axis=1), "o-", label=names)
ax.set(xlabel="known labels of each digit", ylabel="accuracy on new samples, three draws", xticks=counts)
ax.legend(frameon=False)

# %%
# With one or two labels each the plane beats the pixels, because unlabelled samples have shaped it. From four on the
# gain is gone. If you only want labels, use label spreading; to see which groups lack labels, start here.
