"""The models that ``distreduce fit`` fits: the picture, the predictor, and two simpler ones to compare it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce.estimators import SDR
from distreduce.gp import GPClassifier, GPRegressor, SDRGPClassifier, SDRGPRegressor
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.target import Target

Rows = NDArray[np.intp]
WIDE = 200  # columns of X above which a length scale a column is too slow to learn, and learns too little
WIDE_MAP_REG = 0.1
IDENTITY_STEPS = 1000  # of the one solve for the embedding that an identity plan needs


@dataclass(frozen=True)
class Choices:
    """Options of ``distreduce fit`` that concern the models; None is the model's own default."""

    prototypes: int | None = None
    components: int = 2
    eta: float | None = None
    perplexity: float | None = None
    test_size: float = 0.2
    max_rows: int = 2000
    seed: int = 0
    predict: bool = True
    checkpoint: str | None = None

    def tuned(self) -> dict[str, Any]:
        """`eta` and `perplexity`, where they were given."""
        given = {"eta": self.eta, "perplexity": self.perplexity}
        return {name: value for name, value in given.items() if value is not None}


def picture(data: PreparedTable, choices: Choices, rows: Rows, predictor: Any) -> SDR:
    """The reduction of these rows, those without a target too; after an interrupt, the best there is.

    The map's ridge is the noise that the predictor found in a numeric target: with the default, an embedding that has
    seen y would learn the noise.
    """
    count = default_prototypes(len(rows), data.target) if choices.prototypes is None else choices.prototypes
    options: dict[str, Any] = choices.tuned()
    if isinstance(predictor, SDRGPRegressor):
        options["map_reg"] = float(predictor.reduction_.map_reg)
    if count == 0:  # the identity plan of a prototype a row is a stationary point already (decision 12)
        options |= {"max_iter": 0, "max_inner_iter": IDENTITY_STEPS}
    options |= {"task": data.target.task, "random_state": choices.seed, "checkpoint": choices.checkpoint}
    model = SDR(choices.components, n_prototypes=count or None, **options)
    try:
        model.fit(data.X[rows], data.target.rows(rows).y)
    except KeyboardInterrupt:
        if not hasattr(model, "prototypes_"):
            raise
    return model


def default_prototypes(n: int, target: Target) -> int:
    """A tenth of the rows, between 10 and 50, and at least two a class; 0 (one a row) for fewer than 20 rows."""
    classes = 0 if target.labels is None else target.y.nunique()
    wanted = max(min(50, n // 10), 10, 2 * classes)
    return 0 if n < 20 or wanted >= n else wanted


def ours(target: Target, n_columns: int, choices: Choices) -> Any:
    """The predictor on the reduction."""
    options = {"random_state": choices.seed, **choices.tuned()}
    if target.task == "classification":
        return SDRGPClassifier(choices.components, **options)
    if n_columns > WIDE:
        options |= {"length_scale": "median", "map_reg": WIDE_MAP_REG, "residual": False}
    return SDRGPRegressor(choices.components, **options)


def plain(target: Target, n_columns: int, seed: int, n_rows: int) -> Any:
    """A model on all columns of X: a Gaussian process with a length scale a column; of wide tables 10 neighbours."""
    if n_columns > WIDE:
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

        k = min(10, n_rows)
        return KNeighborsClassifier(k) if target.task == "classification" else KNeighborsRegressor(k)
    return _process(target, seed)


def _process(target: Target, seed: int) -> Any:
    return GPClassifier(random_state=seed) if target.task == "classification" else GPRegressor(random_state=seed)


def on_components(target: Target, n_columns: int, choices: Choices) -> Any:
    """A Gaussian process on as many principal components as our embedding has dimensions."""
    from distreduce.baselines import PCA, EmbeddingGP

    pca = PCA(min(choices.components, n_columns), random_state=choices.seed)
    return EmbeddingGP(pca, _process(target, choices.seed), task=target.task)
