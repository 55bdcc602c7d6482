"""
A picture of labelled data
==========================

You have samples with many features and one label each. You want to see which groups there are, which of them touch, and
whether the features say anything about the label. Two principal components are the usual first look.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR

X, y = load_digits(return_X_y=True)  # images of 8 × 8 pixels, values 0 … 16
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=800, stratify=y, random_state=0)

# %%
# Without ``n_prototypes`` each sample is its own prototype: pure dimensionality reduction.
models = {"PCA": PCA(2).fit(X_train), "SDR": SDR(random_state=0).fit(X_train, y_train)}

# %%
# SDR has seen the labels of its training samples, so their picture proves nothing: it pulls classes apart. What
# counts is where *new* samples land, on the right.
figure, axes = plt.subplots(2, 2, figsize=(9, 8.4), layout="constrained")
for row, (name, model) in zip(axes, models.items(), strict=True):
    for ax, samples, labels, kind in ((row[0], X_train, y_train, "training"), (row[1], X_test, y_test, "new")):
        places = model.transform(samples)
        dots = ax.scatter(*places.T, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=12, alpha=0.7, linewidth=0)
        ax.set(title=f"{name}, {len(labels)} {kind} samples", xticks=[], yticks=[])
    row[1].set(xlim=row[0].get_xlim(), ylim=row[0].get_ylim())
figure.colorbar(dots, ax=axes, ticks=range(10), label="digit", shrink=0.6)

# %%
# How much of the label can be read from two numbers? Ten nearest neighbours answer that.
neighbours = KNeighborsClassifier(10)
for name, model in models.items():
    score = neighbours.fit(model.transform(X_train), y_train).score(model.transform(X_test), y_test)
    print(f"{name}: {score:.1%} of the new samples right from two dimensions")
print(f"all 64 pixels: {neighbours.fit(X_train, y_train).score(X_test, y_test):.1%}")

# %%
# The plane of SDR keeps nearly everything that the pixels say about the digit. PCA does not know the labels: it keeps
# the directions in which the images differ most, and these mix the digits. Groups of new samples are looser than groups
# of training samples: the right-hand picture is the honest one. Gaps between far groups mean nothing.
