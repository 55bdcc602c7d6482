from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import euclidean_distances

from distreduce import SDR
from distreduce.metrics import reduction_scores
from distreduce_paper import Cell
from distreduce_paper.experiments.bottleneck import EXPERIMENT, original_cka, report, run
from distreduce_paper.report.blocks import Figure, Table, Text


def row(method: str, data: str = "coil20", seed: int = 1, **more: object) -> dict[str, object]:
    """A finished cell."""
    fixed = {"experiment": "bottleneck", "quick": False, "cka": 0.9, "silhouette": 80.0, "original_cka": 0.48}
    return {**fixed, "data": data, "method": method, "seed": seed, **more}


CURVES = {"inner_cka": [0.1, 0.5], "outer_cka": [0.5, 0.6, 0.7]}
PLACES = {"first": [0.0, 1.0], "second": [0.0, 1.0], "weight": [0.3, 0.7], "heaviest": [0, 1]}


def test_two_data_sets_three_methods_five_seeds():
    assert len(EXPERIMENT.cells()) == 2 * 3 * 5


def test_the_cka_of_the_data_is_that_of_centred_kernels(blobs):
    X, y = blobs
    squared = euclidean_distances(X) ** 2
    H = np.eye(60) - 1 / 60
    K = H @ np.exp(-squared / np.median(squared[np.triu_indices(60, 1)])) @ H
    L = H @ np.equal.outer(y, y).astype(float) @ H

    assert original_cka(X, y) == pytest.approx(np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L)))


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
def test_the_inner_loop_ends_where_the_embedding_of_the_initial_coupling_does(blobs):
    X, y = blobs

    results = run(Cell("bottleneck", "blobs", "SDR", 0, quick=True))

    model = SDR.paper(n_prototypes=30, perplexity=10.0, max_iter=0, max_inner_iter=20, random_state=0).fit(X, y)
    assert results["inner_cka"][-1] == pytest.approx(reduction_scores(model, y)["cka"], rel=1e-3)


def test_prototypes_have_their_heaviest_class(blobs):
    X, y = blobs

    results = run(Cell("bottleneck", "blobs", "FGW-only", 0, quick=True))

    model = SDR.paper(n_prototypes=30, perplexity=10.0, eta=0.0, random_state=0).fit(X, y)
    pure = [y[model.labels_ == k] for k in np.flatnonzero(model.prototype_weights_)]
    expected = [np.bincount(own).argmax() for own in pure]
    assert results["heaviest"] == expected


def test_only_the_first_seed_is_drawn(blobs):
    assert "inner_cka" not in run(Cell("bottleneck", "blobs", "SDR", 1, quick=True))


def test_a_method_without_a_history_has_no_curves(blobs):
    results = run(Cell("bottleneck", "blobs", "Cluster-then-DR", 0, quick=True))

    assert {"inner_cka", "outer_cka", "own_cka"}.isdisjoint(results)


def test_rows_are_held_against_the_papers():
    cells = pd.DataFrame([row(method) for method in ("SDR", "SDR, paper's algorithm", "FGW-only", "DistR")])

    table = next(block for block in report(cells) if isinstance(block, Table))

    assert [(one.method, one.counterpart, one.verdict) for one in table.comparisons if one.metric == "CKA"] == [
        ("SDR", "SDR", "better"),
        ("SDR, paper's algorithm", "SDR", "better"),
        ("FGW-only", "FGW-only", "better"),
    ]


def test_the_data_have_one_row_whatever_the_number_of_methods():
    cells = pd.DataFrame([row(method, seed=seed) for method in ("SDR", "FGW-only") for seed in range(5)])

    table = next(block for block in report(cells) if isinstance(block, Table))

    assert table.frame.loc[table.frame["Method"] == "Original data", "CKA"].tolist() == ["0.480 ± 0.000"]


@pytest.mark.parametrize(
    ("rows", "drawings"),
    [
        ([row("SDR")], 0),
        ([row("SDR", seed=0, **PLACES)], 1),
        ([row("SDR", seed=0, **PLACES, **CURVES), row("FGW-only", "snareseq", 0, **PLACES, **CURVES), row("SDR")], 2),
        ([row("SDR", seed=0, **PLACES, **CURVES), row("my <method>", "mine", 0, **PLACES)], 2),
    ],
)
def test_a_report_of_few_cells_draws_what_they_hold(rows, drawings):
    assert sum(isinstance(block, Figure) for block in report(pd.DataFrame(rows))) == drawings


def test_what_the_papers_algorithm_says_of_itself_is_its_mean():
    cells = pd.DataFrame([row("SDR, paper's algorithm", seed=seed, own_cka=0.5 + 0.2 * seed) for seed in range(2)])

    assert any("0.60 on COIL-20" in block.text for block in report(cells) if isinstance(block, Text))
