"""``distreduce transform | predict``: apply the models of a folder that ``distreduce fit`` wrote to new rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distreduce._utils.text import count_of, list_words, strip_control
from distreduce.cli._names import find_folder
from distreduce.exceptions import InvalidInputError
from distreduce.tables.findings import Findings
from distreduce.tables.formats import TextLayout, check_file
from distreduce.tables.output import is_standard, whole_file

if TYPE_CHECKING:
    import pandas as pd

    from distreduce._utils.typing import Array
    from distreduce.cli.fitted_folder import Folder
    from distreduce.tables.recipe import ColumnRecipe

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that `distreduce fit` wrote.")]
New = Annotated[Path, typer.Argument(metavar="FILE", help="New rows, with the columns of the fit.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Table to write; - is standard output.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop if a column has levels that the fit did not know, or another scale.")
]
Separator = Annotated[
    str | None,
    typer.Option("--sep", help='Separator of a text file, such as ";", tab or space; by default it is recognised.'),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row of the text file holds no column names.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="Write text that begins with = + - @ as it is, without the apostrophe that stops spreadsheets."
    ),
]


def transform(
    folder: Directory,
    file: New,
    out: Out = Path("embedding.csv"),
    sep: Separator = None,
    no_header: NoHeader = False,
    strict: Strict = False,
    raw: Raw = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Place new rows in the picture: the place of each row and the prototype nearest to that place.

    Columns are matched by name, in any order; others are ignored, and a missing
    one is an error. Texts that the fit did not know count as "other", or as none
    of the levels if the fit had no "other", and are reported.
    """
    layout = read_layout(sep, no_header)
    results = open_results(folder, file)
    from distreduce.cli._tables import place_table

    recipe, model = results.recipe, results.model
    _apply(file, recipe, lambda X: place_table(model, model.transform(X)), out, strict, raw, overwrite, quiet, layout)


def predict(
    folder: Directory,
    file: New,
    out: Out = Path("predictions.csv"),
    sep: Separator = None,
    no_header: NoHeader = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Add an interval, or a set of classes, to every row: this share of them contains the true value "
            "(conformal prediction). The share is that of all rows; within a rare class it may be smaller.",
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Let the share of --coverage hold within every class.")
    ] = False,
    strict: Strict = False,
    raw: Raw = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows: mean, standard deviation and 5, 50, 95 % quantiles; or class and probabilities.

    Columns are matched by name, in any order; others are ignored, and a missing
    one is an error. Texts that the fit did not know count as "other", or as none
    of the levels if the fit had no "other", and are reported.
    The column `novelty` is a p-value: small where a row is unlike those of the fit.
    """
    layout = read_layout(sep, no_header)
    results = open_results(folder, file)
    from distreduce.cli._tables import prediction_table

    recipe, predictor = results.recipe, results.predictor
    if per_class and (coverage is None or not hasattr(predictor, "predict_set")):
        raise typer.BadParameter("needs --coverage, and classes.", param_hint="--per-class")
    table = partial(prediction_table, predictor, recipe=recipe, coverage=coverage, per_class=per_class)
    _apply(file, recipe, table, out, strict, raw, overwrite, quiet, layout)


def read_layout(separator: str | None, no_header: bool) -> TextLayout:
    """Return the layout of a text file as the options say it."""
    names = {"tab": "\t", "\\t": "\t", "space": " ", "whitespace": " "}
    separator = None if separator is None else names.get(separator, separator)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise typer.BadParameter("give one character, tab or space.", param_hint="--sep")
    return TextLayout(separator, not no_header)


def open_results(folder: Path, file: Path) -> Folder:
    """Check both places before what takes seconds to import."""
    find_folder(folder)
    check_file(file)
    from distreduce.cli.fitted_folder import Folder

    return Folder._open(folder)


def _apply(
    file: Path, recipe: ColumnRecipe, answer: Callable[[Array], pd.DataFrame], out: Path,
    strict: bool, raw: bool, overwrite: bool, quiet: bool, layout: TextLayout,
) -> None:  # fmt: skip
    """Write ``answer(X)`` with one row per row of `file`, numbered from 0.

    The file is read in chunks, so a file of any length needs the memory of one chunk.
    """
    import numpy as np

    from distreduce.cli._screen import count_rows
    from distreduce.cli._tables import answer_rows, name_rows, write_table
    from distreduce.tables.reading import locate_cells, read_chunks

    n_rows, n_incomplete, findings = 0, 0, Findings()
    ignored: list[str] = []
    # A target in the new file is not worth a message.
    known = {*recipe.targets, recipe.id_column, *(rule.name for rule in recipe.rules)}
    with whole_file(out, overwrite=overwrite) as place, count_rows(silent=quiet) as show:
        for part in read_chunks(file, recipe.as_text, layout=layout):
            with locate_cells(file, layout):
                table, complete = answer_rows(recipe, part, file.name, findings, answer)
            table.insert(0, "row", np.arange(n_rows, n_rows + len(table)))
            # Chunks are numbered on from the first row of the file.
            table = name_rows(table, part.set_axis(table["row"]), recipe.id_column)
            write_table(table, place, raw=raw, mode="a", header=n_rows == 0)
            n_rows, n_incomplete = n_rows + len(table), n_incomplete + int((~complete).sum())
            show(n_rows)
            ignored = [str(name) for name in part.columns if name not in known]
        if not n_rows:
            raise InvalidInputError(f"{file.name} has column names but no rows.")
        surprises = findings.describe_surprises()
        if strict and surprises:
            raise InvalidInputError(f"{file.name} does not match the fit (--strict). {' '.join(surprises)}")
    if quiet:
        return
    lines = [f"Ignored columns that the fit did not have: {list_words(ignored)}"] if ignored else []
    if n_incomplete:
        lines.append(f"Left empty because of missing values: {count_of(n_incomplete, 'row')}")
    elif findings.missing:
        lines.append(recipe.describe_missing(findings))
    for line in (*lines, *surprises, f"Wrote {count_of(n_rows, 'row')} to {out}"):
        typer.echo(strip_control(line), err=is_standard(out))  # messages must not get into the table
