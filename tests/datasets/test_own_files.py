"""Files of one's own: what is in them comes out, and what cannot be used is said."""

from __future__ import annotations

import contextlib
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from distreduce import SDR, datasets
from distreduce.exceptions import DatasetError, DatasetFileError, InvalidInputError, MissingDependencyError

finite = st.floats(allow_nan=False, allow_infinity=False)
SMALL = "a,b,price\n1,2.5,10.5\n3,4.5,11.25\n5,6.5,12.125\n"


@pytest.fixture
def write(tmp_path):
    """``write("x.csv", text)`` returns the path."""

    def put(name: str, content: str | bytes):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(finite, finite, finite), min_size=2, max_size=8))
def test_numbers_survive_csv_to_the_last_bit(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    table = np.array(rows)
    pd.DataFrame(table, columns=["a", "b", "c"]).assign(y=range(len(rows))).to_csv(path, index=False)
    assert np.array_equal(datasets.load(path).X, table)


@settings(max_examples=40)
@given(labels=st.lists(st.text("abcxyz", min_size=1, max_size=3), min_size=2, max_size=12, unique=True))
def test_text_labels_come_back_from_their_numbers(labels, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    labels = [f"_{label}" for label in labels] * 2  # a word such as "nan" would be a missing cell
    pd.DataFrame({"x": range(len(labels)), "label": labels}).to_csv(path, index=False)
    d = datasets.load(path)
    assert [d.class_names[code] for code in d.y] == labels


@pytest.mark.parametrize(("name", "text"), [("t.csv", SMALL), ("t.tsv", SMALL.replace(",", "\t")), ("t.CSV", SMALL)])
def test_the_last_column_is_the_target(write, name, text):
    d = datasets.load(write(name, text))
    assert (d.X.tolist(), d.y.tolist()) == ([[1, 2.5], [3, 4.5], [5, 6.5]], [10.5, 11.25, 12.125])


def test_a_named_column_is_the_target(write):
    d = datasets.load(write("t.csv", SMALL), target="a")
    assert (d.feature_names, d.y.tolist()) == (("b", "price"), [1, 3, 5])


def test_several_targets_are_columns_in_that_order(write):
    d = datasets.load(write("t.csv", SMALL), target=["price", "a"])
    assert (d.y.tolist(), d.task) == ([[10.5, 1], [11.25, 3], [12.125, 5]], "regression")


def test_a_path_as_text_and_rows_drawn(write, monkeypatch):
    monkeypatch.chdir(write("t.csv", SMALL).parent)
    rows = np.random.default_rng(1).choice(3, size=2, replace=False)
    assert np.array_equal(datasets.load("t.csv", n_samples=2, random_state=1).X[:, 0], np.array([1, 3, 5])[rows])


def test_a_byte_order_mark_is_not_part_of_a_name(write):
    assert datasets.load(write("t.csv", "\ufeff" + SMALL)).feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("größe;y\n1,5;2,5\n2,5;4,5\n", "utf-8"),
        ("größe;y\n1,5;2,5\n2,5;4,5\n", "cp1252"),
        ("größe\ty\n1.5\t2.5\n2.5\t4.5\n", "utf-16"),
        ("sep=|\ngröße|y\n1.5|2.5\n2.5|4.5\n", "utf-8-sig"),
    ],
)
def test_text_is_read_as_on_the_command_line(write, text, encoding):
    d = datasets.load(write("t.csv", text.encode(encoding)))
    assert (d.feature_names, d.X.tolist(), d.y.tolist()) == (("größe",), [[1.5], [2.5]], [2.5, 4.5])


def test_notes_on_how_the_file_was_read_are_kept(write):
    assert "decimal comma" in datasets.load(write("t.csv", "a;y\n1,5;2\n2,5;3\n")).description


@pytest.mark.parametrize(
    ("column", "task", "y", "names"),
    [
        (["no", "yes", "no", "no"], "classification", [0, 1, 0, 0], ("no", "yes")),
        (["True", "False", "True", "True"], "classification", [1, 0, 1, 1], ("False", "True")),
        (["7", "9", "7"] * 2, "classification", [7, 9, 7] * 2, None),
        (["7.5", "9", "7", "7"], "regression", [7.5, 9, 7, 7], None),
        (["no", "", "yes", "no"], "classification", [0, np.nan, 1, 0], ("no", "yes")),
        (["1", "2", "n/a", "?"] * 9, "classification", [1, 2, np.nan, np.nan] * 9, None),
        ([*map(str, range(20)), "unknown"], "regression", [*range(20), np.nan], None),
        (["7", "", "9", "7"] * 2, "classification", [7, np.nan, 9, 7] * 2, None),
        (["7.5", "", "9", "7"], "regression", [7.5, np.nan, 9, 7], None),
    ],
)
def test_the_task_is_that_of_the_target(write, column, task, y, names):
    lines = ["x,target", *(f"{row},{value}" for row, value in enumerate(column))]
    d = datasets.load(write("t.csv", "\n".join(lines)))
    assert (d.task, d.class_names) == (task, names) and np.array_equal(d.y, y, equal_nan=True)


