"""What left-out samples say on the page, against plain loops over their places."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from distreduce.report.evidence import describe_optimism, encode_quality, find_evidence


def test_class_shares_are_those_of_the_evidence(classes, labels):
    found = find_evidence(classes, labels, np.array([3, 0]), 0, "species")
    expected = classes.prototype_evidence_.loc[[3, 0], classes.target_names_]
    np.testing.assert_array_equal(found.shares, expected)


def test_bins_are_those_of_the_nearest_left_out_samples(numbers, lengths):
    used = np.flatnonzero(numbers.prototype_weights_)
    distances = pairwise_distances(numbers.embedding_left_out_, numbers.prototypes_[used])
    edges = np.linspace(lengths.min(), lengths.max(), 13)
    found = find_evidence(numbers, lengths, used, 0, "length")
    for place in range(len(used)):
        own = np.flatnonzero(distances.argmin(axis=1) == place)
        own = own if len(own) >= 19 else np.argsort(distances[:, place])[:19]
        np.testing.assert_allclose(found.shares[place], np.histogram(lengths[own], edges)[0] / len(own))


def test_mean_and_range_are_those_of_the_evidence(numbers, lengths):
    found = find_evidence(numbers, lengths, np.arange(12), 0, "length")
    table = numbers.prototype_evidence_
    name = numbers.target_names_[0].removeprefix("mean ")
    for part, column in ((found.mean, f"mean {name}"), (found.low, f"5 % {name}"), (found.high, f"95 % {name}")):
        np.testing.assert_array_equal(part, table[column])


def test_an_infinite_quality_is_left_empty(classes):
    before = classes.prototype_evidence_
    try:
        classes.prototype_evidence_ = before.assign(separation=np.inf)
        assert set(encode_quality(classes, np.arange(12))["separation"]) == {None}
    finally:
        classes.prototype_evidence_ = before


class Scored:
    """What the sentence about a picture is made from."""

    prototype_weights_ = np.array([0.6, 0.4])
    prototype_targets_ = np.eye(2)
    eta, eta_ = "auto", 5.0

    def __init__(self, fitted, left_out, every, **more):
        self.neighbor_scores_ = {"fitted": fitted, "left_out": left_out, "all_features": every}
        vars(self).update(more)


CLASSES = {"classes_": ["a", "b"]}


@pytest.mark.parametrize(
    ("model", "words", "warns"),
    [
        (Scored(0.9, 0.88, 0.85), "What you see holds for new samples", False),
        (Scored(0.9, 0.5, 0.85), "The fitted places promise more than new samples hold", True),
        (Scored(0.55, 0.5, 0.85), "What you see holds for new samples, but the features know more", False),
        (Scored(0.9, -0.1, 0.0), "The map says next to nothing about the target of new samples", True),
        (
            Scored(0.7, 0.61, 0.61, **CLASSES),
            "On the map, new samples are mostly next to the most frequent class",
            True,
        ),
        (
            Scored(0.7, 0.5, 0.61, **CLASSES),
            "On the map, neighbours tell the class of new samples worse than guessing",
            True,
        ),
        (Scored(0.9, 0.09, 0.1), "The map says little about the target of new samples", True),
        (Scored(0.3, 0.2, 0.2), "What you see holds for new samples", False),
        (
            Scored(0.7, 0.63, 0.66, **CLASSES),
            "The map predicts new samples little better than their most frequent class does",
            True,
        ),
        (Scored(0.7, 0.66, 0.66, **CLASSES), "What you see holds for new samples", False),
        (
            Scored(0.1, 0.0, 0.0, eta_=0.0),
            "Left-out samples show nothing about the target, so the map was drawn without it",
            True,
        ),
    ],
)
def test_the_verdict_on_a_picture(model, words, warns):
    found = describe_optimism(model)
    assert (found.verdict, found.warns) == (words, warns)
    assert "drawn without" not in words or "has seen the targets" not in found.sentence


def test_of_groups_the_verdict_is_careful():
    found = describe_optimism(Scored(0.9, 0.9, 0.9), "of the same clinic")
    assert found.verdict == "What you see holds for new samples of the same clinic" and found.warns
    assert found.sentence.endswith("For others, look at the held-out scores.")


def test_the_sentence_holds_the_three_scores():
    found = describe_optimism(Scored(0.9, -0.104, 0.3))
    assert [text for _, _, text, _ in found.scores] == ["−0.10", "0.30", "0.90"]
    assert all(text in found.sentence for _, _, text, _ in found.scores) and "R² −0.10" in found.sentence


@pytest.mark.parametrize(
    ("more", "words"),
    [(CLASSES, "always guessing the most frequent class, with 0.60."), ({}, "always guessing the mean, with 0.00.")],
)
def test_the_sentence_says_what_guessing_reaches(more, words):
    """Accuracy 0.83 on the map looked good where 0.80 of the samples are of one class."""
    found = describe_optimism(Scored(0.7, 0.68, 0.66, **more))
    assert words in found.sentence
    assert ("0.60" in [text for _, _, text, _ in found.scores]) == bool(more)


def test_without_scores_there_is_no_verdict(unsupervised):
    assert describe_optimism(unsupervised) is None
    assert describe_optimism(Scored(0.9, np.nan, 0.3)) is None


def test_a_purity_of_classes_stands_with_its_interval(classes):
    found = encode_quality(classes, np.arange(12))
    low, purity, high = (np.array(found[name]) for name in ("purity low", "purity", "purity high"))
    assert ((low <= purity) & (purity <= high) & (low < high)).all()
