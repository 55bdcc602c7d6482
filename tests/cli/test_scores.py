"""The held-out scores on screens of any width."""

from __future__ import annotations

import pytest

from distreduce.cli._screen import predict_left, show_experts, show_scores

REGRESSION = {"r2": 0.91234, "rmse": 12.3456, "mll": -1.23456, "coverage_90": 0.87654}
CLASSES = {"accuracy": 0.91234, "mlp": -0.23456, "ece": 0.06789}


def shown(monkeypatch, capsys, width, task, scores):
    monkeypatch.setenv("COLUMNS", str(width))
    show_scores(
        {
            "task": task,
            "choices": {"components": 2},
            "columns_of_x": 13,
            "held_out": {
                "test_rows": 40,
                "train_rows": 160,
                "how": "They were drawn at random.",
                "scores": {"SDR-GP": scores, "no reduction": scores, "PCA": {**scores, "r2": None}},
            },
        }
    )
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(("task", "scores"), [("regression", REGRESSION), ("classification", CLASSES)])
def test_no_number_is_cut(monkeypatch, capsys, width, task, scores):
    out = shown(monkeypatch, capsys, width, task, scores)
    assert "…" not in out and max(map(len, out.splitlines())) <= width
    for key, value in scores.items():
        assert out.count(f"{value:{'.4g' if key == 'rmse' else '.3f'}}") == (2 if key == "r2" else 3)


def test_experts_are_shown_by_weight(capsys):
    show_experts({"experts": {"linear": 0.2, "forest": 0.799, "boosting": 0.001}})
    assert "random forest 80%, linear model 20%." in " ".join(capsys.readouterr().out.split())


def test_no_scores_are_no_table(capsys):
    show_scores({"held_out": None})
    assert capsys.readouterr().out == ""


def test_the_time_left_follows_the_steps_that_are_done():
    assert predict_left(0.0, 1.0, 0.0, 5.0) is None  # during the first step nothing is known
    assert predict_left(0.25, 1.0, 10.0, 10.0) == pytest.approx(30.0)
    assert predict_left(0.25, 1.0, 10.0, 22.0) == pytest.approx(18.0)  # within a step it falls
    assert predict_left(0.25, 1.0, 10.0, 99.0) == 1.0
