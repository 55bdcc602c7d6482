"""The heat map of the coupling."""

from __future__ import annotations

import numpy as np
import pytest
from plotting.iris_plots import CODES, LABELS, LENGTHS, X, axes

from distreduce import SDR, DistR
from distreduce.exceptions import InvalidInputError
from distreduce.plotting import plot_coupling


def test_coupling_shows_the_shares_of_the_classes(classes):
    drawn = np.asarray(plot_coupling(classes, LABELS, axes()).images[0].get_array())
    shares = classes.prototype_targets_[classes.prototype_weights_ > 0].T
    np.testing.assert_allclose(np.sort(drawn, axis=None), np.sort(shares, axis=None), atol=1e-12)


def test_coupling_orders_prototypes_by_class(classes):
    drawn = np.asarray(plot_coupling(classes, LABELS, axes()).images[0].get_array())
    assert (np.diff(drawn.argmax(axis=0)) >= 0).all()


def test_coupling_counts_each_sample_in_its_bin(numbers):
    ax = plot_coupling(numbers, LENGTHS, axes(), n_bins=4)
    drawn, names = np.asarray(ax.images[0].get_array()), [int(tick.get_text()) for tick in ax.get_xticklabels()]
    binned = np.minimum((4 * (LENGTHS - LENGTHS.min()) / np.ptp(LENGTHS)).astype(int), 3)
    of_first = np.bincount(binned, weights=numbers.coupling_.toarray()[:, names[0]], minlength=4)
    np.testing.assert_allclose(drawn[:, 0], of_first / of_first.sum(), atol=1e-12)


def test_coupling_leaves_unknown_targets_out(numbers):
    partly = np.where(LENGTHS < np.median(LENGTHS), LENGTHS, np.nan)
    image = plot_coupling(numbers, partly, axes(), n_bins=1).images[0]
    carriers = np.unique(numbers.coupling_[np.flatnonzero(~np.isnan(partly))].indices)
    assert image.get_array().shape == (1, len(carriers)) and len(carriers) < 12


def columns_of(ax):
    """Numbers of the prototypes in the order of the columns, if there are few enough for all to be written."""
    return [int(tick.get_text()) for tick in ax.get_xticklabels()]


def test_coupling_orders_prototypes_of_a_class_by_weight(classes):
    drawn = columns_of(plot_coupling(classes, LABELS, axes()))
    main = classes.prototype_targets_.argmax(axis=1)
    assert drawn == sorted(drawn, key=lambda k: (main[k], -classes.prototype_weights_[k]))


def test_coupling_draws_each_used_prototype_under_its_number(classes):
    ax = plot_coupling(classes, LABELS, axes())
    expected = classes.prototype_targets_[columns_of(ax)].T
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), expected, atol=1e-12)


def test_coupling_without_y_shows_the_shares_that_the_model_keeps(classes):
    with_y, without = (np.asarray(plot_coupling(classes, y, axes()).images[0].get_array()) for y in (LABELS, None))
    np.testing.assert_allclose(without, with_y, atol=1e-12)


def test_coupling_without_y_shows_each_prototypes_mean_in_its_bin(numbers):
    ax = plot_coupling(numbers, ax=axes(), n_bins=4)
    means = numbers.prototype_targets_[:, 0]
    binned = np.digitize(means, np.linspace(means.min(), means.max(), 5)[1:-1])
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), np.eye(4)[binned[columns_of(ax)]].T)


def test_coupling_without_y_leaves_unused_prototypes_out():
    plan = np.where(CODES == 0, 0, 2)  # prototype 1 carries nothing
    model = SDR(n_prototypes=3, init=plan, max_iter=0, tol=1e3, random_state=0).fit(X, LABELS)
    assert columns_of(plot_coupling(model, ax=axes())) == [0, 2]


def test_coupling_of_distr_needs_y(unsupervised):
    with pytest.raises(InvalidInputError, match="DistR has no targets of its own"):
        plot_coupling(unsupervised, ax=axes())


def test_coupling_counts_weights(numbers):
    weights = np.where(LENGTHS < 3.0, 3.0, 1.0)
    ax = plot_coupling(numbers, LENGTHS, axes(), sample_weight=weights, n_bins=2)
    mass = weights[:, None] * numbers.coupling_.toarray()[:, columns_of(ax)]
    low = LENGTHS < (LENGTHS.min() + LENGTHS.max()) / 2
    np.testing.assert_allclose(ax.images[0].get_array()[0], mass[low].sum(axis=0) / mass.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 40, 75])
def test_names_beside_the_heat_map_do_not_touch(unsupervised, n_classes):
    y = np.array([f"{k} is a long name for a class of flowers" for k in range(n_classes)])[np.arange(150) % n_classes]
    ax = plot_coupling(unsupervised, y, axes())
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(low.y1 <= high.y0 for low, high in zip(boxes[:-1], boxes[1:], strict=True))


def test_forty_classes_are_all_named(unsupervised):
    ax = plot_coupling(unsupervised, [f"{k % 40:02d}" for k in range(150)], axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"{k:02d}" for k in range(40)]


def test_a_hundred_prototypes_have_at_most_twenty_numbers():
    model = DistR(n_prototypes=100, max_iter=1, tol=1e3, random_state=0).fit(X)
    assert len(columns_of(plot_coupling(model, LABELS, axes()))) <= 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [1.0]}, "expected .150,."),
        ({"n_bins": 0}, "at least 1"),
        ({"target": 1}, "not a column"),
    ],
)
def test_coupling_refuses_what_does_not_fit(numbers, options, message):
    with pytest.raises(ValueError, match=message):
        plot_coupling(numbers, LENGTHS, axes(), **options)
