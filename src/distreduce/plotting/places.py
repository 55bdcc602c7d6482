"""Two views of a fit: what holds for samples that it has not seen (left out), and what it made of its own (fitted)."""

from __future__ import annotations

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError

PLACES = ("left_out", "fitted")


def choose_places(model: BaseReduction, places: str) -> str:
    """Return the view that is drawn: "fitted" for a model without left-out places, such as DistR."""
    if places not in PLACES:
        raise InvalidInputError(f'places={places!r} must be "left_out" or "fitted".')
    return places if hasattr(model, "embedding_left_out_") else "fitted"


def sample_places(model: BaseReduction, places: str) -> Array:
    """Return where the training samples lie: as if each had not been in the fit, or as fitted."""
    left_out = choose_places(model, places) == "left_out"
    return model.embedding_left_out_ if left_out else model.embedding_


def prototype_means(model: BaseReduction, places: str) -> Array:
    """Return mean targets or class shares of the prototypes: those of the left-out samples nearby, or the fit's own."""
    if choose_places(model, places) == "left_out" and hasattr(model, "prototype_evidence_"):
        return model.prototype_evidence_[model.target_names_].to_numpy()
    return model.prototype_targets_
