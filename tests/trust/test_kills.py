"""A short version of campaigns/kills.py: kill -9 at random moments costs no bit, and at most one iteration."""

from __future__ import annotations

import numpy as np
import pytest
from trust.kills import Tally, campaign, lost


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("kind", ["SDR, dense", "SDR, sparse"])
def test_kills_at_random_moments_change_no_bit(kind, tmp_path):
    found = campaign(kind, 3, np.random.default_rng(0), tmp_path, Tally())
    assert found.kills >= 3 and found.differ == 0 and max(found.lost) <= 1


def test_iterations_lost_are_counted_by_kill():
    """Killed in iteration 3, before the checkpoint of 3, and before anything was done."""
    log = "start,begin 1,end 1,begin 2,end 2,begin 3,start,begin 3,end 3,start,begin 3,start,start,begin 3,end 3,done"
    assert lost(log.split(",")) == {0: 3, 1: 1}