def test_frame_gives_the_table_back(write):
    path = write("t.csv", "x,y\n0.5,dog\n1.5,\n2.5,cat\n")
    frame = datasets.load(path).frame()
    pd.testing.assert_frame_equal(frame.astype({"y": "object"}), pd.read_csv(path).astype({"y": "object"}))


def test_unknown_targets_are_what_the_estimators_call_unknown(write):
    rows = [f"{x},{x % 7},{'' if x % 3 else ('low' if x < 20 else 'high')}" for x in range(40)]
    d = datasets.load(write("t.csv", "\n".join(["a,b,level", *rows])))
    model = SDR(n_prototypes=4, random_state=0).fit(d.X, d.y)
    assert [d.class_names[int(code)] for code in model.classes_] == ["high", "low"]


def test_missing_features_stay_missing_and_are_seen(write):
    d = datasets.load(write("t.csv", "a,b,y\n1,,2.5\n,4,3.5\n"))
    assert np.array_equal(d.X, [[1, np.nan], [np.nan, 4]], equal_nan=True) and "2 missing in X" in repr(d)


def test_booleans_are_numbers(write):
    assert datasets.load(write("t.csv", "a,y\nTrue,0.5\nFalse,1.5\n")).X.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("city,size,y\nParis,1,0.5\nRome,2,1.5\n", None, "Column 'city' .* holds 'Paris'.*get_dummies"),
        ("day,y\n2020-01-01,1.5\n2021-01-01,2.5\n", None, "difference in days"),
        ("a,b,y\nu,v,1.5\nu,v,2.5\n", None, "and so do 1 more: b"),
        ("id,y\n9007199254740993,1.5\n1,2.5\n", None, "Column 'id' .* beyond 2\\^53"),
        ("a,id\n1,9007199254740993\n1,-9007199254740993\n", None, "Column 'id' .* beyond 2\\^53"),
        (SMALL, "prise", "no column 'prise'. Did you mean 'price'\\? It has a, b, price"),
        (SMALL, ["a", "a"], "name a column twice"),
        (SMALL, [], "at least one"),
        (SMALL, ["a", "b", "price"], "no column besides the target"),
        ("a,b,y\n", None, "no rows"),
        ("", None, "is empty"),
        ("a\n1\n2\n", None, "one column"),
        (",a,y\n0,1.5,2.5\n1,2.5,3.5\n", None, r"column without a name \('column 1' here\).*index=False"),
        ("1.5,2.5,3\n4,5,6\n", None, "first row .* holds numbers"),
        ("a,y\n1,\n2,\n", None, "has no values"),
        ("a,b,y\n1,u,1\n2,v,2\n", ["b", "y"], "Column 'b' should hold numbers but has 'u'.* target of t.csv"),
        ("a,y\n1,3\n2,3\n", None, "single value"),
        ("a,y\n1,u\n2,v\n3,w\n", None, "too many for classes"),
        ("a,y\n1,31.12.2020\n2,01.02.2021\n3,01.02.2022\n", None, "holds dates"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(write, text, target, said):
    with pytest.raises(InvalidInputError, match=said):
        datasets.load(write("t.csv", text), target=target)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"a,y\n\x8f,1\n", "cannot be read as csv"),
        ("t.csv", b"PK\x03\x04\x00", "looks like an Excel workbook"),
        ("t.csv", 'a,y\n"1,2\n', "cannot be read as csv"),
        ("t.doc", b"x", r"ends in none of \.csv"),
        ("t.npz", b"x", "not a zip archive"),
        ("t", b"x", "ends in none of"),
    ],
)
def test_a_file_of_another_kind_says_so(write, name, content, said):
    with pytest.raises(DatasetFileError, match=said):
        datasets.load(write(name, content))


@pytest.mark.parametrize("name", ["missing.csv", "folder/missing.npz"])
def test_a_missing_file_says_where_was_looked(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetFileError, match=f"no file {name}.*{tmp_path}"):
        datasets.load(name)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DatasetError):
        datasets.load(tmp_path)


X, Y = np.arange(12.0).reshape(6, 2), np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])


