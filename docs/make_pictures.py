"""Draw the pictures of the documentation: ``python docs/make_pictures.py`` (with data from scikit-learn)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from distreduce import SDR, DistR, SDRGPRegressor
from distreduce.plotting import plot_calibration, plot_coupling, plot_embedding, plot_history
from distreduce.plotting.palette import class_palette, class_shapes, marker_path

FOLDER = Path(__file__).parent / "img"


def compare(X: np.ndarray, y: np.ndarray, distr: DistR, sdr: SDR) -> Figure:
    """Draw two principal components, DistR's prototypes and SDR's prototypes side by side."""
    figure = Figure(figsize=(13.5, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    scores = PCA(2, random_state=0).fit_transform(X)
    shapes, colours = class_shapes(10)[y], class_palette(10)[y]
    for shape in np.unique(shapes):
        own = shapes == shape
        left.scatter(*scores[own].T, s=9, c=colours[own], marker=marker_path(shape), alpha=0.5, linewidth=0)
    left.set_aspect("equal", adjustable="datalim")
    for ax, model in ((middle, distr), (right, sdr)):
        plot_embedding(model, y, ax)
    middle.get_legend().remove()
    used = [np.count_nonzero(model.prototype_weights_) for model in (distr, sdr)]
    titles = (
        f"PCA, {len(X)} points",
        f"DistR, {used[0]} prototypes, labels not used",
        f"SDR, {used[1]} prototypes, labels used",
    )
    for ax, title in zip((left, middle, right), titles, strict=True):
        ax.set(title=title, xlabel="", ylabel="", xticks=[], yticks=[])
        ax.spines[:].set_color("#CCCCCC")
    return figure


def inspect(y: np.ndarray, sdr: SDR) -> Figure:
    """Draw the history of the fit and the targets in each prototype."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_history(sdr, left)
    plot_coupling(sdr, y, right)
    return figure


def uncertainty() -> Figure:
    """Draw held-out predictions for the diabetes data with intervals, and their calibration."""
    X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
    default = SDRGPRegressor(random_state=0).fit(X_train, y_train)
    paper = SDRGPRegressor.paper(random_state=0).fit(X_train, y_train)
    mean, std = default.predict(X_test, return_std=True)
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    order = np.argsort(mean)
    places = np.arange(len(order))
    left.fill_between(places, *default.predict_quantiles(X_test, (0.05, 0.95))[order].T, color="#0072B2", alpha=0.15)
    left.plot(places, mean[order], color="#0072B2", label="mean and 90 % interval")
    left.scatter(places, y_test[order], s=12, color="#333333", label="held-out target", zorder=3)
    left.set(xlabel="held-out samples, by prediction", ylabel="disease progression", title="SDR-GP, diabetes data")
    left.legend(frameon=False, loc="upper left")
    models = {"SDR-GP": (y_test, mean, std), "the paper's recipe": (y_test, *paper.predict(X_test, return_std=True))}
    plot_calibration(models, right)
    return figure


def main() -> None:
    """Fit both models to the digits and write the pictures."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    distr = DistR(n_prototypes=60, random_state=0).fit(X)
    sdr = SDR(n_prototypes=60, random_state=0).fit(X, y)
    FOLDER.mkdir(exist_ok=True)
    compare(X, y, distr, sdr).savefig(FOLDER / "digits.png", dpi=110)
    inspect(y, sdr).savefig(FOLDER / "inspect.png", dpi=90)
    uncertainty().savefig(FOLDER / "uncertainty.png", dpi=90)


if __name__ == "__main__":
    main()
