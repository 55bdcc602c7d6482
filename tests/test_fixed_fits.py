"""Fits with fixed seeds give the results that they gave before: the same bits on the same machine, else nearly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fixed_fits
import numpy as np
import pytest
from fixed_fits import FITS, SAVED, machine, summarize

SUMMARIES, DIGESTS = json.loads(SAVED.read_text()).values()
HAS_DIGESTS = machine() in DIGESTS


@pytest.mark.skipif(HAS_DIGESTS, reason="the bits of this machine are saved: test_fixed_fits_have_their_bits")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_fixed_fit_has_its_saved_summary(name):
    found = summarize(FITS[name]())
    assert found.keys() == SUMMARIES[name].keys()
    for key, expected in SUMMARIES[name].items():
        # Other processors round differently, and iterations amplify it.
        np.testing.assert_allclose(found[key], expected, rtol=5e-3, err_msg=key)


@pytest.mark.skipif(not HAS_DIGESTS, reason=f"no digests are saved for this machine: {machine()}")
def test_fixed_fits_have_their_bits():
    script = str(Path(fixed_fits.__file__))
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", script, "--compare"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
