"""Fits with fixed seeds give the results that they gave before, on any machine within a tolerance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fixed_fits import FITS, summarize

SAVED = json.loads(Path(__file__).with_name("fixed_fits.json").read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_fixed_fit_has_its_saved_summary(name):
    found = summarize(FITS[name]())
    assert found.keys() == SAVED[name].keys()
    for key, expected in SAVED[name].items():
        # Other processors and libraries round otherwise, and iterations amplify it: exact bits are for the script.
        np.testing.assert_allclose(found[key], expected, rtol=1e-4, atol=1e-6, err_msg=key)
