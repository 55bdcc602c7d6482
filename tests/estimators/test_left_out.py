"""What a fit says of left-out samples: places, scores, evidence and warnings, and that it is true of new samples."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

from distreduce import SDR, cross_val_embedding
from distreduce.estimators import _setup
from distreduce.estimators._auto import MapChoice
from distreduce.estimators._evidence import prototype_evidence
from distreduce.estimators._expected import targets_without_folds
from distreduce.estimators._targets import read_targets
from distreduce.exceptions import DataWarning, InvalidInputError, NoSignalWarning, OptimisticPictureWarning
from distreduce.kernels import RBF
from distreduce.losses import keep_in_range
from distreduce.mapping import KernelMap, Predictions
from distreduce.mapping.folds import Folds
from distreduce.persistence import load
from distreduce.sharding.sample import Sample

SIZES = pytest.mark.parametrize("n_prototypes", [None, 30])


def noisy_numbers(n: int = 900) -> Any:
    return make_friedman1(n, n_features=8, noise=3.0, random_state=0)


@SIZES
def test_the_displayed_score_is_that_of_new_samples(n_prototypes: Any) -> None:
    X, y = noisy_numbers()
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X[:400], y[:400])
    planes = {"left_out": (model.embedding_, model.transform(X[400:])), "all_features": (X[:400], X[400:])}
    held_out = {name: KNeighborsRegressor(10).fit(Z, y[:400]).score(new, y[400:]) for name, (Z, new) in planes.items()}
    gaps = {name: model.neighbor_scores_[name] - held_out[name] for name in held_out}
    # All features are a control: nothing was learned there, and the same samples are easy or hard.
    assert gaps["left_out"] == pytest.approx(gaps["all_features"], abs=0.12)


def test_the_map_does_not_follow_the_steps_between_few_prototypes() -> None:
    X = np.random.default_rng(3).normal(size=(1150, 5))
    y = X @ [2.0, 1.0, 1.0, 0.5, 0.5] + 0.5 * np.sin(2.0 * X[:, 0])
    raised, kept = (
        SDR(n_prototypes=12, map_reg=map_reg, random_state=0).fit(X[:150], y[:150]) for map_reg in ("auto", 1e-4)
    )
    assert raised.map_reg_ > kept.map_reg_  # the targets have no noise: their own ridge is the least
    score, steps = (
        KNeighborsRegressor(10).fit(model.embedding_, y[:150]).score(model.transform(X[150:]), y[150:])
        for model in (raised, kept)
    )
    assert score > steps + 0.04


def test_few_prototypes_do_not_show_left_out_samples_their_own_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_friedman1(350, noise=5.0, random_state=0)
    honest = SDR(n_prototypes=35, embedding_kernel="rq", random_state=0).fit(X, y)
    # Without this, the coupling of the others knows predictions that have seen the left-out fold.
    monkeypatch.setattr(_setup, "targets_without_folds", lambda *_, **__: (None, None))
    leaking = SDR(n_prototypes=35, embedding_kernel="rq", random_state=0).fit(X, y)
    assert_array_equal(honest.embedding_, leaking.embedding_)
    assert honest.neighbor_scores_["left_out"] < leaking.neighbor_scores_["left_out"] - 0.01


def test_what_coupling_and_map_see_without_a_fold_does_not_depend_on_it(rng: np.random.Generator) -> None:
    X, Y, fold = rng.normal(size=(60, 3)), np.eye(4)[rng.integers(4, size=60)], np.arange(60) % 5
    folds = Folds(np.arange(60), fold, np.ones(60), np.arange(60))
    map_ = KernelMap(RBF(1.0), X, Y)
    choice = MapChoice(RBF(1.0), 0.1, None, None, 0.5, True, predictions=Predictions(Y, map_))

    def see() -> Any:
        sample = Sample(X, np.ones(60), targets=Y, kernel_targets=Y)
        return targets_without_folds(choice, sample, folds, 1.0, shares=True, coupled=True)

    before = see()
    Y[fold == 2] = np.roll(Y[fold == 2], 1, axis=1)
    for one, other in zip(before, see(), strict=True):
        assert_array_equal(one[2], other[2])
        assert not np.array_equal(one[1], other[1], equal_nan=True)
    assert np.isnan(before[0][2][fold == 2]).all() and not np.isnan(before[1][2]).any()


@SIZES
def test_ranges_of_prototypes_hold_new_targets(n_prototypes: Any) -> None:
    shares = []
    for seed in (1, 2):  # the share of one fit scatters by 0.02
        X, y = make_friedman1(2400, noise=3.0, random_state=seed)
        model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X[:400], y[:400])
        used = np.flatnonzero(model.prototype_weights_)
        near = used[cdist(model.transform(X[400:]), model.prototypes_[used]).argmin(axis=1)]
        evidence = model.prototype_evidence_.iloc[near]
        shares.append(np.mean((y[400:] >= evidence["5 % y0"]) & (y[400:] <= evidence["95 % y0"])))
    assert 0.87 <= np.mean(shares) <= 0.93


def test_left_out_places_are_near_those_of_refits() -> None:
    X, y = noisy_numbers(300)
    model = SDR(random_state=0).fit(X, y)
    refitted = cross_val_embedding(model, X, y, cv=5)
    spread = np.sqrt(((model.embedding_left_out_ - model.embedding_left_out_.mean(axis=0)) ** 2).sum(axis=1).mean())
    apart = np.sqrt(((refitted - model.embedding_left_out_) ** 2).sum(axis=1).mean())
    assert apart < 0.6 * spread  # the samples of a fold all move a little; places at random are 1.4 apart


def test_left_out_places_and_refits_show_where_new_samples_lie() -> None:
    """Without a fold, ten classes lie elsewhere in its picture; no rotation takes each to its prototypes."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))
    train, new = rows[:300], rows[300:900]
    model = SDR(n_prototypes=30, random_state=0).fit(X[train], y[train])
    used = np.flatnonzero(model.prototype_weights_)
    classes = model.prototype_targets_[used].argmax(axis=1)

    def accuracy(places: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(classes[cdist(places, model.prototypes_[used]).argmin(axis=1)] == labels))

    expected = accuracy(model.transform(X[new]), y[new])
    assert accuracy(model.embedding_left_out_, y[train]) == pytest.approx(expected, abs=0.04)
    assert accuracy(cross_val_embedding(model, X[train], y[train], cv=3), y[train]) == pytest.approx(expected, abs=0.06)


