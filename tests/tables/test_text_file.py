"""Separated text as people have it."""

from __future__ import annotations

import gzip
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distreduce.exceptions import DatasetFileError, InvalidInputError
from distreduce.tables import text_file
from distreduce.tables.formats import TextLayout
from distreduce.tables.text_file import TextFile


@pytest.fixture
def write(tmp_path):
    """``write("x.csv", content)`` returns the path."""

    def put(name: str, content: str | bytes, encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return put


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_follows_from_the_header(write, separator):
    text = "a,b,c\n1.5,x,2\n3,y,4\n".replace(",", separator)
    assert TextFile.detect(write("t.csv", text)).read().to_numpy().tolist() == [[1.5, "x", 2], [3, "y", 4]]


def test_a_separator_in_quotes_does_not_separate(write):
    assert TextFile.detect(write("t.csv", '"a, or, a";b\n1;2\n')).header.names == ("a, or, a", "b")


def test_a_tsv_may_have_commas_in_its_names(write):
    assert TextFile.detect(write("t.tsv", "a,a,a\tb\n1\t2\n")).header.names == ("a,a,a", "b")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1,5;2\n-0,25;3\n", [1.5, -0.25]),
        ("a;b\n1.5;2\n-0.25;3\n", [1.5, -0.25]),
        ("a\tb\n1,5\t2\n2\t3\n", [1.5, 2]),
    ],
)
def test_decimal_commas_are_numbers_where_commas_do_not_separate(write, text, values):
    assert TextFile.detect(write("t.csv", text)).read()["a"].tolist() == values


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_that_spreadsheets_write(write, encoding):
    assert TextFile.detect(write("t.csv", "größe,y\n1,é\n", encoding)).read().columns.tolist() == ["größe", "y"]


def test_bytes_that_are_no_utf8_may_come_late(write):
    text = "a,y\n" + "1,x\n" * 40_000 + "1,é\n"
    assert TextFile.detect(write("t.csv", text, "cp1252")).read()["y"].iloc[-1] == "é"


def test_another_encoding_is_said(write):
    assert "Windows-1252" in TextFile.detect(write("t.csv", "é,y\n1,2\n", "cp1252")).notes[0]


def test_names_are_trimmed_and_made_unique(write):
    assert TextFile.detect(write("t.csv", ' a ,a,"a (2)",,\n1,2,3,4,5\n')).header.names == (
        "a", "a (3)", "a (2)", "column 4", "column 5"
    )  # fmt: skip


@settings(max_examples=50)
@given(names=st.lists(st.sampled_from(["a", "b", "a (2)", "", "column 2"]), min_size=2, max_size=7))
def test_no_name_comes_twice(names, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text(",".join(names) + ",z\n" + ",".join("1" for _ in names) + ",1\n")
    found = TextFile.detect(path).header.names
    assert len(set(found)) == len(names) + 1 and all(found)


def test_usual_words_for_nothing_are_missing(write):
    cells = TextFile.detect(write("t.csv", "a,y\n?,1\n-,1\n.,1\nNA,1\n ?,1\n,1\n2,1\n")).read()["a"]
    assert cells.isna().tolist() == [True] * 6 + [False]


def test_columns_asked_for_as_text_keep_their_zeros(write):
    assert TextFile.detect(write("t.csv", "zip,y\n007,1\n")).read(["zip", "other"])["zip"].tolist() == ["007"]


def test_parts_are_the_whole(write):
    file = TextFile.detect(write("t.csv", "a,y\n" + "".join(f"{i},{i / 3}\n" for i in range(25))))
    parts = list(file.read_chunks(10))
    assert [len(part) for part in parts] == [10, 10, 5]
    assert [cell for part in parts for cell in part["y"]] == file.read()["y"].tolist()


def test_reading_in_parts_leaves_the_warning_filters_alone(write):
    file = TextFile.detect(write("t.csv", "a,y\n1,2\n3,4\n"))
    before = list(warnings.filters)
    for _ in file.read_chunks(1):
        assert warnings.filters == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04\x00\x00", "Excel"),
        (b"\x00\x01\x02", "a binary file"),
        ("a,y\n1,2\n3,4,5\n", "line 3 has 3 cells, but there are 2 columns"),
        ("a,y\n1,2,3\n3,4,5\n", "longer than its first line"),
        ('a,y\n"1,2\n', "cannot be read as csv"),
        ('"a,y\n' + "1,2\n" * 100_000, "field limit"),
    ],
)
def test_a_file_without_a_table_is_an_error(write, content, said):
    with pytest.raises(DatasetFileError, match=said):
        TextFile.detect(write("t.csv", content)).read()


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_called_empty(write, content):
    with pytest.raises(InvalidInputError, match="is empty"):
        TextFile.detect(write("t.csv", content))


def test_a_header_of_numbers_is_an_error(write):
    with pytest.raises(InvalidInputError, match="first row .* holds numbers"):
        TextFile.detect(write("t.csv", "1,2\n3,4\n"))


def test_names_may_be_longer_than_the_sample(write):
    names = [f"a gene with a long name {number}" for number in range(3000)]
    text = ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n"
    file = TextFile.detect(write("t.csv", text))
    assert file.header.names == tuple(names) and file.read().shape == (1, 3000)


def test_a_decimal_comma_is_seen_below_long_names(write):
    names = [f"a gene with a long name {number}" for number in range(3000)]
    text = ";".join(names) + "\n" + ";".join("1,5" for _ in names) + "\n"
    assert TextFile.detect(write("t.csv", text)).header.decimal == ","


