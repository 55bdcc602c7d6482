"""DR-then-Cluster in the experiments: one embedding for many cells, which look as if each had made its own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from distreduce import DistR
from distreduce_paper.baselines import ReduceThenCluster, embed_once
from distreduce_paper.baselines.embed_once import EmbedOnce
from distreduce_paper.measure import measure

X, _ = make_blobs(60, 4, centers=3, cluster_std=6.0, random_state=0)


@pytest.fixture
def embedded(monkeypatch) -> list[int]:
    """The sizes of the samples that DistR is given."""
    sizes: list[int] = []
    fit = DistR.fit

    def counted(self, X, y=None, sample_weight=None):
        sizes.append(len(X))
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(embed_once, "_LATEST", {})
    monkeypatch.setattr(DistR, "fit", counted)
    return sizes


def made(n_prototypes: int = 6, seed: int = 0, **options) -> EmbedOnce:
    return EmbedOnce(n_prototypes=n_prototypes, random_state=seed, **options)


def test_seeds_and_numbers_of_prototypes_share_an_embedding(embedded):
    for n_prototypes in (5, 9):
        for seed in range(2):
            made(n_prototypes, seed).fit(X)
    assert embedded == [60]


@pytest.mark.parametrize("seed", [0, 3])
def test_a_fit_is_that_of_the_public_class(seed, embedded):
    made(4, 1).fit(X)
    wanted = ReduceThenCluster(n_prototypes=7, random_state=seed).fit(X)
    np.testing.assert_array_equal(made(7, seed).fit(X).prototypes_, wanted.prototypes_)


@pytest.mark.parametrize("options", [{"n_components": 3}, {"perplexity": 7.0}, {"max_iter": 1}])
def test_other_settings_have_an_embedding_of_their_own(options, embedded):
    made().fit(X)
    made(**options).fit(X)
    assert embedded == [60, 60]


def test_other_samples_have_an_embedding_of_their_own(embedded):
    for samples in (X, X[:, ::-1], X.reshape(120, 2)):
        made().fit(samples)
    assert embedded == [60, 60, 120]


def test_only_the_latest_embedding_is_kept(embedded):
    for samples in (X, 2.5 * X, X):
        made().fit(samples)
    assert len(embedded) == 3 and len(embed_once._LATEST) == 1


def test_every_fit_is_charged_with_the_embedding(embedded):
    made().fit(X)
    [(_, embedding)] = embed_once._LATEST.values()
    with measure() as cost:
        made(9).fit(X)
    assert cost.cpu_seconds > embedding.cpu_seconds > 0


def test_no_cell_depends_on_the_seed_that_came_first(embedded):
    flat = np.repeat(X[:, :1], 2, axis=1)  # one direction for two components: the second starts from noise
    first = made(5, 1).fit(flat).prototypes_
    embed_once._LATEST.clear()
    made(5, 4).fit(flat)
    np.testing.assert_array_equal(made(5, 1).fit(flat).prototypes_, first)