def test_refits_leave_whole_groups_out() -> None:
    X, y = noisy_numbers(60)
    groups = np.arange(60) // 3
    model = SDR(n_prototypes=5, random_state=0).fit(X, y, groups=groups)
    folds = list(GroupKFold(4, shuffle=True, random_state=0).split(X, y, groups))
    expected = cross_val_embedding(model, X, y, folds, groups)  # pairs of rows
    assert_array_equal(cross_val_embedding(model, X, y, 4, groups), expected)


@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize("classes", [0, 3])
@SIZES
def test_noise_is_said_to_be_noise(n_prototypes: Any, classes: int, n: int) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, 10)), rng.integers(classes, size=n) if classes else rng.normal(size=n)
    with pytest.warns(NoSignalWarning, match="geometry of X alone"):
        model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y)
    chance = np.bincount(y).max() / n + 0.1 if classes else 0.0
    assert model.eta_ == 0 and model.neighbor_scores_["left_out"] < chance


def test_noise_that_is_used_nevertheless_is_not_said_to_be_left_out(rng: np.random.Generator) -> None:
    with pytest.warns(NoSignalWarning, match=r"their mean does, but eta=1000\.0 uses y nevertheless"):
        SDR(n_prototypes=6, eta=1000.0, random_state=0).fit(rng.normal(size=(60, 4)), rng.integers(2, size=60))


def test_a_picture_that_knows_y_by_heart_is_called_so() -> None:
    X, y = make_friedman1(150, noise=8.0, random_state=0)
    with pytest.warns(OptimisticPictureWarning, match="as fitted and"):
        SDR.paper(random_state=0).fit(X, y)


def test_the_default_plane_is_as_good_as_all_features_on_noisy_labels() -> None:
    X, y = make_classification(
        900, 10, n_informative=4, n_redundant=2, n_classes=3, flip_y=0.3, shift=None, random_state=0
    )
    model = SDR(random_state=0).fit(X[:500], y[:500])
    score = KNeighborsClassifier(10).fit(model.embedding_, y[:500]).score(model.transform(X[500:]), y[500:])
    assert score >= KNeighborsClassifier(10).fit(X[:500], y[:500]).score(X[500:], y[500:])


