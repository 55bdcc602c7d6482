"""The first sentence of the page: what the features say about the target, against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error, r2_score

from distreduce.metrics.held_out import gain_interval, r2_interval
from distreduce.report import HeldOut, HeldOutClasses
from distreduce.report.held_out import describe_headline
from distreduce.report.predictions import describe_predictions

NAMES = np.array(["a", "b"])


def predict(y, error, rng):
    return HeldOut(y, y + error * rng.normal(size=len(y)), np.ones(len(y)))


def nothing(y):
    return HeldOut(y, np.full(len(y), 0.1), np.ones(len(y)))


@pytest.mark.parametrize(
    ("error", "words", "warns"),
    [(0.3, "say a lot about price", False), (0.7, "say something", False),
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
    assert found.sentence.split("(R²")[0] == repeated.sentence.split("(R²")[0].replace(f"{len(again)} held", "200 held")


def test_a_small_gain_that_many_rows_show_is_little(rng):
    y = rng.normal(size=4000)
    weak = HeldOut(y, 0.04 * y + 0.05 * rng.normal(size=4000), np.ones(4000))
    assert describe_headline({"GP": weak}, ["price"]).verdict == "The features say little about price"


def test_rows_that_cannot_tell_are_not_called_nothing():
    y = np.tile([1.0, -1.0], 20)
    weak = HeldOut(y, np.where(np.arange(40) < 28, 0.4, -0.4) * y, np.ones(40))
    found = describe_headline({"GP": weak}, ["price"])
    assert found.verdict == "Too few held-out rows to tell whether the features say anything about price"
    assert "may be better than no model by chance: it predicts" in found.sentence and found.warns


def test_a_few_rows_that_are_far_off_do_not_hide_what_the_others_say(rng):
    """Two of 200 houses at four times their price: "too few rows to tell", where new rows have R² 0.91."""
    y = np.exp(0.4 * rng.normal(size=200))
    mean = y * np.exp(0.1 * rng.normal(size=200))
    mean[:2] += 3.0 * y.max()
    found = describe_headline({"GP": HeldOut(y, mean, np.ones(200)), "no model": nothing(y)}, ["price"])
    assert found.verdict == "The features say something about price, but a few rows are far off" and found.warns
    assert "Half of its squared error comes from 2 rows." in found.sentence and "GP predicts 200" in found.sentence


def test_the_median_of_skewed_targets_says_nothing(rng):
    """Its absolute error is less than that of the mean, which no feature has earned."""
    y = np.exp(2.0 * rng.normal(size=300))
    median = describe_headline(
        {"GP": HeldOut(y, np.full(300, np.median(y)), np.ones(300)), "no model": nothing(y)}, ["price"]
    )
    assert "far off" not in median.verdict


def test_words_follow_the_lower_end_and_visits_of_ten_patients_are_ten(rng):
    """R² of about 0.75 of 80 visits was called "a lot", though errors are those of ten patients."""
    patient = np.repeat(np.arange(10), 8)
    y, error = rng.normal(size=80), 0.5 * rng.normal(size=10)[patient]
    by_row = HeldOut(y, y + error, np.ones(80))
    rows, groups = (describe_headline({"GP": each}, ["y"]) for each in (by_row, replace(by_row, groups=patient)))
    assert rows.verdict == "The features say a lot about y" and not rows.warns
    assert groups.verdict == "The features say at least something about y, and perhaps a lot"
    low, high = gain_interval(error**2, (y - y.mean()) ** 2, None, patient)
    assert groups.sentence.replace("\N{NO-BREAK SPACE}", "").endswith(f"(95 % interval {low:.0%} to {high:.0%}).")
    low, high = r2_interval(y, y + error, None, patient)
    assert f", 95 % interval {low:.2f} to {high:.2f} by 10 independent groups)" in groups.sentence


def test_the_sentence_has_the_numbers_of_scikit_learn(rng):
    y = 1e4 * rng.normal(size=100)
    ours = HeldOut(y, y + 2e3 * rng.normal(size=100), np.ones(100))
    found = describe_headline({"GP": ours, "no model": nothing(y)}, ["price"])
    errors = [f"{mean_squared_error(y, mean) ** 0.5:,.0f}" for mean in (ours.mean, np.full(100, 0.1))]
    assert f"error (RMSE) of {errors[0]}, against {errors[1]} if every row gets the mean" in found.sentence
    assert f"(R² {r2_score(y, ours.mean):.2f}, 95 % interval 0.9" in found.sentence


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
        "accuracy 1.00 (95 % interval 0.96 to 1.00), against 0.75" in found.sentence
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
    assert found.verdict.endswith("a lot about y") and "(R² 0.99, 95 % interval 0.99 to 0.99)" in found.sentence


@pytest.mark.parametrize("y", [np.zeros(1), np.zeros(5)], ids=["one row", "constant"])
def test_rows_that_say_nothing_are_no_error(y):
    assert describe_headline({"GP": HeldOut(y, y, np.ones(len(y)))}, []).warns
