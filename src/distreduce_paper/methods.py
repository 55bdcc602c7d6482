"""The methods that the experiments compare, by name. Add one with a single call of `add_predictor` or its siblings.

- A *predictor* has ``fit``, and ``predict(X, return_std=True)`` or ``predict_proba``.
- An *embedding* has ``fit(X, y)`` and ``transform``.
- A *reduction* has the fitted attributes of :class:`distreduce.DistR`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn import ensemble
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, baselines
from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPClassifier, GPRegressor
from distreduce_paper import baselines as paper_baselines
from distreduce_paper.baselines import familiar
from distreduce_paper.baselines.embed_once import EmbedOnce
from distreduce_paper.experiment import Kind

Maker = Callable[[int], Any]  # from a seed to an unfitted estimator
EmbeddingMaker = Callable[[int, int], Any]  # from the number of components and a seed
ReductionMaker = Callable[[int, float, int], Any]  # from the number of prototypes, the perplexity and a seed


@dataclass(frozen=True)
class Predictor:
    """A method that predicts: makers of its models, None for a task that it lacks."""

    regression: Maker | None = None
    classification: Maker | None = None
    images: bool = False  # whether it reads images as pixels instead of principal components


PREDICTORS: dict[str, Predictor] = {}
EMBEDDINGS: dict[str, EmbeddingMaker] = {}
REDUCTIONS: dict[str, ReductionMaker] = {}
_REGISTRIES: dict[Kind, dict[str, Any]] = {"predictor": PREDICTORS, "embedding": EMBEDDINGS, "reduction": REDUCTIONS}
_RESERVED: set[tuple[Kind, str]] = set()  # names of this file, filled at its end


def add_predictor(
    name: str, *, regression: Maker | None = None, classification: Maker | None = None, images: bool = False
) -> None:
    """Register a model that predicts with uncertainty, for Tables 1 and 2 and the experiments derived from them."""
    _register("predictor", name, Predictor(regression, classification, images))


def add_embedding(name: str, make: EmbeddingMaker, *, with_gp: bool = True) -> None:
    """Register a supervised embedding for the k-NN and KRR tables and, as "NAME-GP", with the paper's GP on it."""
    _register("embedding", name, make)
    if with_gp:
        _add_embedding_gp(f"{name}-GP", make)


def add_reduction(name: str, make: ReductionMaker) -> None:
    """Register a reduction to prototypes, for Figures 2 and 3."""
    _register("reduction", name, make)


def get_registry(kind: Kind) -> dict[str, Any]:
    """Return all registered methods of a kind."""
    return _REGISTRIES[kind]


def _register(kind: Kind, name: str, method: Any) -> None:
    if (kind, name) in _RESERVED:  # a plugin must not change what the paper's rows mean
        raise InvalidInputError(f"The package has its own {kind} {name!r}; choose another name for yours.")
    _REGISTRIES[kind][name] = method


def _add_embedding_gp(name: str, make: EmbeddingMaker) -> None:
    """Register the paper's GP on an embedding: 20 Adam steps in 2 dimensions for regression, 50 in 10 for classes."""
    add_predictor(
        name,
        regression=lambda seed: baselines.EmbeddingGP(
            make(2, seed), GPRegressor(gp_optimizer="adam"), task="regression"
        ),
        classification=lambda seed: baselines.EmbeddingGP(
            make(10, seed), GPClassifier(gp_optimizer="adam", random_state=seed), task="classification"
        ),
    )


# The paper's algorithm: Z by Adam (at most 1000 steps of 0.001), L in closed form, Z relaxed towards the map, T by the
# transport solver; it stops when the objective rises.
PAPER_ALGORITHM: dict[str, Any] = {"solver": "alternating", "optimizer": "adam", "max_inner_iter": 1000}
# In the paper, reductions to prototypes have no out-of-sample map (beta = 0), align with T'K_Y T, and start from
# spectral clustering.
PAPER_REDUCTION: dict[str, Any] = {**PAPER_ALGORITHM, "beta": 0.0, "dependence": "cka:transport", "init": "spectral"}


def _paper_embedding(n_components: int, seed: int) -> SDR:
    return SDR.paper(n_components, perplexity=20.0, random_state=seed, **PAPER_ALGORITHM)


def _seeded(estimator: Callable[..., Any], **options: Any) -> Maker:
    return lambda seed: estimator(random_state=seed, **options)


def _deep(name: str, **options: Any) -> Maker:
    """A maker of one of the paper's baselines, whose module, with torch, is imported when the first is made."""
    return lambda seed: getattr(paper_baselines, name)(random_state=seed, **options)


