"""Colours and shapes of many classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from distreduce.plotting.palette import class_palette, class_shapes

# Of Machado, Oliveira and Fernandes (2009), severity 1, on linear light.
SIMULATED = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def lab(rgb):
    """CIE L*a*b* of linear sRGB, white D65."""
    xyz = rgb @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 0.008856))
    return np.c_[116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]


@pytest.mark.parametrize("vision", SIMULATED)
@pytest.mark.parametrize("shape", [0, 1, 2])
def test_colours_of_one_shape_differ_for_colour_blind_readers(vision, shape):
    own = class_palette(24)[class_shapes(24) == shape, :3]
    linear = np.where(own > 0.04045, ((own + 0.055) / 1.055) ** 2.4, own / 12.92)
    seen = lab(np.clip(linear @ np.array(SIMULATED[vision]).T, 0, 1))
    assert pdist(seen).min() > 8  # a difference of 2 can just be seen


@pytest.mark.parametrize("n_classes", [2, 8, 9, 24, 25, 60])
def test_every_class_has_its_own_colour(n_classes):
    assert len(np.unique(class_palette(n_classes).round(6), axis=0)) == n_classes


@pytest.mark.parametrize("n_classes", [8, 24, 60])
def test_no_class_has_the_grey_of_the_unknown(n_classes):
    strength = np.ptp(class_palette(n_classes)[:, :3], axis=1)
    assert ((strength > 0.1) | (class_palette(n_classes)[:, 0] == 0)).all()  # black does not count as grey
