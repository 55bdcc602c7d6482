"""The command `distreduce`, called as a shell would call it."""

from __future__ import annotations

import io
import json
import os
import runpy
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import pandas as pd
import pytest
import typer
from cli.quick_predictor import quick_predictor

import distreduce
from distreduce.cli import demo
from distreduce.cli.fit import Expert, Missing, Task, Unlabelled
from distreduce.cli.main import SUMMARIES, app, main

# Few rows, of which a picture promises much.
pytestmark = pytest.mark.filterwarnings("ignore::distreduce.exceptions.OptimisticPictureWarning")


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
    """The demo on few images and with a quick predictor."""
    monkeypatch.setattr(demo, "N_IMAGES", 60)
    with quick_predictor():
        yield


def test_version(call):
    assert call("--version") == (0, f"distreduce {distreduce.__version__}\n", "")


def test_help_names_the_command(call):
    code, out, _ = call("--help")
    assert code == 0 and "demo" in out


@pytest.mark.parametrize("command", ["fit", "transform", "predict", "score", "demo"])
def test_lines_of_help_are_not_broken_twice(call, command):
    """In a window of 80 characters, "Log densities" and "its" stood in lines of their own."""
    texts = [line.strip() for line in call(command, "--help")[1].split("╭")[0].splitlines()]
    within = [one for one, other in zip(texts, texts[1:], strict=False) if other and not one.endswith((".", ":"))]
    assert min((len(one) for one in within if one), default=80) > 40, within


def test_help_of_demo_names_its_options(call):
    _, out, _ = call("demo", "--help")
    assert all(option in out for option in ("--out", "--seed", "--quiet", "--json"))


def test_an_unknown_command_is_exit_code_2(call):
    assert call("dance")[0] == 2


def test_a_bad_seed_is_exit_code_2(call):
    assert call("demo", "--seed", "-1")[0] == 2


def test_values_of_options_are_texts():
    """Click 8.1, the oldest that is allowed, looks for a default among texts."""
    assert all(issubclass(kind, str) for kind in (Missing, Task, Expert, Unlabelled))


def test_a_file_as_folder_is_one_sentence_and_exit_code_1(call, tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    assert call("demo", "--out", str(path)) == (1, "", f"distreduce: --out {path} is a file; name a folder.\n")


def test_an_error_of_the_system_is_one_sentence_and_exit_code_1(call, tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    code, _, err = call("demo", "--out", str(path / "below"))
    assert code == 1 and err == f"distreduce: Not a directory: {path / 'below'}.\n"


def test_demo_is_a_fit_of_digits_that_replaces_nothing_unless_asked(call, small, tmp_path):
    path = str(tmp_path)
    code, out, _ = call("demo", "--out", path)
    assert code == 0 and "classification, 10 classes" in out and "images of 8 × 8" in out
    assert {path.name for path in tmp_path.iterdir()} == {"digits.npz", "digits"}
    labels = pd.read_csv(tmp_path / "digits/embedding.csv", dtype=str)["y"]
    assert len(labels) == 60 and labels.str.isdigit().all()
    before = (tmp_path / "digits/metrics.json").read_bytes()
    code, _, err = call("demo", "--out", path, "--seed", "1")
    assert code == 1 and "--overwrite" in err and (tmp_path / "digits/metrics.json").read_bytes() == before
    code, out, err = call("demo", "--out", path, "--overwrite", "--seed", "1", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "") and found["choices"]["seed"] == 1 and found["held_out"]["scores"]["no model"]
    (tmp_path / "digits/thesis.txt").touch()
    assert "'thesis.txt', which distreduce did not write" in call("demo", "--out", path, "--overwrite")[2]


def test_the_command_can_be_run_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["distreduce", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("distreduce.cli", run_name="__main__")
    assert distreduce.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "cp1250"])
def test_a_sign_that_the_screen_lacks_is_not_an_error(monkeypatch, encoding):
    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr("distreduce.cli.main.app", lambda **_: print("R² ≥ 0.5"))
    main()
    screen.flush()
    assert screen.buffer.getvalue() == b"R? ? 0.5\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_cleans_up(monkeypatch, name):
    number, steps = getattr(signal, name), []

    def stopped(**_):
        try:
            os.kill(os.getpid(), number)
        finally:
            steps.append("clean")

    monkeypatch.setattr("distreduce.cli.main.app", stopped)
    before = signal.signal(number, signal.SIG_DFL)  # under nohup, SIGHUP is ignored
    try:
        with pytest.raises(SystemExit) as ended:
            main()
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert (ended.value.code, steps) == (128 + number, ["clean"])


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch):
    monkeypatch.setattr("distreduce.cli.main.app", lambda **_: os.kill(os.getpid(), signal.SIGHUP))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        main()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.fixture
def plugins(monkeypatch):
    """``plugins(name="module:attribute")`` adds commands as another package would."""

    def add(**values: str):
        found = EntryPoints(EntryPoint(name, value, "distreduce.commands") for name, value in values.items())
        monkeypatch.setattr("distreduce.cli.main.entry_points", lambda **wanted: found.select(**wanted))

    return add


def greet(name: str = "you", loud: bool = False) -> None:
    """Greet somebody."""
    print(f"Hello, {name}{'!' if loud else '.'}")


group = typer.Typer(help="Several greetings.")


@group.command("formal")
def _formal() -> None:
    print("Good evening.")


@group.command("short")
def _short() -> None:
    print("Hi.")


@pytest.fixture
def greetings(plugins, monkeypatch):
    """A package with a function, an application and a module that fails."""
    monkeypatch.setitem(sys.modules, "greetings", SimpleNamespace(greet=greet, group=group))
    plugins(greet="greetings:greet", group="greetings:group", broken="no_such_module:app")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["greet", "--name", "Ada", "--loud"], "Hello, Ada!"),
        (["group", "short"], "Hi."),
        (["greet", "--help"], "Greet somebody."),
        (["group", "--help"], "Several greetings."),
    ],
)
def test_other_packages_add_commands(call, greetings, arguments, said):
    code, out, _ = call(*arguments)
    assert code == 0 and said in out


def test_the_summaries_are_the_first_sentences_of_the_commands():
    group = typer.main.get_group(app)
    found = {name: group.get_command(None, name).get_short_help_str(200) for name in SUMMARIES}
    assert found == {name: summary.removesuffix(".") for name, summary in SUMMARIES.items()} or found == SUMMARIES


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["fit", "no.csv", "-t", "y"],
        ["fit", "--help"],
        ["predict", "nowhere", "new.csv"],
        ["fit", "a", "--task", "x"],
    ],
    ids=" ".join,
)
def test_help_and_refusals_import_neither_pandas_nor_scikit_learn(arguments, tmp_path):
    code = (
        "import sys\nfrom distreduce.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'pandas', 'sklearn', 'scipy', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_lists_the_commands_of_other_packages(call, greetings):
    code, out, _ = call("--help")
    assert code == 0 and all(words in out for words in ("Greet somebody.", "Several greetings.", "Cannot be loaded."))


@pytest.mark.parametrize("arguments", [(), ("run", "--jobs", "2"), ("--help",)])
def test_a_broken_package_is_one_sentence(call, greetings, arguments):
    code, out, err = call("broken", *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1) and "'broken' (no_such_module:app) cannot be loaded" in err


def test_other_packages_do_not_replace_our_commands(call, plugins):
    plugins(demo="no_such_module:app")
    assert "--seed" in call("demo", "--help")[1]


def test_the_library_does_not_import_the_paper():
    code = "import sys, distreduce.cli.main, distreduce.cli.fit; sys.exit('distreduce_paper' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
