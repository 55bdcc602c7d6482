"""The methods that experiments compare, by name. A new one is one call of `add_predictor` and the like, in any file.

A *predictor* has ``fit``, and ``predict(X, return_std=True)`` or ``predict_proba``; an *embedding* has ``fit(X, y)``
and ``transform``; a *reduction* has the fitted names of :class:`distreduce.DistR`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, baselines
from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPClassifier, GPRegressor
from distreduce_paper._embedded_once import EmbeddedOnce
from distreduce_paper.experiment import Kind

Maker = Callable[[int], Any]  # from a seed to an unfitted estimator
EmbeddingMaker = Callable[[int, int], Any]  # from the number of components and a seed
ReductionMaker = Callable[[int, float, int], Any]  # from the number of prototypes, the perplexity and a seed


@dataclass(frozen=True)
class Predictor:
    """How to make a model for either task; None where the method has none. `images`: it reads images, not features."""

    regression: Maker | None = None
    classification: Maker | None = None
    images: bool = False


PREDICTORS: dict[str, Predictor] = {}
EMBEDDINGS: dict[str, EmbeddingMaker] = {}
REDUCTIONS: dict[str, ReductionMaker] = {}
_OURS: set[tuple[Kind, str]] = set()  # filled at the end of this file


def add_predictor(
    name: str, *, regression: Maker | None = None, classification: Maker | None = None, images: bool = False
) -> None:
    """Register a model that predicts with uncertainty, for Tables 1 and 2 and what is made of them."""
    _check_name("predictor", name)
    PREDICTORS[name] = Predictor(regression, classification, images)


def add_embedding(name: str, make: EmbeddingMaker, *, with_gp: bool = True) -> None:
    """Register a supervised embedding, for the k-NN and KRR tables; and as "NAME-GP", with the paper's GP on it.

    That GP takes 20 Adam steps on two components for regression, and 50 on ten components for classification.
    """
    _check_name("embedding", name)
    EMBEDDINGS[name] = make
    if with_gp:
        add_predictor(
            f"{name}-GP",
            regression=lambda seed: baselines.EmbeddingGP(
                make(2, seed), GPRegressor(gp_optimizer="adam"), task="regression"
            ),
            classification=lambda seed: baselines.EmbeddingGP(
                make(10, seed), GPClassifier(gp_optimizer="adam", random_state=seed), task="classification"
            ),
        )


def add_reduction(name: str, make: ReductionMaker) -> None:
    """Register a reduction to prototypes, for Figures 2 and 3."""
    _check_name("reduction", name)
    REDUCTIONS[name] = make


def _check_name(kind: Kind, name: str) -> None:
    if (kind, name) in _OURS:
        raise InvalidInputError(f"The package has a {kind} {name!r} of its own; choose another name for yours.")


def registry(kind: Kind) -> dict[str, Any]:
    """All registered methods of a kind."""
    registries: dict[str, dict[str, Any]] = {
        "predictor": PREDICTORS,
        "embedding": EMBEDDINGS,
        "reduction": REDUCTIONS,
    }
    return registries[kind]


# The paper's algorithm: Z by Adam (at most 1000 steps of 0.001), L in closed form, Z relaxed towards the map, T by the
# transport solver, stopped when the objective rises.
PAPER_ALGORITHM: dict[str, Any] = {"solver": "alternating", "optimizer": "adam", "max_inner_iter": 1000}
# Reductions to prototypes have no out-of-sample map in the paper (beta 0), its own form of the targets, and start from
# spectral clustering.
PAPER_REDUCTION: dict[str, Any] = {**PAPER_ALGORITHM, "beta": 0.0, "dependence": "cka:transport", "init": "spectral"}


def _paper_embedding(n_components: int, seed: int, **options: Any) -> SDR:
    return SDR(n_components, perplexity=20.0, random_state=seed, **PAPER_ALGORITHM, **options)


add_predictor(
    "SDR-GP",
    regression=lambda seed: SDRGPRegressor(random_state=seed),
    classification=lambda seed: SDRGPClassifier(random_state=seed),
)
add_predictor("SDR-GP, embedding alone", regression=lambda seed: SDRGPRegressor(residual=False, random_state=seed))
add_predictor("SDR-GP, three dimensions", regression=lambda seed: SDRGPRegressor(3, random_state=seed))
add_predictor(
    "SDR-GP, paper's recipe",
    regression=lambda seed: SDRGPRegressor.paper(random_state=seed),
    classification=lambda seed: SDRGPClassifier.paper(random_state=seed),
)
add_predictor(
    "SDR-GP, paper's algorithm",
    regression=lambda seed: baselines.EmbeddingGP(
        _paper_embedding(2, seed), GPRegressor(gp_optimizer="adam"), task="regression"
    ),
    classification=lambda seed: baselines.EmbeddingGP(
        _paper_embedding(10, seed), GPClassifier(gp_optimizer="adam", random_state=seed), task="classification"
    ),
)
add_embedding("SDR", lambda p, seed: SDR(p, perplexity=20.0, random_state=seed), with_gp=False)
add_embedding("SDR, paper's algorithm", _paper_embedding, with_gp=False)
add_embedding("NCA", lambda p, seed: baselines.NCA(p, random_state=seed))
add_embedding("KSPCA", lambda p, seed: baselines.KernelSupervisedPCA(p))
add_embedding("UMAP", lambda p, seed: baselines.SupervisedUMAP(p, random_state=seed))
add_embedding("PCA", lambda p, seed: baselines.PCA(p, random_state=seed))
add_predictor(
    "DKL",
    regression=lambda seed: baselines.DKLRegressor(random_state=seed),
    classification=lambda seed: baselines.DKLClassifier(random_state=seed),
    images=True,
)
add_predictor(
    "DKL-pretrained",
    regression=lambda seed: baselines.DKLRegressor(pretrained=True, random_state=seed),
    classification=lambda seed: baselines.DKLClassifier(pretrained=True, random_state=seed),
    images=True,
)
add_predictor("DGP", regression=lambda seed: baselines.DeepGPRegressor(random_state=seed))
add_predictor(
    "ARD GP", regression=lambda seed: GPRegressor(), classification=lambda seed: GPClassifier(random_state=seed)
)
add_predictor(
    "linear",
    regression=lambda seed: baselines.LinearBaseline(task="regression"),
    classification=lambda seed: baselines.LinearBaseline(task="classification"),
)

add_reduction("SDR", lambda m, perplexity, seed: SDR(n_prototypes=m, perplexity=perplexity, random_state=seed))
add_reduction(
    "SDR, eta=auto",
    lambda m, perplexity, seed: SDR(n_prototypes=m, perplexity=perplexity, eta="auto", random_state=seed),
)
add_reduction(
    "SDR, paper's algorithm",
    lambda m, perplexity, seed: SDR(n_prototypes=m, perplexity=perplexity, random_state=seed, **PAPER_REDUCTION),
)
add_reduction(
    "FGW-only", lambda m, perplexity, seed: SDR(n_prototypes=m, perplexity=perplexity, eta=0.0, random_state=seed)
)
add_reduction("DistR", lambda m, perplexity, seed: DistR(n_prototypes=m, perplexity=perplexity, random_state=seed))
add_reduction(
    "Cluster-then-DR",
    lambda m, perplexity, seed: baselines.ClusterThenReduce(n_prototypes=m, perplexity=perplexity, random_state=seed),
)
add_reduction(
    "DR-then-Cluster",
    lambda m, perplexity, seed: EmbeddedOnce(n_prototypes=m, perplexity=perplexity, random_state=seed),
)

KINDS: tuple[Kind, ...] = ("predictor", "embedding", "reduction")
_OURS.update((kind, name) for kind in KINDS for name in registry(kind))
