"""Sets by name: against the files themselves and against scikit-learn."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from distreduce import datasets
from distreduce.datasets import loading
from distreduce.exceptions import DatasetFileError, InvalidInputError, InvalidTypeError


@pytest.fixture
def folder(data_dir, cache, monkeypatch):
    """The paper's files in DISTREDUCE_DATA, an empty cache."""
    monkeypatch.setenv("DISTREDUCE_DATA", str(data_dir))
    return data_dir


def csv_rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


@pytest.mark.data
@pytest.mark.parametrize(("name", "n_targets"), [("boston", 1), ("concrete", 1), ("energy", 2)])
class TestTables:
    def test_values_are_those_of_the_file(self, folder, name, n_targets):
        d = datasets.load(name)
        rows = np.array(csv_rows(folder / f"{name}.csv")[1:], dtype=float)
        assert np.array_equal(np.column_stack([d.X, d.y]), rows)

    def test_names_are_those_of_the_file(self, folder, name, n_targets):
        d = datasets.load(name)
        assert [*d.feature_names, *d.target_names] == csv_rows(folder / f"{name}.csv")[0]

    def test_y_has_a_column_a_target(self, folder, name, n_targets):
        assert datasets.load(name).y.shape[1:] == (() if n_targets == 1 else (n_targets,))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "file", "key", "shape"),
    [
        ("coil20", "coil20", "images", (1440, 16384)),
        ("mnist", "mnist_t10k", "images", (10_000, 784)),
        ("fashion_mnist", "fashion_mnist_t10k", "images", (10_000, 784)),
        ("snareseq", "snareseq", "chromatin", (1047, 19)),
    ],
)
class TestArrays:
    def test_rows_are_those_of_the_file(self, folder, name, file, key, shape):
        with np.load(folder / f"{file}.npz") as store:
            raw, labels = store[key].reshape(shape), store["labels"]
        d = datasets.load(name)
        assert np.array_equal(d.X, raw) and np.array_equal(d.y, labels)

    def test_types_are_float_and_int(self, folder, name, file, key, shape):
        d = datasets.load(name)
        assert (d.X.dtype, d.y.dtype, d.X.flags.c_contiguous) == (np.float64, np.int64, True)

    def test_every_label_has_a_name(self, folder, name, file, key, shape):
        d = datasets.load(name)
        assert sorted(set(d.y)) == list(range(len(d.class_names)))


@pytest.mark.data
def test_cell_lines_have_their_names(folder):
    counts = datasets.load("snareseq").frame()["cell_line"].value_counts()
    assert dict(counts) == {"H1": 379, "GM": 324, "BJ": 201, "K562": 143}


@pytest.mark.data
@pytest.mark.parametrize("seed", [0, 4])
def test_mnist_2k_is_drawn_as_in_the_tests_of_the_models(folder, seed):
    import data_sets

    X, y = data_sets.mnist(folder, n=2000, seed=seed)
    drawn = datasets.load("mnist", n_samples=2000, random_state=seed)
    assert np.array_equal(drawn.X / 255, X) and np.array_equal(drawn.y, y)


@pytest.mark.data
def test_one_target_of_two_makes_a_vector(folder):
    both, one = datasets.load("energy"), datasets.load("energy", target="cooling_load")
    assert np.array_equal(one.y, both.y[:, 1]) and one.target_names == ("cooling_load",)


@pytest.mark.data
def test_targets_come_in_the_order_asked_for(folder):
    swapped = datasets.load("energy", target=["cooling_load", "heating_load"])
    assert np.array_equal(swapped.y[:, ::-1], datasets.load("energy").y)


@pytest.mark.data
def test_a_changed_number_in_the_folder_is_refused_and_named(folder, tmp_path, monkeypatch):
    damaged = tmp_path / "boston.csv"
    damaged.write_text((folder / "boston.csv").read_text().replace("24.0", "25.0", 1))
    monkeypatch.setenv("DISTREDUCE_DATA", str(tmp_path))
    with pytest.raises(DatasetFileError, match=rf"{damaged}.*not those of 'boston'.*Replace or delete"):
        datasets.load("boston")


@pytest.mark.data
@pytest.mark.parametrize("place", [1000, 60_000, 130_000, -30])
def test_a_damaged_file_in_the_cache_is_refused_and_kept(folder, cache, monkeypatch, place):
    content = bytearray((folder / "snareseq.npz").read_bytes())
    content[place] ^= 0xFF
    cache.mkdir()
    (cache / "snareseq.npz").write_bytes(content)
    monkeypatch.delenv("DISTREDUCE_DATA")
    with pytest.raises(DatasetFileError, match=r"Delete it; the next load fetches it again"):
        datasets.load("snareseq")
    assert (cache / "snareseq.npz").read_bytes() == content


@pytest.mark.data
def test_half_a_file_is_refused(folder, cache, monkeypatch):
    cache.mkdir()
    (cache / "coil20.npz").write_bytes((folder / "coil20.npz").read_bytes()[: 10**6])
    monkeypatch.delenv("DISTREDUCE_DATA")
    with pytest.raises(DatasetFileError, match="cannot be read"):
        datasets.load("coil20")


@pytest.mark.data
def test_the_folder_is_asked_before_the_cache(folder, cache):
    cache.mkdir()
    (cache / "boston.csv").write_text("damaged")
    assert len(datasets.load("boston").X) == 506


