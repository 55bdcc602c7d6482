from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from distreduce.affinity.graph import graph_affinity


def random_graph(rng, n=30):
    A = (rng.uniform(size=(n, n)) < 0.15) * rng.uniform(0.5, 2.0, size=(n, n))
    return np.triu(A, 1)  # directed: only one half is given


def test_every_row_sums_to_one_under_the_weights(rng):
    h = rng.uniform(0.5, 3.0, size=30)

    C = graph_affinity(random_graph(rng), h)

    assert C @ h == pytest.approx(np.ones(30), abs=1e-7)
    assert (C == C.T).all()


def test_it_is_the_graph_scaled_by_rows_and_columns(rng):
    A = random_graph(rng)
    C = graph_affinity(A, np.ones(30))
    edges = np.argwhere(A)

    assert ((C > 0) == ((A + A.T > 0) | np.eye(30, dtype=bool))).all()
    # C_ij² / (C_ii C_jj) does not depend on the scaling.
    whole = A + A.T
    diagonal = np.where(whole.max(axis=1) > 0, whole.max(axis=1), 1.0)
    for i, j in edges:
        assert C[i, j] ** 2 / (C[i, i] * C[j, j]) == pytest.approx(whole[i, j] ** 2 / (diagonal[i] * diagonal[j]))


def test_a_star_and_a_lone_sample_can_be_scaled():
    star = np.zeros((12, 12))
    star[0, 1:11] = 1.0  # without self-loops no scaling of a star has equal row sums; the last sample has no edge

    assert graph_affinity(star, np.ones(12)).sum(axis=1) == pytest.approx(np.ones(12), abs=1e-5)


def test_sparse_and_dense_graphs_are_the_same(rng):
    A = random_graph(rng)
    assert (graph_affinity(A, np.ones(30)) == graph_affinity(sparse.csc_matrix(A), np.ones(30))).all()