# Ours: with default parameters, and the variants that the tables show next to it.
add_predictor("SDR-GP", regression=_seeded(SDRGPRegressor), classification=_seeded(SDRGPClassifier))
add_predictor("SDR-GP, embedding alone", regression=_seeded(SDRGPRegressor, residual=False))
add_predictor(
    "SDR-GP, paper's recipe", regression=_seeded(SDRGPRegressor.paper), classification=_seeded(SDRGPClassifier.paper)
)
_add_embedding_gp("SDR-GP, paper's algorithm", _paper_embedding)
# SDR has its own GP rows above, so its embeddings do not get the common GP.
add_embedding("SDR", lambda p, seed: SDR.paper(p, perplexity=20.0, random_state=seed), with_gp=False)
add_embedding("SDR, defaults", lambda p, seed: SDR(p, random_state=seed), with_gp=False)
add_embedding("SDR, paper's algorithm", _paper_embedding, with_gp=False)
add_embedding("NCA", lambda p, seed: baselines.NCA(p, random_state=seed))
add_embedding("KSPCA", lambda p, seed: baselines.KernelSupervisedPCA(p))
add_embedding("UMAP", lambda p, seed: paper_baselines.SupervisedUMAP(p, random_state=seed))
add_embedding("PCA", lambda p, seed: baselines.PCA(p, random_state=seed))
# The planes of the experiment `picture`, which sets m = n/10 and the components of LDA for its samples.
add_embedding("SDR, m = n", lambda p, seed: SDR(p, random_state=seed), with_gp=False)
add_embedding("SDR, m = n/10", lambda p, seed: SDR(p, random_state=seed), with_gp=False)
add_embedding("PLS", lambda p, seed: PLSRegression(p), with_gp=False)
add_embedding("LDA", lambda p, seed: LinearDiscriminantAnalysis(n_components=p), with_gp=False)
add_embedding(
    "UMAP, 15 neighbours",
    lambda p, seed: paper_baselines.SupervisedUMAP(p, n_neighbors=15, random_state=seed),
    with_gp=False,
)
add_embedding("all features", lambda p, seed: FunctionTransformer(), with_gp=False)
# Deep baselines. The networks of DKL have convolutions, so they see pixels.
add_predictor("DKL", regression=_deep("DKLRegressor"), classification=_deep("DKLClassifier"), images=True)
add_predictor(
    "DKL-pretrained",
    regression=_deep("DKLRegressor", pretrained=True),
    classification=_deep("DKLClassifier", pretrained=True),
    images=True,
)
add_predictor("DGP", regression=_deep("DeepGPRegressor"))
add_predictor("ARD GP", regression=lambda seed: GPRegressor(), classification=_seeded(GPClassifier))
add_predictor(
    "linear",
    regression=lambda seed: paper_baselines.LinearBaseline(task="regression"),
    classification=lambda seed: paper_baselines.LinearBaseline(task="classification"),
)
# What practitioners use; the last two need their libraries and are rows only where they are asked for.
add_predictor(
    "random forest",
    regression=lambda seed: baselines.ConstantSpread(ensemble.RandomForestRegressor(random_state=seed)),
    classification=_seeded(ensemble.RandomForestClassifier),
)
add_predictor(
    "boosted trees",
    regression=lambda seed: baselines.ConstantSpread(ensemble.HistGradientBoostingRegressor(random_state=seed)),
    classification=_seeded(ensemble.HistGradientBoostingClassifier),
)
add_predictor(
    "SVC, Platt",
    classification=lambda seed: make_pipeline(
        StandardScaler(), CalibratedClassifierCV(SVC(random_state=seed), ensemble=False)
    ),
)
add_predictor("CatBoost", regression=familiar.CatBoostNumbers, classification=familiar.CatBoostClasses)
add_predictor("NGBoost", regression=familiar.NGBoostNumbers)


def _add_reduction_class(name: str, estimator: Callable[..., Any], **options: Any) -> None:
    add_reduction(name, lambda m, xi, seed: estimator(n_prototypes=m, perplexity=xi, random_state=seed, **options))


# "SDR" has the paper's constants. "FGW-only" has no dependence term: supervision acts through the coupling alone.
_add_reduction_class("SDR", SDR.paper)
_add_reduction_class("SDR, defaults", SDR)
_add_reduction_class("SDR, eta=n", SDR.paper, eta=10_000.0)  # of the 10,000 images of Fashion-MNIST
_add_reduction_class("SDR, paper's algorithm", SDR.paper, **PAPER_REDUCTION)
_add_reduction_class("FGW-only", SDR.paper, eta=0.0)
_add_reduction_class("DistR", DistR)
_add_reduction_class("Cluster-then-DR", paper_baselines.ClusterThenReduce)
_add_reduction_class("DR-then-Cluster", EmbedOnce)

# From here on, plugins cannot replace a method of the package.
_RESERVED.update((kind, name) for kind, registry in _REGISTRIES.items() for name in registry)
