"""``distreduce data list | fetch | verify``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from datasets.dataset_server import CONTENT, MisbehavingServer, small_set
from typer.testing import CliRunner

from distreduce.datasets import download, loading, names
from distreduce.exceptions import InvalidInputError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("DISTREDUCE_DATA", raising=False)
    monkeypatch.setenv("DISTREDUCE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(cache, monkeypatch):
    """Two sets are on a server: 'boston' can be fetched, 'concrete' cannot."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    monkeypatch.setattr(download, "PAUSE", 0.01)
    with MisbehavingServer() as running:
        for name in set(loading.FILE_SETS) - {"boston", "concrete"}:
            monkeypatch.delitem(loading.FILE_SETS, name)
        monkeypatch.setitem(loading.FILE_SETS, "boston", small_set(running.url()))
        gone = replace(small_set(running.url("/gone")), name="concrete", file="concrete.csv")
        monkeypatch.setitem(loading.FILE_SETS, "concrete", gone)
        yield running


@pytest.fixture
def call(cache):
    """``call("list")`` returns exit code and standard output."""
    from distreduce.cli.data import app

    def run(*arguments: str):
        result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
        if isinstance(result.exception, InvalidInputError):
            raise result.exception
        return result.exit_code, result.stdout

    return run


def test_the_command_is_mounted():
    from distreduce.cli.main import app

    result = CliRunner().invoke(app, ["data", "--help"])
    assert result.exit_code == 0 and all(word in result.stdout for word in ("list", "fetch", "verify"))


def test_list_has_one_row_per_set(call):
    _, out = call("list")
    assert all(f" {name} " in out for name in names())


def test_list_cuts_no_name_at_80_columns():
    from distreduce.cli.data import app

    out = CliRunner().invoke(app, ["list"], env={"COLUMNS": "80"}).stdout
    assert all(name in out for name in ("fashion_mnist", "breast_cancer")) and "…" not in out


def test_list_as_json_says_what_is_where(call):
    code, out = call("list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert (code, list(entries)) == (0, names())
    assert [entries[name]["place"] for name in ("boston", "s_curve", "iris")] == [None, "built in", "built in"]


@pytest.mark.data
def test_list_sees_the_folder(call, data_dir, monkeypatch):
    monkeypatch.setenv("DISTREDUCE_DATA", str(data_dir))
    entries = {entry["name"]: entry for entry in json.loads(call("list", "--json")[1])}
    expected = ("folder", str(data_dir / "mnist_t10k.npz"), (data_dir / "mnist_t10k.npz").stat().st_size)
    assert tuple(entries["mnist"][key] for key in ("place", "path", "bytes")) == expected


def test_fetch_brings_a_set_and_then_finds_it(call, server):
    states = [json.loads(call("fetch", "boston", "--json")[1])[0]["state"] for _ in range(2)]
    assert (states, len(server.requests)) == (["fetched", "here"], 1)


def test_one_that_fails_does_not_stop_the_others(call, server):
    code, out = call("fetch", "concrete", "boston", "iris", "--json")
    assert (code, [state["state"] for state in json.loads(out)]) == (1, ["failed", "fetched", "built in"])


def test_what_failed_says_why(call, server):
    _, out = call("fetch", "concrete")
    assert "404" in out and server.url("/gone") in out


def test_all_fetches_every_set_with_a_file(call, server):
    code, out = call("fetch", "--all", "--json")
    assert (code, {state["name"] for state in json.loads(out)}) == (1, {"boston", "concrete"})


@pytest.mark.parametrize("arguments", [["fetch"], ["fetch", "boston", "--all"]])
def test_fetch_wants_names_or_all(call, arguments):
    assert call(*arguments)[0] == 2


def test_unknown_names_are_refused_before_anything_is_fetched(call, server):
    with pytest.raises(InvalidInputError, match="Did you mean 'boston'"):
        call("fetch", "boston", "bostn")
    assert server.requests == []


def test_verify_tells_sound_from_damaged_from_missing(call, server, cache, tmp_path, monkeypatch):
    call("fetch", "boston")
    (tmp_path / "boston.csv").write_bytes(CONTENT)
    monkeypatch.setenv("DISTREDUCE_DATA", str(tmp_path))
    code, out = call("verify", "--json")
    states = [(state["name"], state["state"], state["path"]) for state in json.loads(out)]
    folder, cached = ("boston", "damaged", str(tmp_path / "boston.csv")), ("boston", "ok", str(cache / "boston.csv"))
    assert code == 1 and sorted(states, key=str) == sorted([folder, cached, ("concrete", "missing", None)], key=str)


def test_verify_of_sound_files_is_exit_code_0(call, server):
    call("fetch", "boston")
    assert call("verify", "boston", "iris")[0] == 0


@pytest.mark.data
def test_verify_finds_the_papers_files_sound(call, data_dir, monkeypatch):
    monkeypatch.setenv("DISTREDUCE_DATA", str(data_dir))
    _, out = call("verify", "--json")
    assert {state["state"] for state in json.loads(out)} == {"ok"}