def test_evidence_counts_the_nearest_left_out_samples() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = SDR(n_prototypes=12, random_state=0).fit(scale(X), y)
    used = np.flatnonzero(model.prototype_weights_)
    near = used[cdist(model.embedding_left_out_, model.prototypes_[used]).argmin(axis=1)]
    evidence = model.prototype_evidence_
    assert_array_equal(evidence["n_samples"], np.bincount(near, minlength=12))
    for k in np.flatnonzero(evidence["n_samples"] >= 19):
        assert evidence["share of 1"][k] == pytest.approx(y[near == k].mean())
    assert_allclose(evidence["share of 0"] + evidence["share of 1"], 1.0)


def test_order_and_copies_do_not_matter() -> None:
    X, y = noisy_numbers(120)
    model = SDR(random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(120)
    assert_array_equal(
        SDR(random_state=0).fit(X[order], y[order]).embedding_left_out_, model.embedding_left_out_[order]
    )
    weights = np.where(np.arange(120) < 10, 2.0, 1.0)
    rows = np.r_[:120, :10]
    twice = SDR(random_state=0).fit(X[rows], y[rows]).embedding_left_out_
    assert_array_equal(twice[:120], SDR(random_state=0).fit(X, y, sample_weight=weights).embedding_left_out_)


def test_shards_choose_and_leave_out_too() -> None:
    X, y = make_classification(3500, 10, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
    model = SDR(n_prototypes=40, affinity="sparse", max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:1500], y[:1500])
    held_out = KNeighborsClassifier(10).fit(model.embedding_, y[:1500]).score(model.transform(X[1500:]), y[1500:])
    assert model.neighbor_scores_["left_out"] == pytest.approx(held_out, abs=0.03)
    assert not np.array_equal(model.embedding_left_out_, model.embedding_)


def test_on_shards_a_plane_keeps_more_classes_than_it_has_room_for() -> None:
    """Ten classes of ten Gaussians each: without predictions new samples were right in 0.79 of cases."""
    rng = np.random.default_rng(0)
    group = rng.integers(100, size=5000)
    X, y = rng.normal(size=(100, 30))[group] + 0.8 * rng.normal(size=(5000, 30)), group % 10
    model = SDR(n_prototypes=60, affinity="sparse", max_iter=3, tol=1e-3, random_state=0).fit(X[:3000], y[:3000])
    assert model.map_.predictions is not None
    held_out = KNeighborsClassifier(10).fit(model.embedding_, y[:3000]).score(model.transform(X[3000:]), y[3000:])
    assert held_out > 0.93
    # Samples that taught the predictions are displayed no better than new ones.
    assert 0.9 < model.neighbor_scores_["left_out"] < held_out + 0.01


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
def test_prototypes_do_not_gather_samples_whose_noise_is_alike(affinity: str) -> None:
    rng = np.random.default_rng(0)
    X, clean = make_classification(2000, 6, n_informative=3, n_redundant=0, class_sep=2.0, flip_y=0.0, random_state=0)
    y = np.where(rng.random(2000) < 0.3, 1 - clean, clean)
    model = SDR(n_prototypes=30, affinity=affinity, random_state=0).fit(X[:1000], y[:1000])
    used = np.flatnonzero(model.prototype_weights_ > 0)
    places = model.transform(X[1000:])
    nearest = used[cdist(places, model.prototypes_[used]).argmin(axis=1)]
    assert np.mean(model.prototype_targets_[nearest].argmax(axis=1) == clean[1000:]) > 0.85  # the defect: 0.2 to 0.4


def test_unknown_targets_are_placed_and_not_evidence() -> None:
    X, y = noisy_numbers(200)
    y = np.where(np.arange(200) % 2, y, np.nan)
    model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    assert np.isfinite(model.embedding_left_out_).all()
    assert model.prototype_evidence_["n_samples"].sum() == 100


def test_paper_has_the_constants_of_the_paper() -> None:
    model = SDR.paper(3, n_prototypes=5, eta=7.0)
    assert (model.n_components, model.n_prototypes) == (3, 5)
    assert (model.eta, model.map_reg, model.length_scale) == (7.0, 1e-2, "median")


def test_the_fewest_prototypes_that_are_not_clearly_worse_are_kept(tmp_path: Path) -> None:
    X, y = noisy_numbers(200)
    model = SDR(n_prototypes="auto", random_state=0).fit(X, y)
    table = model.prototype_choice_
    best = table["error"].idxmin()
    within = table["error"] <= table["error"][best] + table["standard_error"][best]
    assert table["n_prototypes"].tolist() == [4, 8, 16, 32]
    assert table["chosen"].idxmax() == within.idxmax() and table["chosen"].sum() == 1
    chosen = int(table["n_prototypes"][table["chosen"]].iloc[0])
    assert_array_equal(model.prototypes_, SDR(n_prototypes=chosen, random_state=0).fit(X, y).prototypes_)
    model.save(tmp_path / "chosen.safetensors")
    assert_frame_equal(load(tmp_path / "chosen.safetensors").prototype_choice_, table)
    model.set_params(n_prototypes=4).fit(X, y)
    assert not hasattr(model, "prototype_choice_")  # of an earlier fit


@pytest.mark.parametrize("unknown", [0, 10])
def test_the_number_of_prototypes_is_that_of_weights_and_of_copies(unknown: int) -> None:
    """A copy next to a sample would tell its target, and two copies are not two errors."""
    X, y = noisy_numbers(90)
    y[:unknown] = np.nan
    twice = np.repeat(np.arange(90), 2)
    tables = [
        SDR(n_prototypes="auto", random_state=0).fit(X[rows], y[rows], sample_weight=weights).prototype_choice_
        for rows, weights in ((np.arange(90), np.full(90, 2.0)), (twice, None))
    ]
    assert tables[0]["n_prototypes"].tolist() == [4, 8, 16]
    assert_frame_equal(*tables, rtol=1e-9)


def test_metric_and_ridge_are_chosen_once_for_all_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    choose = _setup.choose
    monkeypatch.setattr(_setup, "choose", lambda *args: calls.append(args) or choose(*args))
    SDR(n_prototypes="auto", random_state=0).fit(*noisy_numbers(60))
    assert len(calls) == 1


def test_numbers_that_sum_to_one_are_not_taken_for_class_shares() -> None:
    Y = np.array([[0.2, 0.8], [0.9, 0.1]])
    expected = np.array([[0.3, 0.3], [0.5, 0.2]])
    assert_array_equal(keep_in_range(expected, Y, shares=False), expected)
    assert_allclose(keep_in_range(expected, Y, shares=True).sum(axis=1), 1.0)


def test_too_few_samples_to_choose_a_number() -> None:
    X, y = noisy_numbers(19)
    with pytest.raises(InvalidInputError, match="at least 20 samples; got 19"):
        SDR(n_prototypes="auto").fit(X, y)


def test_known_targets_at_a_single_place_are_used_unjudged() -> None:
    """Nothing can be left out: all known samples have the same features."""
    X, y = noisy_numbers(40)
    X[:10] = X[0]
    model = SDR(n_prototypes=5, random_state=0).fit(X, np.where(np.arange(40) < 10, y, np.nan))
    assert model.eta_ == 40 and np.isfinite(model.embedding_left_out_).all()


# Groups.
def test_groups_go_through_pipelines_and_lists_of_texts(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    groups = ["a", "b", None, "c"] * 15  # a missing one is a group of its own, in lists as in pandas
    places = SDR(n_prototypes=6, random_state=0).fit(X, X[:, 0], groups=pd.Series(groups)).embedding_left_out_
    model = SDR(n_prototypes=6, random_state=0)
    model.fit_transform(X, X[:, 0], groups=[np.nan if group is None else group for group in groups])
    assert_array_equal(model.embedding_left_out_, places)


def test_groups_that_cannot_be_left_out_are_refused(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    y = np.where(np.arange(60) < 30, X[:, 0], np.nan)
    with pytest.raises(InvalidInputError, match="alone among samples with a target"):
        SDR(n_prototypes=6).fit(X, y, groups=np.arange(60) < 30)
    with pytest.raises(InvalidInputError, match="needs a dense affinity"):
        SDR(n_prototypes=6, affinity="sparse").fit(X, X[:, 0], groups=np.arange(60) % 5)


def test_targets_that_groups_have_by_chance_are_noise() -> None:
    """Eight groups that differ in X and by chance in y: counted by samples, five of these twenty showed a signal."""
    found, group = 0, np.repeat(np.arange(8), 8)
    for seed in range(20):
        rng = np.random.default_rng([19, 8, seed])
        X = rng.normal(size=(64, 5)) + 4 * rng.normal(size=(8, 5))[group]
        y = rng.normal(size=8)[group] + 0.1 * rng.normal(size=64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += SDR(n_prototypes=8, max_iter=1, random_state=0).fit(X, y, groups=group).eta_ > 0
    assert found <= 1


@pytest.mark.parametrize("sizes", [(70, 30), (60, 20, 20), (30, 30, 30, *[1] * 10)])
def test_groups_of_unequal_size_agree_on_a_signal(sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    """Sums over groups differ as their sizes do: a linear target with R² of 0.96 was called noise."""
    X = rng.normal(size=(100, 4))
    y = X[:, 0] + 0.2 * rng.normal(size=100)
    assert SDR(n_prototypes=8, random_state=0).fit(X, y, groups=np.repeat(range(len(sizes)), sizes)).eta_ > 0


@pytest.mark.parametrize("n_prototypes", [None, 6])
@pytest.mark.parametrize("classes", [False, True])
def test_repeated_measurements_are_not_copies(n_prototypes: Any, classes: bool) -> None:
    """Eight different x, which new samples have again: the displayed score is that of new samples."""
    rng = np.random.default_rng(0)
    site = rng.integers(8, size=4400)
    X = np.eye(8)[site]
    shares = rng.permutation(np.linspace(0.05, 0.95, 8))
    y = rng.random(4400) < shares[site] if classes else 4.0 * shares[site] + rng.normal(size=4400)
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X[:400], y[:400])  # NoSignalWarning would be an error
    means = [y[:400][site[:400] == k].mean() for k in range(8)]
    best = r2_score(y[400:], np.array(means)[site[400:]])
    if classes:
        best = float(np.mean(y[400:] == (np.array(means) > 0.5)[site[400:]]))
    assert model.neighbor_scores_["left_out"] == pytest.approx(best, abs=0.08)  # scatters by 0.03


def test_repeated_measurements_need_no_more_prototypes_than_different_x() -> None:
    """With one prototype for each (x, y), two lay at each place, and each told half of its samples."""
    rng = np.random.default_rng(0)
    site = rng.integers(8, size=400)
    y = rng.random(400) < np.linspace(0.05, 0.95, 8)[site]
    with pytest.warns(DataWarning, match="only 8 different rows of X"):
        model = SDR(n_prototypes=30, random_state=0).fit(np.eye(8)[site], y)
    used = model.prototype_weights_ > 0
    assert len(model.prototypes_) == 8
    apart = cdist(model.prototypes_[used], model.prototypes_[used]) + 9.0 * np.eye(used.sum())
    assert apart.min() > 0.01 and not model.prototype_evidence_["dubious"][used].any()


def test_weights_do_not_tell_the_targets_of_repeated_measurements() -> None:
    """Pure noise at 20 different x: a row of weight four that left in parts was told by the rest of itself."""
    rng = np.random.default_rng(0)
    X, y = np.eye(20)[rng.integers(20, size=300)], rng.integers(4, size=300)
    with pytest.warns(NoSignalWarning):
        model = SDR(n_prototypes=10, random_state=0).fit(X, y, sample_weight=rng.choice([1.0, 4.0], size=300))
    assert model.neighbor_scores_["left_out"] < 0.33


@pytest.mark.parametrize(("n_prototypes", "grouped"), [(30, False), (None, False), (None, True)])
def test_copies_with_noise_leave_together(n_prototypes, grouped) -> None:
    """A visitor's table: every row four times, with a little noise. The copies told the classes: 0.98 for 0.26.

    They do so too if each of the four is in a group of its own.
    """
    rng = np.random.default_rng(0)
    centres = 0.5 * rng.normal(size=(4, 6))
    y = rng.integers(4, size=1060)
    X = centres[y] + rng.normal(size=(1060, 6))
    rows = np.repeat(X[:60], 4, axis=0) + 1e-3 * rng.normal(size=(240, 6))
    groups = 4 * (np.arange(240) // 16) + np.arange(240) % 4 if grouped else None
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(rows, np.repeat(y[:60], 4), groups=groups)
    new = KNeighborsClassifier(10).fit(model.embedding_, np.repeat(y[:60], 4)).score(model.transform(X[60:]), y[60:])
    assert model.neighbor_scores_["left_out"] < new + 0.15


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_evidence_counts_weights_as_copies(task) -> None:
    rng = np.random.default_rng(0)
    places, prototypes = rng.normal(size=(90, 2)), rng.normal(size=(3, 2))
    weights, mass, y = rng.integers(1, 4, size=90), np.ones(3), rng.integers(4, size=90)
    copies = np.repeat(np.arange(90), weights)

    def describe(rows: Any, h: Any) -> Any:
        values = y[rows] if task == "classification" else y[rows] + 0.5 * rows
        targets = read_targets(values, len(rows), task, h)
        believed = np.zeros((3, targets.values.shape[1]))
        alone = {"units": np.arange(len(rows)), "copies": np.ones(len(rows), dtype=int)}
        return prototype_evidence(prototypes, mass, believed, places[rows], h, targets, **alone)

    weighted, repeated = describe(np.arange(90), weights.astype(float)), describe(copies, np.ones(len(copies)))
    columns = [name for name in weighted if name.startswith(("share", "mean", "sd")) or name == "purity"]
    assert weighted["n_samples"].min() >= 19 and len(columns) >= 3
    assert_allclose(weighted[columns], repeated[columns], rtol=1e-12)


@pytest.mark.parametrize("concentration", [0.5, 5.0, 100.0])
def test_intervals_of_purity_hold_the_share_of_new_samples(concentration) -> None:
    """Of 19 samples of six like classes, the most frequent class has 0.30 where new samples have 0.17."""
    rng = np.random.default_rng(0)
    shares, labels = rng.dirichlet(np.full(6, concentration), size=300), np.repeat(np.arange(300), 19)
    y = np.array([rng.choice(6, p=shares[label]) for label in labels])
    places = np.c_[labels, np.zeros(len(labels))].astype(float)
    ones, targets = np.ones(len(labels)), read_targets(y, len(labels), "classification", np.ones(len(labels)))
    alone = {"units": np.arange(len(labels)), "copies": np.ones(len(labels), dtype=int)}
    evidence = prototype_evidence(places[::19], ones[:300], np.eye(6)[y[::19]], places, ones, targets, **alone)
    truth = shares[np.arange(300), evidence[targets.column_names()].to_numpy().argmax(axis=1)]
    inside = (evidence["purity low"] <= truth) & (truth <= evidence["purity high"])
    assert inside.mean() >= 0.95 and (evidence["purity high"] - evidence["purity low"]).median() < 0.6


def test_a_tie_among_left_out_samples_does_not_contradict_the_fit() -> None:
    """The fit believes in class 0 everywhere; left-out samples show it in 10, 8 and 3 of 20, and in 80 of 200."""
    sizes, believed = [20, 20, 20, 200], [10, 8, 3, 80]
    y = np.concatenate([np.repeat([0, 1], [k, n - k]) for n, k in zip(sizes, believed, strict=True)])
    places = np.c_[np.repeat(np.arange(4.0), sizes), np.zeros(len(y))]
    ones = np.ones(len(y))
    targets = read_targets(y, len(y), "classification", ones)
    prototypes, belief = np.c_[np.arange(4.0), np.zeros(4)], np.tile([0.55, 0.45], (4, 1))
    alone = {"units": np.arange(len(y)), "copies": ones.astype(int)}
    evidence = prototype_evidence(prototypes, np.ones(4), belief, places, ones, targets, **alone)
    assert evidence["dubious"].tolist() == [False, False, True, True]


def test_a_small_class_is_judged_by_its_own_samples() -> None:
    """The 19 nearest samples held other classes: purity 0.63 where new samples had 1."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 12)
    X = 10 * rng.normal(size=(5, 6))[y] + rng.normal(size=(len(y), 6))
    evidence = SDR(n_prototypes=5, random_state=0).fit(X, y).prototype_evidence_
    assert (
        (evidence["purity"] == 1.0).all() and (evidence["purity high"] == 1.0).all() and not evidence["dubious"].any()
    )


@pytest.mark.parametrize("how", ["copies", "weights", "groups"])
def test_copies_make_evidence_no_surer(how) -> None:
    """Each row four times: ranges held 0.71 of new targets instead of 0.90, purity intervals 0.69."""
    rng = np.random.default_rng(0)
    X, places = rng.normal(size=(60, 4)), np.repeat(np.arange(60), 4)
    for y in (X[:, 0] + rng.normal(size=60), (X[:, 0] + rng.normal(size=60) > 0).astype(int)):
        task = "regression" if y.dtype == float else "classification"
        model = SDR(n_prototypes=6, task=task, eta=30.0, tol=1e-3, random_state=0)
        plain = clone(model).fit(X, y).prototype_evidence_
        if how == "copies":
            found = clone(model).fit(X[places], y[places]).prototype_evidence_
        elif how == "weights":
            found = clone(model).fit(X, y, sample_weight=np.full(60, 4.0)).prototype_evidence_
        else:
            near = X[places] + 1e-9 * rng.normal(size=(240, 4))
            found = clone(model).fit(near, y[places], groups=places).prototype_evidence_
        ends = ("5 %", "95 %") if task == "regression" else ("purity low", "purity high")
        width, before = (np.ptp(each.filter(regex="|".join(ends)), axis=1) for each in (found, plain))
        assert width.mean() > 0.8 * before.mean()
