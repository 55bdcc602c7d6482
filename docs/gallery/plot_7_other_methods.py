"""
How it differs from PCA, NCA, UMAP and deep kernels
===================================================

Each of these makes few numbers of many. They differ in what they know (y or not), in what they may do (a linear map or
any), and in what they keep (distances, neighbours, or the prediction alone).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, make_friedman1, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

from distreduce import SDR
from distreduce.baselines import NCA

# %%
# Ten classes of images; a rolled-up band, whose target is the way along it; a noisy function of five of ten features.
digits = load_digits()
roll = make_swiss_roll(1200, noise=0.5, random_state=0)
friedman = make_friedman1(1200, noise=1.0, random_state=0)
data = {"digits": (digits.data / 16, digits.target)}
data |= {"Swiss roll": (scale(roll[0]), roll[1]), "Friedman": (scale(friedman[0]), friedman[1])}

# %%
# Drawn are new samples, with the score of ten nearest neighbours in the plane: accuracy for the digits, else R².
figure, axes = plt.subplots(3, 3, figsize=(10, 9.6), layout="constrained")
for row, (name, (X, y)) in zip(axes, data.items(), strict=True):
    classes = name == "digits"
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
    for ax, model in zip(row, (PCA(2), NCA(2, random_state=0), SDR(random_state=0)), strict=True):
        train, test = model.fit(X_train, y_train).transform(X_train), model.transform(X_test)
        neighbours = (KNeighborsClassifier if classes else KNeighborsRegressor)(10).fit(train, y_train)
        score = f"{'accuracy' if classes else 'R²'} {neighbours.score(test, y_test):.2f}"
        ax.scatter(*test.T, c=y_test, cmap="tab10" if classes else "viridis", s=10, alpha=0.7, linewidth=0)
        ax.set(title=f"{name}, {type(model).__name__}: {score}", xticks=[], yticks=[])

# %%
# PCA keeps variance, whatever the target. NCA finds the best *linear* view of the target: ideal for the roll, seen
# along its axis, and not enough for digits and Friedman's function. SDR may bend; where a straight view is enough,
# NCA is simpler.
#
# UMAP and deep kernels take too long for this page. ``distreduce reproduce run regression`` compares them: a Gaussian
# process on two dimensions each, mean squared error of standardised targets on held-out samples, five splits.
#
# ==================================  ======  ======  ========  ======================================================
# two dimensions from                 Boston  Energy  Concrete  what it keeps
# ==================================  ======  ======  ========  ======================================================
# SDR, ``SDRGPRegressor``'s way       0.100   0.005   0.104     geometry and target, prototypes with weights, a map
# SDR, the paper's recipe             0.108   0.040   0.126     the same
# NCA                                 0.173   0.029   0.180     the target, as far as a linear map can show it
# supervised UMAP                     0.337   0.130   0.513     neighbours, those with a like target above others
# deep kernel learning                0.120   0.064   0.142     the target: a network, trained through the GP
# ==================================  ======  ======  ========  ======================================================
#
# UMAP makes fine pictures of large data, which SDR cannot take, but finds a new sample's place by a search. Deep
# kernels are level with SDR on images, where a convolution knows what distances between pixels do not; their two
# dimensions are made for one prediction, and are no picture of X.
