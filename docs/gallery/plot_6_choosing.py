"""
Choosing eta, alpha, m and perplexity
=====================================

Four parameters shape a reduction. This is what each does to the same 300 digits, with 40 prototypes and the other
parameters at their defaults: ``alpha`` 0.2, ``perplexity`` 30, and ``eta`` three times the number of samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR
from distreduce.plotting import plot_embedding

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=300, stratify=y, random_state=0)
choices = {
    "eta": (0, 100, 10_000),
    "alpha": (0.02, 0.5, 0.98),
    "n_prototypes": (10, 30, 100),
    "perplexity": (3, 30, 100),
}

# %%
# Above each picture: the accuracy of ten nearest neighbours on 1497 new samples, the dependence (CKA) between
# prototypes and targets, and how many prototypes are in use.
figure, axes = plt.subplots(4, 3, figsize=(10, 13.6), layout="constrained")
for row, (name, values) in zip(axes, choices.items(), strict=True):
    for ax, value in zip(row, values, strict=True):
        model = SDR(**{"n_prototypes": 40, "random_state": 0, name: value}).fit(X_train, y_train)
        score = KNeighborsClassifier(10).fit(model.embedding_, y_train).score(model.transform(X_test), y_test)
        plot_embedding(model, y_train, ax).get_legend().remove()
        used = np.count_nonzero(model.prototype_weights_)
        facts = f"new: {score:.1%}     CKA {model.history_['cka'].iloc[-1]:.2f}     {used} used"
        ax.text(0.5, 1.02, facts, transform=ax.transAxes, ha="center", fontsize=9)
        ax.set_title(f"{name} = {value}", fontweight="bold", pad=20)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])

# %%
# - **eta** matters most. At 0 the labels only decide which samples share a prototype, and the plane follows the images.
#   At 10,000 the classes shrink to points, and the *similarity* of digits is lost. The default,
#   ``"auto"``, grows with the number of samples.
# - **alpha** weighs geometry against labels where samples choose prototypes. It changes little here.
# - **n_prototypes** depends on what you want to read: one per class is a table of contents, 100 are a map. Prototypes
#   that the data do not need end with weight 0.
# - **perplexity** is the number of neighbours that are kept together. It changes little here.
#
# Apart from ``eta``, scores on new samples differ by at most three points: choose by what you want to see. With noisy
# targets a fifth parameter, ``map_reg``, matters most of all: left-out samples choose it unless you do.