@pytest.mark.data
def test_a_file_that_the_folder_lacks_comes_from_the_cache(folder, cache, tmp_path, monkeypatch):
    cache.mkdir()
    (cache / "boston.csv").write_bytes((folder / "boston.csv").read_bytes())
    monkeypatch.setenv("DISTREDUCE_DATA", str(tmp_path))
    assert len(datasets.load("boston", download=False).X) == 506


def test_a_file_that_would_unpack_to_more_than_any_set_is_not_unpacked(cache):
    cache.mkdir()
    np.savez_compressed(cache / "mnist_t10k.npz", images=np.zeros((100, 1024, 1024), np.uint8), labels=np.zeros(100))
    with pytest.raises(DatasetFileError, match="would unpack to"):
        datasets.load("mnist")


def test_a_pickle_in_the_cache_is_not_run(cache):
    cache.mkdir()
    np.savez(cache / "mnist_t10k.npz", images=np.array([{}], dtype=object), labels=np.zeros(1))
    with pytest.raises(DatasetFileError, match="allow_pickle"):
        datasets.load("mnist")


def test_a_folder_that_is_none_is_said(cache, monkeypatch):
    monkeypatch.setenv("DISTREDUCE_DATA", "/no/such/folder")
    with pytest.raises(DatasetFileError, match="DISTREDUCE_DATA=/no/such/folder is not a folder"):
        datasets.load("boston")


def test_without_variables_the_cache_is_the_users(monkeypatch):
    import pooch

    from distreduce.datasets.download import cache_folder

    monkeypatch.delenv("DISTREDUCE_CACHE", raising=False)
    assert cache_folder() == Path(pooch.os_cache("distreduce"))


@pytest.mark.parametrize(
    ("name", "maker", "size"),
    [("s_curve", "make_s_curve", 100), ("swiss_roll", "make_swiss_roll", 100), ("friedman", "make_friedman1", 500)],
)
class TestGenerators:
    def test_default_is_the_papers_size(self, name, maker, size):
        X, y = getattr(sklearn.datasets, maker)(size, random_state=3)
        d = datasets.load(name, random_state=3)
        assert np.array_equal(d.X, X) and np.array_equal(d.y, y)

    def test_other_sizes(self, name, maker, size):
        X, _ = getattr(sklearn.datasets, maker)(37, random_state=0)
        assert np.array_equal(datasets.load(name, n_samples=37, random_state=0).X, X)

    def test_without_a_seed_the_global_generator_is_left_alone(self, name, maker, size):
        before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what must not move
        datasets.load(name)
        assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "breast_cancer", "diabetes"])
def test_bundled_sets_are_those_of_scikit_learn(name, cache):
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    d = datasets.load(name)
    assert np.array_equal(d.X, X) and np.array_equal(d.y, y)


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "breast_cancer"])
def test_bundled_classes_have_the_names_of_scikit_learn(name):
    bunch = getattr(sklearn.datasets, f"load_{name}")()
    frame = datasets.load(name).frame()
    assert list(frame.iloc[:, -1].astype(str)) == [str(bunch.target_names[label]) for label in bunch.target]


@pytest.mark.parametrize("name", [name for name in datasets.names() if name not in loading.FILE_SETS])
def test_shape_and_task_are_as_listed(name, cache):
    listed = {**loading.BUNDLED_SETS, **loading.GENERATED_SETS}[name]
    d = datasets.load(name)
    assert (d.X.shape, d.task, len(d.feature_names)) == (listed.shape, listed.task, listed.shape[1])


@pytest.mark.data
@pytest.mark.parametrize("name", list(loading.FILE_SETS))
def test_file_sets_have_all_that_a_bundle_promises(name, folder):
    d, listed = datasets.load(name), loading.FILE_SETS[name]
    assert d.X.shape == listed.shape and len(d.feature_names) == listed.shape[1]
    assert d.description and d.licence and d.citation


def test_frame_has_features_then_targets():
    frame = datasets.load("diabetes").frame()
    expected = sklearn.datasets.load_diabetes(as_frame=True).frame.rename(columns={"target": "progression"})
    pd.testing.assert_frame_equal(frame, expected)


@pytest.mark.parametrize("name", ["iris", "digits", "friedman", "diabetes"])
def test_repr_is_one_short_line(name):
    words = repr(datasets.load(name))
    assert words.startswith(f"Dataset('{name}': ") and len(words) < 100 and "\n" not in words


def test_an_unknown_name_lists_all_and_the_closest():
    with pytest.raises(InvalidInputError, match=r"Did you mean 'fashion_mnist'\?.*boston.*diabetes"):
        datasets.load("fashion-mnist")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_samples": 0}, InvalidInputError, "n_samples=0"),
        ({"n_samples": 151}, InvalidInputError, "has 150 samples"),
        ({"n_samples": 2.0}, InvalidTypeError, "n_samples=2.0"),
        ({"n_samples": True}, InvalidTypeError, "n_samples=True"),
        ({"random_state": -1}, InvalidInputError, "random_state=-1"),
        ({"target": "age"}, InvalidInputError, "it has species"),
        ({"target": []}, InvalidInputError, "it has species"),
    ],
)
def test_bad_options_are_named(options, error, said):
    with pytest.raises(error, match=said):
        datasets.load("iris", **options)


def test_numpy_integers_are_integers():
    assert len(datasets.load("iris", n_samples=np.int64(20), random_state=np.int32(0)).X) == 20


def test_a_draw_of_all_rows_is_a_permutation():
    whole, drawn = datasets.load("diabetes"), datasets.load("diabetes", n_samples=442, random_state=0)
    assert np.array_equal(np.sort(whole.y), np.sort(drawn.y)) and not np.array_equal(whole.y, drawn.y)