@pytest.mark.parametrize(
    ("arrays", "target", "y"),
    [
        ({"y": Y}, None, Y),
        ({"labels": np.array([1, 1, 1, 2, 2, 2])}, None, np.array([1, 1, 1, 2, 2, 2])),
        ({"y": -Y, "other": Y}, "other", Y),
        ({"y": Y[:, None]}, None, Y),
        ({"y": np.column_stack([Y, -Y])}, None, np.column_stack([Y, -Y])),
        ({"y": np.array(["b", "a", "b", "b", "a", "a"])}, None, np.array([1, 0, 1, 1, 0, 0])),
    ],
)
def test_arrays_of_an_npz(tmp_path, arrays, target, y):
    np.savez(tmp_path / "t.npz", X=X, **arrays)
    d = datasets.load(tmp_path / "t.npz", target=target)
    assert np.array_equal(d.X, X) and np.array_equal(d.y, y) and d.y.shape == y.shape


def test_images_of_an_npz_are_flattened(tmp_path, rng):
    images = rng.integers(0, 256, size=(6, 4, 5), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", X=images, y=Y)
    d = datasets.load(tmp_path / "t.npz")
    assert np.array_equal(d.X.reshape(-1, *d.image_shape), images)


@pytest.mark.parametrize(
    ("arrays", "target", "said"),
    [
        ({"images": X, "y": Y}, None, "no array 'X'; it has images, y"),
        ({"X": X}, None, "no array 'y'; it has X"),
        ({"X": X, "y": Y}, "z", "no array 'z'"),
        ({"X": X, "y": Y}, ["y", "z"], "one array"),
        ({"X": X, "y": Y[:3]}, None, r"X has shape \(6, 2\) and y \(3,\)"),
        ({"X": Y, "y": Y}, None, r"X has shape \(6,\)"),
        ({"X": X, "y": np.float64(1)}, None, r"y \(\)"),
        ({"X": X[:0], "y": Y[:0]}, None, r"X has shape \(0, 2\)"),
        ({"X": X.astype(str), "y": Y}, None, "Column 'x0'"),
        ({"X": X + 1j, "y": Y}, None, "Column 'x0'"),
    ],
)
def test_arrays_that_cannot_be_used_say_why(tmp_path, arrays, target, said):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(InvalidInputError, match=said):
        datasets.load(tmp_path / "t.npz", target=target)


def test_an_npz_with_a_pickle_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(DatasetFileError, match="allow_pickle"):
        datasets.load(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("t.parquet", "pyarrow", r"pip install 'distreduce\[parquet\]'"),
        ("t.h5ad", "anndata", r"pip install 'distreduce\[anndata\]'"),
    ],
)
def test_a_missing_package_is_named_with_the_command(write, monkeypatch, name, package, command):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    with pytest.raises(MissingDependencyError, match=command):
        datasets.load(write(name, b"x"))


def test_parquet_keeps_numbers_and_categories(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {"a": [1.5, None, 2.5], "b": pd.array([1, 2, None], "Int64"), "y": pd.Categorical(list("xyx"))}
    )
    table.to_parquet(tmp_path / "t.parquet")
    d = datasets.load(tmp_path / "t.parquet")
    assert np.array_equal(d.X, [[1.5, 1], [np.nan, 2], [2.5, np.nan]], equal_nan=True)
    assert (d.y.tolist(), d.class_names) == ([0, 1, 0], ("x", "y"))


def test_a_broken_parquet_file_says_so(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(DatasetFileError, match="cannot be read as parquet"):
        datasets.load(write("t.parquet", b"no parquet"))


def nullable_strings(anndata):
    """pandas 3 makes all text such; anndata 0.10 has no setting for it."""
    known = hasattr(anndata, "settings")
    return anndata.settings.override(allow_write_nullable_strings=True) if known else contextlib.nullcontext()


@pytest.fixture
def cells(tmp_path):
    """``cells(X)`` writes an h5ad file of six cells with their types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata warns about packages of its own
        anndata = pytest.importorskip("anndata")

        def put(matrix):
            table = anndata.AnnData(matrix, obs=pd.DataFrame({"cell_type": pd.Categorical(list("TTBTBB"))}))
            with nullable_strings(anndata):
                table.write_h5ad(tmp_path / "t.h5ad")
            return tmp_path / "t.h5ad"

        yield put


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_cells_of_an_h5ad_file(cells, kind):
    d = datasets.load(cells(kind(X)), target="cell_type")
    assert np.array_equal(d.X, X) and [d.class_names[code] for code in d.y] == list("TTBTBB")


@pytest.mark.parametrize(("target", "said"), [(None, "Name the column of obs"), ("type", "no column 'type' in obs")])
def test_the_target_of_an_h5ad_file_must_be_named(cells, target, said):
    with pytest.raises(InvalidInputError, match=f"{said}.*cell_type"):
        datasets.load(cells(X), target=target)
