"""
How it differs from PCA, NCA, UMAP and deep kernels
===================================================

Each of these methods reduces many features to a few. They differ in what they use (y or not), in the maps they allow
(linear or any), and in what they keep (distances, neighbours, or only the prediction).
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
# Ten classes of images; a rolled-up band, whose target is the position along it; a noisy function of five features.
digits = load_digits()
roll = make_swiss_roll(1200, noise=0.5, random_state=0)
friedman = make_friedman1(1200, noise=1.0, random_state=0)
data = {"digits": (digits.data / 16, digits.target)}
data |= {"Swiss roll": (scale(roll[0]), roll[1]), "Friedman": (scale(friedman[0]), friedman[1])}

# %%
# The pictures show new samples and the score of ten nearest neighbours in the plane: accuracy for digits, else R².
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
# along its axis, but not enough for the digits and Friedman's function. SDR's map may bend. Where a linear view is
# enough, NCA is simpler.
#
# UMAP and deep kernels take too long for this page. ``distreduce reproduce run regression`` compares them: a Gaussian
# process on two dimensions each, mean squared error of standardised targets on held-out samples, five splits.
#
# ==================================  ======  ======  ========  ======================================================
# two dimensions from                 Boston  Energy  Concrete  what it keeps
# ==================================  ======  ======  ========  ======================================================
# SDR, as in ``SDRGPRegressor``       0.100   0.005   0.104     geometry and target, prototypes with weights, a map
# SDR, the paper's recipe             0.108   0.040   0.126     the same
# NCA                                 0.173   0.029   0.180     the target, as far as a linear map can show it
# supervised UMAP                     0.337   0.130   0.513     neighbours, preferring those with a similar target
# deep kernel learning                0.120   0.064   0.142     the target: a network, trained through the GP
# ==================================  ======  ======  ========  ======================================================
#
# UMAP makes fine pictures too, but places a new sample by a search. Deep kernels are as good as SDR on images, where a
# convolution knows what distances between pixels do not. Their two dimensions serve one prediction and are not a
# picture of X.