def test_more_columns_than_can_be_read_are_refused(write, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_COLUMNS", 2)
    with pytest.raises(InvalidInputError, match="has 3 columns; at most 2 can be read"):
        TextFile.detect(write("t.csv", "a,b,c\n1,2,3\n"))


def test_names_without_an_end_are_refused(write, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_HEADER", 1000)
    with pytest.raises(InvalidInputError, match="more than 1,000 characters before its first row"):
        TextFile.detect(write("t.csv", "a," * 1000))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (",,\n\n,,\na,b,c\n1,2,3\n", ("a", "b", "c")),
        ('"",""\na,b\n1,2\n', ("a", "b")),
        ('a;"b, or\nc, or d";e\n1;2;3\n', ("a", "b, or\nc, or d", "e")),
        ("sep=;\r\na,x;b\r\n1;2\r\n", ("a,x", "b")),
        ('"sep=,"\na,b\n1,2\n', ("a", "b")),
        ('a, "b, c"\n1,2\n', ("a", "b, c")),
        ("#id,b\n1,2\n", ("#id", "b")),
    ],
)
def test_the_names_are_the_first_record_with_anything_in_it(write, text, names):
    file = TextFile.detect(write("t.csv", text))
    assert file.header.names == names and file.read().to_numpy().tolist() == [[*range(1, len(names) + 1)]]


@pytest.mark.parametrize("comment", ["# made by hand", "# made by hand, on Monday, twice"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_comment_above_the_names_is_said_to_be_one(write, comment, separator):
    text = f"{comment}\na{separator}b\n1{separator}2\n"
    with pytest.raises(InvalidInputError, match="begins with a comment .*# made by hand"):
        TextFile.detect(write("t.csv", text))


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("title", ["Report Q3 2026", "Report Q3 2026{0}{0}\n"])
def test_a_title_above_the_names_is_said_to_be_one(write, title, separator):
    text = (
        f"{title.format(separator)}\na{separator}b{separator}c\nx{separator}2{separator}3\ny{separator}4{separator}5\n"
    )
    with pytest.raises(InvalidInputError, match="first line of t.csv .'Report Q3 2026'. looks like a title"):
        TextFile.detect(write("t.csv", text))


@pytest.mark.parametrize(
    "text",
    [
        "name\nanna\nbert\n",
        "name,\nanna,red\nbert,blue\n",
        "name,\nanna,1\nbert,2\n",
        "name\nanna b\nbert 5\n",
        "name,,\nanna,red,\nbert,blue,5\n",
    ],
)
def test_a_table_with_one_name_has_no_title(write, text):
    assert TextFile.detect(write("t.csv", text)).header.names[0] == "name"


@pytest.mark.parametrize("cells", [["950", "1,250", "2,400"], ["1,234,567", "1,250"]])
def test_commas_that_may_be_of_thousands_are_refused(write, cells):
    with pytest.raises(InvalidInputError, match=r"Column 'price' of t.csv has '1,2.*may mean thousands or a fraction"):
        TextFile.detect(write("t.csv", "a;price\n" + "".join(f"x;{cell}\n" for cell in cells)))


@pytest.mark.parametrize("other", ["1,5", "0,250", ",5", "12345,678"])
def test_another_number_tells_that_commas_are_decimal(write, other):
    file = TextFile.detect(write("t.csv", f"a;b\n{other};1,250\n"))
    assert file.read()["b"].tolist() == [1.25] and "decimal comma" in file.notes[0]


def test_codes_with_leading_zeros_stay_text(tmp_path):
    (tmp_path / "t.csv").write_text("plz,n,share,gap\n01234,1,0.5,\n10115,2,0.25,07\n99999,30,0,11\n")
    table = TextFile.detect(tmp_path / "t.csv").read()
    assert table["plz"].tolist() == ["01234", "10115", "99999"] and table["gap"].tolist()[1:] == ["07", "11"]
    assert table["n"].dtype.kind == "i" and table["share"].dtype.kind == "f"


def test_blanks_separate_if_nothing_else_does(write):
    table = TextFile.detect(write("t.txt", " mpg   hp  name\n 18.0  130  'a'\n15.5   9  b\n")).read()
    assert table.to_numpy().tolist() == [[18.0, 130, "'a'"], [15.5, 9, "b"]] and list(table) == ["mpg", "hp", "name"]


def test_a_file_without_names_gets_numbered_ones(write):
    table = TextFile.detect(write("t.dat", "5.1,3.5,Iris\n4.9,3.0,Iris\n"), TextLayout(named=False)).read()
    assert list(table) == ["column 1", "column 2", "column 3"] and table["column 1"].tolist() == [5.1, 4.9]


def test_the_separator_can_be_said(write):
    table = TextFile.detect(write("t.csv", "a:b\n1,5:2\n"), TextLayout(":")).read()
    assert list(table) == ["a", "b"]


def test_a_compressed_file_is_the_same(write):
    table = TextFile.detect(write("t.csv.gz", gzip.compress(b"a,b\n1,x\n2,y\n"))).read()
    assert table.to_numpy().tolist() == [[1, "x"], [2, "y"]]


def test_a_compressed_file_of_gigabytes_is_refused(write, monkeypatch):
    monkeypatch.setattr(text_file, "allowed_bytes", lambda path: 10**6)
    with pytest.raises(DatasetFileError, match="would unpack to more than"):
        TextFile.detect(write("t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 10**6)))


def test_a_damaged_compressed_file_is_one_sentence(write):
    with pytest.raises(DatasetFileError, match="cannot be read as csv"):
        TextFile.detect(write("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99)[:-9]))


def test_the_line_of_a_row_counts_blank_lines_and_cells_of_several_lines(write):
    text = TextFile.detect(write("t.csv", 'sep=;\n\na;b\n1;"x\ny"\n\n2;z\n3;w\n'))
    assert [text.find_line(row) for row in range(3)] == [5, 7, 8] and len(text.read()) == 3
