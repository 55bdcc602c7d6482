"""The map of a classifier, chosen by the samples that are left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge

from distreduce import SDRGPClassifier
from distreduce.gp._reduce import LENGTH_SCALES, RIDGES, _left_out_errors, choose_map


def noisy(rng, n=240):
    """Three ordered classes of one feature among seven, with noise."""
    X = rng.normal(size=(n, 7))
    return X, np.digitize(X[:, 0] + 0.6 * rng.normal(size=n), [-0.5, 0.6])


def test_errors_are_those_of_ridge_regressions_without_the_sample(rng):
    X, labels = noisy(rng, 25)
    shares = np.eye(3)[labels] - np.eye(3)[labels].mean(axis=0)
    missed = []
    for i in range(25):
        others = np.delete(np.arange(25), i)
        ridge = KernelRidge(alpha=0.3, kernel="rbf", gamma=1 / (2 * 1.7**2)).fit(X[others], shares[others])
        missed.append(ridge.predict(X[[i]])[0] - shares[i])
    np.testing.assert_allclose(_left_out_errors(X, labels, [(1.7, 0.3)]), np.mean(np.square(missed)), rtol=1e-9)


def test_numbers_are_kept(rng):
    assert choose_map(*noisy(rng), 1.0, 0.3, 0.07) == (0.3, 0.07)


@pytest.mark.parametrize(("given", "place"), [((2.0, "auto"), 0), (("auto", 0.1), 1)])
def test_what_is_not_given_is_chosen(given, place, rng):
    found = choose_map(*noisy(rng), 2.6, *given)
    assert found[place] == given[place] and found[1 - place] in (RIDGES, LENGTH_SCALES)[place]


def test_labels_without_noise_keep_the_first_pair():
    X, y = load_digits(return_X_y=True)
    assert choose_map(X[:400] / 16, y[:400], 2.2, "auto", "auto") == (LENGTH_SCALES[0], RIDGES[0])


def test_equal_samples_are_left_out_together(rng):
    """Else a copy would tell the class of the other, and no noise would be seen."""
    X, labels = noisy(rng, 60)
    once = _left_out_errors(X, labels, [(1.0, 0.01)])
    twice = _left_out_errors(np.repeat(X, 2, axis=0), np.repeat(labels, 2), [(1.0, 0.02)])
    np.testing.assert_allclose(twice, once, rtol=1e-6)


def test_noisy_labels_are_predicted_better_than_by_the_map_of_images(rng):
    X, y = noisy(rng, 440)
    default, images = (
        SDRGPClassifier(2, random_state=0),
        SDRGPClassifier(2, length_scale_factor=0.5, map_reg=0.01, random_state=0),
    )
    scores = [model.fit(X[:240], y[:240]).score(X[240:], y[240:]) for model in (default, images)]
    assert scores[0] > scores[1] + 0.1


def test_the_old_name_of_the_factor_still_works(rng):
    with pytest.warns(FutureWarning, match="length_scale of .*give length_scale_factor=0.5"):
        model = SDRGPClassifier(length_scale=0.5)
    assert model.get_params()["length_scale_factor"] == 0.5
