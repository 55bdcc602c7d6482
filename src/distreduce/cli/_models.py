"""The models that ``distreduce fit`` fits: the picture, the predictor, and two simpler models for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from distreduce._utils.typing import Index
from distreduce.baselines import PCA, EmbeddingGP
from distreduce.estimators import SDR
from distreduce.gp import GPClassifier, GPRegressor, SDRGPClassifier, SDRGPRegressor
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.target import Target

OURS, PLAIN, COMPONENTS = "SDR-GP", "no reduction", "PCA"
MODELS = (OURS, PLAIN, COMPONENTS)
WIDE = 200  # columns of X above which one length scale per column is too slow to learn, and learns too little
WIDE_MAP_REG = 0.1
IDENTITY_STEPS = 1000  # of the one solve for the embedding that an identity plan needs
N_NEIGHBORS = 10


@dataclass(frozen=True)
class FitOptions:
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

    def model_parameters(self) -> dict[str, Any]:
        """Return `eta` and `perplexity` if they were given."""
        given = {"eta": self.eta, "perplexity": self.perplexity}
        return {name: value for name, value in given.items() if value is not None}


def describe_models(task: str, n_components: int, n_columns: int) -> dict[str, str]:
    """Return a sentence about each model of the comparison."""
    # The sentences must follow make_model: what each model is depends on the task and on the width.
    mixed = task == "regression" and n_columns <= WIDE
    wide = f"the mean of the {N_NEIGHBORS} nearest rows, by all columns."
    return {
        OURS: "the predictor of this fit, a Gaussian process on the embedding that SDR learns"
        + (", combined with Gaussian processes on all columns." if mixed else "."),
        PLAIN: wide if n_columns > WIDE else "a Gaussian process on all columns.",
        COMPONENTS: f"a Gaussian process on the first {min(n_components, n_columns)} principal components, which do "
        "not know the target.",
    }


def fit_picture(data: PreparedTable, options: FitOptions, rows: Index) -> SDR:
    """Fit SDR to these rows, including those without a target; after an interrupt, return the best so far."""
    count = choose_prototypes(len(rows), data.target) if options.prototypes is None else options.prototypes
    parameters: dict[str, Any] = options.model_parameters()
    if count == 0:  # the identity plan of one prototype per row is a stationary point already (decision 12)
        parameters |= {"max_iter": 0, "max_inner_iter": IDENTITY_STEPS}
    parameters |= {"task": data.target.task, "random_state": options.seed, "checkpoint": options.checkpoint}
    model = SDR(options.components, n_prototypes=count or None, **parameters)
    try:
        model.fit(data.X[rows], data.target.rows(rows).y)
    except KeyboardInterrupt:
        if not hasattr(model, "prototypes_"):  # interrupted before the first result
            raise
    return model


def choose_prototypes(n: int, target: Target) -> int:
    """Return a tenth of the rows, between 10 and 50, at least two per class; 0 (one per row) for fewer than 20 rows."""
    classes = 0 if target.labels is None else target.y.nunique()
    wanted = max(min(50, n // 10), 10, 2 * classes)
    return 0 if n < 20 or wanted >= n else wanted


def make_model(name: str, target: Target, n_columns: int, n_rows: int, options: FitOptions) -> Any:
    """Return an unfitted model by its name in `MODELS`; `OURS` is the predictor."""
    classes, seed = target.task == "classification", options.seed
    if name == OURS:
        parameters = {"random_state": seed, **options.model_parameters()}
        if not classes and n_columns > WIDE:
            # One length scale for all columns, and no GPs on all of them.
            parameters |= {"length_scale": "median", "map_reg": WIDE_MAP_REG, "residual": False}
        return (SDRGPClassifier if classes else SDRGPRegressor)(options.components, **parameters)
    # A GP on this many columns is too slow to train, too (see WIDE).
    if name == PLAIN and n_columns > WIDE:
        return (KNeighborsClassifier if classes else KNeighborsRegressor)(min(N_NEIGHBORS, n_rows))
    process = GPClassifier(random_state=seed) if classes else GPRegressor(random_state=seed)
    if name == PLAIN:
        return process
    pca = PCA(min(options.components, n_columns), random_state=seed)  # as many dimensions as ours, to compare
    return EmbeddingGP(pca, process, task=target.task)
