"""Names that were probably meant, warnings at the user's line, progress bars, versions."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from rich.console import Console
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import distreduce
from distreduce import SDR
from distreduce._utils.text import count_of, did_you_mean, list_words, progress_bar, strip_control, warn_user
from distreduce._utils.versions import library_versions
from distreduce.exceptions import DataWarning

KNOWN = ("boston", "fashion_mnist", "Price", 7)


def test_words_of_messages():
    assert (count_of(1, "iteration"), count_of(2000, "row")) == ("1 iteration", "2,000 rows")
    assert (list_words(["a", "b"]), list_words(range(7), most=2)) == ("'a', 'b'", "0, 1, …")
    assert strip_control("red \x1b[31m") == "red  [31m"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bostn", "Did you mean 'boston'? "),
        ("PRICE", "Did you mean 'Price'? "),
        ("fashion-mnist", "Did you mean 'fashion_mnist'? "),
        ("xyz", ""),
        ("", ""),
        (7, "Did you mean '7'? "),
    ],
)
def test_the_closest_name_or_nothing(name, sentence):
    assert did_you_mean(name, KNOWN) == sentence


def test_of_no_names_none_is_close():
    assert did_you_mean("boston", ()) == ""


X = np.repeat(np.random.default_rng(0).normal(size=(12, 3)), 2, axis=0)


def test_a_call_from_outside_is_its_own_line():
    with pytest.warns(DataWarning, match="odd") as caught:
        warn_user("odd", DataWarning)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("model", [SDR(n_prototypes=20), make_pipeline(StandardScaler(), SDR(n_prototypes=20))])
def test_frames_of_the_package_and_of_scikit_learn_are_skipped(model):
    with pytest.warns(DataWarning, match="only 12 samples are distinct") as caught:
        model.fit(X, X[:, 0])
    assert [one.filename for one in caught if one.category is DataWarning] == [__file__]


@pytest.mark.parametrize(
    ("terminal", "visible", "shown"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_bar_is_shown_on_terminals_if_wanted(terminal, visible, shown, monkeypatch, capsys):
    monkeypatch.setattr(Console, "is_terminal", terminal)
    with progress_bar("{task.description}", visible=visible) as bar:
        bar.add_task("work", total=1)
    assert ("work" in capsys.readouterr().err) == shown


def test_a_hidden_bar_leaves_no_empty_line(capsys):
    with progress_bar():
        pass
    assert capsys.readouterr() == ("", "")


def test_versions_of_installed_packages():
    expected = {"distreduce": distreduce.__version__, "python": platform.python_version(), "numpy": np.__version__}
    assert library_versions(["numpy", "a-package-that-does-not-exist"]) == expected
