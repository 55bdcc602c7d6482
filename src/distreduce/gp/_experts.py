"""The experts of a stack: models of different kinds that learn the same targets from a view of the samples.

An expert is a function from a :class:`Lesson` to a fitted predictor. A predictor of numbers has
``moments(inputs)``, means and variances; one of classes has ``scores(inputs)``, whose calibrated softmax predicts.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV

from distreduce._utils.numerics import evenly_spaced
from distreduce._utils.typing import Array, Index
from distreduce.gp._exact import ExactGP, MergedRows, NeighbourGP
from distreduce.gp._hyperparameters import Hyperparameters, Objective, Training
from distreduce.gp._trees import Trees
from distreduce.kernels import RBF, DistanceKernel, Matern32
from distreduce.mapping.kernel_map import weighted_rows
from distreduce.mapping.relevance import GAUSSIAN

EXACT_ROWS = 3000  # distinct samples up to which a GP conditions on all of them
LEAST_PROBABILITY = 1e-4  # so that one expert that is sure and wrong cannot take all weight from a mixture
FOREST_TREES, FOREST_ROWS = 100, 10_000  # trees, and samples that each of them sees
BOOSTING_STEPS, BOOSTING_ROWS = 100, 2000
LEAST_GAIN = 1e-3  # nats per sample and target: L-BFGS ends with the first step that gains less
RIDGES = tuple(10.0 ** np.arange(-2.0, 5.1))
INVERSE_PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0)
FEW_ROWS = 1000  # enough to choose the penalty of a linear model


@dataclass(frozen=True)
class Lesson:
    """What an expert learns from: inputs (n, d), targets (n, c), weights (n,), and how.

    The targets of classes are their indicators. `training` and `training_rows` say how hyperparameters are learned and
    from how many samples at most; `seed` is that of the trees. Training starts at `known` hyperparameters, if any.
    """

    inputs: Array
    targets: Array
    weights: Array
    is_class: bool
    training: Training = Training()
    training_rows: int = 1000
    seed: int = 0
    known: Hyperparameters | None = None

    @property
    def sample_weight(self) -> Array | None:
        """Weights for scikit-learn; None if all are equal: scikit-learn bins weighted samples five times slower."""
        return None if (self.weights == self.weights[0]).all() else self.weights

    @property
    def labels(self) -> Index:
        return np.asarray(self.targets.argmax(axis=1))

    @property
    def rounded(self) -> Array:
        """The target of trees, without last bits: these would decide which of two equally good splits is taken."""
        return np.round(self.targets[:, 0], 10)

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn: a single sample, or a single class."""
        return len(self.inputs) < 2 or (self.is_class and bool((self.targets == self.targets[0]).all()))

    def take(self, rows: Index) -> Lesson:
        return replace(self, inputs=self.inputs[rows], targets=self.targets[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class Process:
    """A fitted GP, exact or conditioned on neighbours, whose targets have been centred."""

    gp: ExactGP | NeighbourGP
    mean: Array

    @property
    def hyperparameters(self) -> Hyperparameters:
        return self.gp.hyperparameters

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance of the first target, noise included."""
        mean, variance = self.gp.moments(inputs)
        return mean[:, 0] + self.mean[0], variance

    def scores(self, inputs: Array) -> Array:
        """Expected indicators of the classes (t, c)."""
        return np.asarray(self.gp.mean(inputs) + self.mean)


def learn_process(lesson: Lesson, kernel: RBF | Matern32 = GAUSSIAN, *, isotropic: bool = False) -> Process:
    """A GP with one length scale per feature, or with one for all features."""
    rows = MergedRows.of(lesson.inputs, lesson.targets, lesson.weights)
    mean = rows.weights @ rows.targets / rows.weights.sum()
    rows = replace(rows, targets=rows.targets - mean)
    few = rows.thin(lesson.training_rows)
    found = learn_hyperparameters(few, lesson.training, kernel, isotropic, lesson.known)
    make = ExactGP if len(rows.inputs) <= EXACT_ROWS else NeighbourGP
    return Process(make(rows.inputs, rows.targets, found, kernel, rows.weights), mean)


def learn_hyperparameters(
    rows: MergedRows, training: Training, kernel: RBF | Matern32, isotropic: bool, known: Hyperparameters | None
) -> Hyperparameters:
    """Maximise the marginal likelihood, on targets of variance one, from `known` or from typical length scales."""
    (m, d), h = rows.inputs.shape, rows.weights
    variance = float((h @ rows.targets**2 + rows.scatter).mean() / h.sum()) or 1.0
    unit = replace(rows, targets=rows.targets / np.sqrt(variance), scatter=rows.scatter / variance)
    starts = [Hyperparameters.start(np.full(d, np.sqrt(d)))]
    if known is not None:
        starts.append(Hyperparameters(known.length_scales, known.signal / variance, known.noise / variance))
    training = replace(training, least_gain=LEAST_GAIN * m * rows.targets.shape[1])
    objective: Objective = partial(unit.likelihood, kernel=kernel)
    if isotropic:
        # One factor for all length scales: its derivative is the sum of theirs.
        def objective(parameters: Array) -> tuple[float, Array]:
            value, gradient = unit.likelihood(np.r_[np.full(d, parameters[0]), parameters[1:]], kernel)
            return value, np.r_[gradient[:d].sum(), gradient[d:]]

        starts = [replace(start, length_scales=start.length_scales[:1]) for start in starts]
    # What fits other samples may be far off here, where the first step would end in a corner.
    start = min(starts, key=lambda start: objective(start.logarithms())[0])
    found = training(objective, start)
    if isotropic:
        found = replace(found, length_scales=np.full(d, found.length_scales[0]))
    return replace(found, signal=found.signal * variance, noise=found.noise * variance)


@dataclass(frozen=True)
class Linear:
    """A linear function of the inputs: coefficients (d, c) and intercepts (c,)."""

    coefficients: Array
    intercepts: Array

    def scores(self, inputs: Array) -> Array:
        """Logits of the classes, or predicted targets (t, c)."""
        return weighted_rows(inputs, self.coefficients) + self.intercepts

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Predictions, with a constant variance that calibration replaces."""
        return self.scores(inputs)[:, 0], np.ones(len(inputs))


def _learn_constant(lesson: Lesson) -> Linear:
    """The mean, or the only class of a fold."""
    mean = lesson.weights @ lesson.targets / lesson.weights.sum()
    intercepts = np.log(np.maximum(mean, LEAST_PROBABILITY)) if lesson.is_class else mean
    return Linear(np.zeros((lesson.inputs.shape[1], len(mean))), intercepts)


def learn_linear(lesson: Lesson) -> Linear:
    """Ridge or logistic regression, its penalty chosen by leave-one-out or cross-validation."""
    h = lesson.weights
    if lesson.is_constant:
        return _learn_constant(lesson)
    centre = h @ lesson.inputs / h.sum()  # offsets, such as those of dates, would slow down every step
    X = lesson.inputs - centre
    if not lesson.is_class:
        ridge = RidgeCV(RIDGES).fit(X, lesson.targets[:, 0], sample_weight=h)
        return Linear(ridge.coef_[:, None], np.atleast_1d(ridge.intercept_ - centre @ ridge.coef_))
    with warnings.catch_warnings():  # hardly any step is left at the limit, and calibration follows
        warnings.simplefilter("ignore")
        few, labels = evenly_spaced(len(X), FEW_ROWS), lesson.labels
        penalty = 1.0
        if np.bincount(labels[few]).min(initial=0, where=np.bincount(labels[few]) > 0) >= 3:
            search = LogisticRegressionCV(Cs=INVERSE_PENALTIES, cv=3, scoring="neg_log_loss", max_iter=300)
            penalty = float(np.ravel(search.fit(X[few], labels[few], sample_weight=h[few]).C_)[0])
        model = LogisticRegression(C=penalty, max_iter=300).fit(X, labels, sample_weight=h)
    logits = np.full((X.shape[1] + 1, lesson.targets.shape[1]), 0.0)
    both = np.r_[model.coef_.T, model.intercept_[None]]
    present = model.classes_
    logits[:, present] = np.c_[np.zeros(len(both)), both] if len(present) == 2 else both
    absent = np.setdiff1d(np.arange(logits.shape[1]), present)
    logits[-1, absent] = logits[-1, present].min() + np.log(LEAST_PROBABILITY)
    return Linear(logits[:-1], logits[-1] - centre @ logits[:-1])


@dataclass(frozen=True)
class Forest:
    """A random forest: each tree's leaf is one guess of the target, or of the shares of classes."""

    trees: Trees

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean of the guesses, and how far they scatter."""
        total, squares = (part[:, 0] / len(self.trees.roots) for part in self.trees.sums(inputs))
        return total, np.maximum(squares - total**2, 0.0)

    def scores(self, inputs: Array) -> Array:
        """Logarithms of the mean shares."""
        shares = self.trees.sums(inputs)[0] / len(self.trees.roots)
        return np.asarray(np.log(shares + 0.5 / len(self.trees.roots)))


def learn_forest(lesson: Lesson, least_leaf: int = 1) -> Forest:
    """A random forest of at most `FOREST_ROWS` samples per tree."""
    few = min(len(lesson.inputs), FOREST_ROWS)
    options: dict[str, Any] = {
        "n_estimators": FOREST_TREES,
        "random_state": lesson.seed,
        "n_jobs": 1,
        "max_samples": None if few == len(lesson.inputs) else few,
        # With many rows at least three: else files of fitted models become large.
        "min_samples_leaf": max(least_leaf, 1 if few < FOREST_ROWS else 3),
    }
    if not lesson.is_class:
        model = ensemble.RandomForestRegressor(max_features=1 / 3 if lesson.inputs.shape[1] > 3 else 1.0, **options)
        model.fit(lesson.inputs, lesson.rounded, sample_weight=lesson.sample_weight)
        return Forest(Trees.of_forest(model.estimators_))
    model = ensemble.RandomForestClassifier(**options)
    model.fit(lesson.inputs, lesson.labels, sample_weight=lesson.sample_weight)
    return Forest(_widen(Trees.of_forest(model.estimators_), model.classes_, lesson.targets.shape[1]))


def _widen(trees: Trees, classes: Index, n_classes: int) -> Trees:
    """Put the columns of the classes that a fold has into those of all classes."""
    if len(classes) == n_classes:
        return trees
    if trees.n_columns == len(trees.values[0]):  # a forest: each leaf has all classes
        values = np.zeros((len(trees.values), n_classes))
        values[:, classes] = trees.values
        return replace(trees, values=values, n_columns=n_classes)
    return replace(trees, columns=classes[trees.columns], n_columns=n_classes)


@dataclass(frozen=True)
class Boosting:
    """Gradient-boosted trees: their sum and a baseline (c,)."""

    trees: Trees
    baseline: Array
    binary: bool = False  # whether the only column is the logit of the second of two classes

    def scores(self, inputs: Array) -> Array:
        """Logits of the classes, or predicted targets (t, c)."""
        total = self.trees.sums(inputs)[0] + self.baseline
        return np.asarray(np.c_[np.zeros(len(total)), total] if self.binary else total)

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Predictions, with a constant variance that calibration replaces."""
        return self.scores(inputs)[:, 0], np.ones(len(inputs))


def learn_boosting(lesson: Lesson) -> Boosting | Linear:
    """Histogram-based gradient boosting; with enough samples, some of them tell when to stop."""
    if lesson.is_constant:
        return _learn_constant(lesson)
    enough = len(lesson.inputs) > BOOSTING_ROWS
    n_classes = lesson.targets.shape[1]
    # Every step grows one tree per class.
    steps = BOOSTING_STEPS if n_classes <= 10 else max(10, 10 * BOOSTING_STEPS // n_classes)
    options = {"early_stopping": enough, "max_iter": steps * (10 if enough else 1), "random_state": lesson.seed}
    if not lesson.is_class:
        model: Any = ensemble.HistGradientBoostingRegressor(**options)
        model.fit(lesson.inputs, lesson.rounded, sample_weight=lesson.sample_weight)
        return Boosting(Trees.of_boosting(model), np.ravel(model._baseline_prediction))
    model = ensemble.HistGradientBoostingClassifier(**options)
    model.fit(lesson.inputs, lesson.labels, sample_weight=lesson.sample_weight)
    trees, baseline = Trees.of_boosting(model), np.ravel(model._baseline_prediction)
    present = model.classes_
    if n_classes == 2:
        return Boosting(trees, baseline, binary=True)
    if len(present) == 2:  # only two of several classes are here: the logit is that of the second
        columns = np.full(len(trees.columns), present[1])
        trees = replace(trees, columns=columns, n_columns=n_classes)
        baseline = np.r_[0.0, baseline]
    else:
        trees = _widen(trees, present, n_classes)
    logits = np.full(n_classes, baseline.min() + np.log(LEAST_PROBABILITY))
    logits[present] = baseline
    return Boosting(trees, logits)


@dataclass(frozen=True)
class Own:
    """A fitted scikit-learn estimator of the user."""

    model: Any
    n_columns: int

    def scores(self, inputs: Array) -> Array:
        """Logarithms of the probabilities (t, c)."""
        shares = np.zeros((len(inputs), self.n_columns))
        shares[:, self.model.classes_] = self.model.predict_proba(inputs)
        return np.asarray(np.log(np.maximum(shares, LEAST_PROBABILITY)))

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Predictions, with a constant variance that calibration replaces."""
        return np.asarray(self.model.predict(inputs), dtype=np.float64).ravel(), np.ones(len(inputs))


def learn_own(lesson: Lesson, estimator: Any) -> Own:
    """A clone of the user's estimator, with weights where it takes them."""
    model, y = clone(estimator), lesson.labels if lesson.is_class else lesson.targets[:, 0]
    weighted = "sample_weight" in inspect.signature(model.fit).parameters
    model.fit(lesson.inputs, y, **({"sample_weight": lesson.weights} if weighted else {}))
    return Own(model, lesson.targets.shape[1])


Expert = Callable[[Lesson], Any]
# By name; "embedding" is a GP on the reduction, all others see the features.
EXPERTS: Mapping[str, Expert] = {
    "embedding": learn_process,
    "inputs": learn_process,
    "rough_inputs": partial(learn_process, kernel=Matern32()),
    "isotropic": partial(learn_process, isotropic=True),
    "linear": learn_linear,
    "forest": learn_forest,
    "boosting": learn_boosting,
}
# Each starts where the one before ended. Not the rough one, which found a worse optimum on a split of Energy (−0.3).
CHAIN = ("isotropic", "inputs")
KERNELS: dict[str, DistanceKernel] = dict.fromkeys(("embedding", "inputs", "rough_inputs", "isotropic"), GAUSSIAN)
KERNELS["rough_inputs"] = Matern32()
