"""The command `distreduce`, called as a shell would call it."""

from __future__ import annotations

import io
import json
import os
import runpy
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import distreduce
from distreduce import SDR
from distreduce.cli import demo
from distreduce.cli.main import main


@pytest.fixture
def call(monkeypatch, capsys):
    """``call("demo", "--quiet")`` returns exit code, standard output and standard error."""

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["distreduce", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def small(monkeypatch):
    """The demo on a few rows and a few iterations, for what does not depend on the fit."""

    def cut(split, rows):
        parts = {name: getattr(split, name) for name in split.__dataclass_fields__}
        return demo.Split(**{k: v if k == "name" else v[:rows] for k, v in parts.items()})

    whole = demo.digits, demo.diabetes
    monkeypatch.setattr(demo, "digits", lambda seed: cut(whole[0](seed), 150))
    monkeypatch.setattr(demo, "diabetes", lambda seed: cut(whole[1](seed), 60))
    monkeypatch.setattr(demo, "SDR", lambda **options: SDR(**options, tol=1e-2))


def test_version(call):
    assert call("--version") == (0, f"distreduce {distreduce.__version__}\n", "")


def test_help_names_the_command(call):
    code, out, _ = call("--help")
    assert code == 0 and "demo" in out


def test_help_of_demo_names_its_options(call):
    _, out, _ = call("demo", "--help")
    assert all(option in out for option in ("--out", "--seed", "--quiet", "--json"))


def test_an_unknown_command_is_exit_code_2(call):
    assert call("dance")[0] == 2


def test_a_bad_seed_is_exit_code_2(call):
    assert call("demo", "--seed", "-1")[0] == 2


def test_a_file_as_folder_is_one_sentence_and_exit_code_1(call, tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    assert call("demo", "--out", str(path)) == (1, "", f"distreduce: --out {path} is a file; name a folder.\n")


def test_an_error_of_the_system_is_one_sentence_and_exit_code_1(call, tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    code, _, err = call("demo", "--out", str(path / "below"))
    assert code == 1 and err == f"distreduce: Not a directory: {path / 'below'}.\n"


def test_demo_writes_three_files_and_nothing_else(call, small, tmp_path):
    call("demo", "--out", str(tmp_path), "--quiet")
    assert {path.name for path in tmp_path.iterdir()} == {"embedding.png", "prototypes.csv", "embedding.csv"}


def test_quiet_prints_nothing(call, small, tmp_path):
    assert call("demo", "--out", str(tmp_path), "--quiet") == (0, "", "")


def test_demo_says_where_the_files_are(call, small, tmp_path):
    _, out, _ = call("demo", "--out", str(tmp_path / "new"))
    assert str(tmp_path / "new") in out.replace("\n", "")


def test_json_holds_a_result_for_each_data_set(call, small, tmp_path):
    _, out, _ = call("demo", "--out", str(tmp_path), "--json")
    assert [result["data"] for result in json.loads(out)["results"]] == ["digits", "diabetes"]


def test_embedding_and_prototypes_agree_on_rows(call, small, tmp_path):
    call("demo", "--out", str(tmp_path), "--quiet")
    places = pd.read_csv(tmp_path / "embedding.csv").query("data == 'digits' and part == 'train'").set_index("row")
    prototypes = pd.read_csv(tmp_path / "prototypes.csv")
    shares = prototypes.filter(like="share of").to_numpy()[
        np.arange(60), places.loc[prototypes["medoid"], "y"].astype(int)
    ]
    assert (shares > 0).all()  # a prototype's medoid is one of its samples, so that its class has a share


@pytest.mark.slow
def test_demo_beats_two_principal_components_on_digits(call, tmp_path):
    _, out, _ = call("demo", "--out", str(tmp_path), "--json")
    digits = json.loads(out)["results"][0]
    assert digits["sdr_2d"] > digits["pca_2d"] + 0.2


def test_the_package_can_be_run_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["distreduce", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("distreduce", run_name="__main__")
    assert distreduce.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "cp1250"])
def test_a_sign_that_the_screen_lacks_is_no_error(monkeypatch, encoding):
    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr("distreduce.cli.main.app", lambda **_: print("R² ≥ 0.5"))
    main()
    screen.flush()
    assert screen.buffer.getvalue() == b"R? ? 0.5\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_who_is_told_to_end_cleans_up(monkeypatch, name):
    number, steps = getattr(signal, name), []

    def stopped(**_):
        try:
            os.kill(os.getpid(), number)
        finally:
            steps.append("clean")

    monkeypatch.setattr("distreduce.cli.main.app", stopped)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, steps) == (128 + number, ["clean"]) and signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch):
    monkeypatch.setattr("distreduce.cli.main.app", lambda **_: os.kill(os.getpid(), signal.SIGHUP))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        main()
    finally:
        signal.signal(signal.SIGHUP, before)
