"""The first sentence of the page: what the features say about the target, against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error, r2_score

from distreduce.report import HeldOut, HeldOutClasses
from distreduce.report.headline import describe_headline
from distreduce.report.predictions import describe_predictions

NAMES = np.array(["a", "b"])


def predict(y, error, rng):
    return HeldOut(y, y + error * rng.normal(size=len(y)), np.ones(len(y)))


def nothing(y):
    return HeldOut(y, np.full(len(y), 0.1), np.ones(len(y)))


@pytest.mark.parametrize(
    ("error", "words", "warns"),
    [(0.3, "say a lot about price", False), (0.8, "say something about price", False),
     (1.5, "say nothing about price that holds for new rows", True)],
)  # fmt: skip
def test_the_verdict_follows_the_gain_over_no_model(rng, error, words, warns):
    y = rng.normal(size=200)
    found = describe_headline({"GP": predict(y, error, rng), "no model": nothing(y)}, ["price"])
    assert words in found.verdict and found.warns == warns


def test_rows_count_by_their_weights(rng):
    """The headline of a weighted fit is that of the rows repeated; its certainty is not."""
    y, h = rng.normal(size=200), rng.integers(0, 4, 200)
    ours, again = predict(y, 0.5, rng), np.repeat(np.arange(200), h)
    found = describe_headline({"GP": replace(ours, sample_weight=h)}, ["price"])
    repeated = describe_headline(
        {"GP": HeldOut(*(np.asarray(p)[again] for p in (ours.y, ours.mean, ours.std)))}, ["price"]
    )
    assert found.scores == repeated.scores and found.verdict == repeated.verdict
    assert found.sentence == repeated.sentence.replace(f"{len(again)} held-out", "200 held-out")


def test_a_small_gain_that_many_rows_show_is_little(rng):
    y = rng.normal(size=4000)
    weak = HeldOut(y, 0.04 * y + 0.05 * rng.normal(size=4000), np.ones(4000))
    assert describe_headline({"GP": weak}, ["price"]).verdict == "The features say little about price"


def test_a_gain_within_two_standard_errors_is_a_hint_not_nothing():
    y = np.tile([1.0, -1.0], 20)
    weak = HeldOut(y, np.where(np.arange(40) < 28, 0.4, -0.4) * y, np.ones(40))
    found = describe_headline({"GP": weak}, ["price"])
    assert found.verdict == "The features say little, if anything, about price" and found.warns
    assert "may be better than no model by chance: it predicts" in found.sentence


def test_the_sentence_has_the_numbers_of_scikit_learn(rng):
    y = 1e4 * rng.normal(size=100)
    ours = HeldOut(y, y + 2e3 * rng.normal(size=100), np.ones(100))
    found = describe_headline({"GP": ours, "no model": nothing(y)}, ["price"])
    errors = [f"{mean_squared_error(y, mean) ** 0.5:,.0f}" for mean in (ours.mean, np.full(100, 0.1))]
    assert f"error (RMSE) of {errors[0]}, against {errors[1]} if every row gets the mean" in found.sentence
    assert f"(R² {r2_score(y, ours.mean):.2f})" in found.sentence


def test_the_sentence_and_the_table_write_an_error_alike(rng):
    y = 1e3 * rng.normal(size=100)
    named = {"GP": HeldOut(y, y + 362.3, np.ones(100))}
    table = describe_predictions(named)
    assert "362.3" in describe_headline(named, ["mass"]).sentence
    assert table.scores[0][table.headings.index("RMSE")] == "362.3"


def test_classes_are_compared_with_their_shares():
    y = NAMES[[0, 0, 0, 1] * 25]
    sure = HeldOutClasses(y, np.where((y == "a")[:, None], [0.8, 0.2], [0.2, 0.8]), NAMES)
    found = describe_headline(
        {"GP": sure, "no model": HeldOutClasses(y, np.tile([0.75, 0.25], (100, 1)), NAMES)}, ["t"]
    )
    assert (
        "accuracy 1.00, against 0.75" in found.sentence
        and "(Brier score, 0 to 2), is 0.08, against 0.38" in found.sentence
    )
    assert found.verdict == "The features say a lot about t" and [row[2] for row in found.scores] == ["1.00", "0.75"]


def test_without_a_model_called_no_model_the_held_out_mean_is_one(rng):
    y = rng.normal(size=50)
    ours = predict(y, 0.1, rng)
    mean = HeldOut(y, np.full(50, y.mean()), np.ones(50))
    alone, both = (describe_headline(named, ["y"]) for named in ({"GP": ours}, {"GP": ours, "no model": mean}))
    assert alone.verdict == both.verdict and alone.sentence.split("rows with")[1] == both.sentence.split("rows with")[1]


def test_numbers_beyond_the_square_root_of_the_largest_are_compared(rng):
    y = 1e200 * rng.normal(size=50)
    found = describe_headline({"GP": HeldOut(y, 0.9 * y, np.ones(50)), "no model": nothing(y)}, ["y"])
    assert found.verdict.endswith("a lot about y") and "(R² 0.99)" in found.sentence


@pytest.mark.parametrize("y", [np.zeros(1), np.zeros(5)], ids=["one row", "constant"])
def test_rows_that_say_nothing_are_no_error(y):
    assert describe_headline({"GP": HeldOut(y, y, np.ones(len(y)))}, []).warns
