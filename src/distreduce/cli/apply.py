"""``distreduce transform | predict | report``: use a folder that ``distreduce fit`` wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from distreduce.tables.recipe import ColumnRecipe

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder that `distreduce fit` wrote.", show_default=False)
]
New = Annotated[Path, typer.Argument(metavar="FILE", help="New rows, with the columns of the fit by name.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def transform(
    folder: Directory,
    file: New,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write; - is standard output.")] = Path(
        "embedding.csv"
    ),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Place new rows in the picture: the nearest prototype and the place of each.

    Columns are found by name: their order is free, others are ignored,
    a missing one is an error. Levels that the fit did not know count as "other",
    or as none of the levels if the fit had no "other".
    """
    from distreduce.cli._folder import Folder
    from distreduce.cli._tables import places

    here = Folder.of(folder)
    recipe = here.recipe()
    model = here.model(recipe)
    _apply(file, recipe, lambda X: places(model, model.transform(X)), out, overwrite, quiet)


def predict(
    folder: Directory,
    file: New,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write; - is standard output.")] = Path(
        "predictions.csv"
    ),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows: mean, standard deviation and 5, 50, 95 % quantiles; or class and probabilities.

    Columns are found by name: their order is free, others are ignored,
    a missing one is an error. Levels that the fit did not know count as "other",
    or as none of the levels if the fit had no "other".
    """
    from distreduce.cli._folder import Folder
    from distreduce.cli._tables import predictions

    here = Folder.of(folder)
    recipe = here.recipe()
    predictor = here.predictor(recipe)
    _apply(file, recipe, lambda X: predictions(predictor, X, recipe.targets), out, overwrite, quiet)


def report(
    folder: Directory,
    data: Annotated[
        Path | None,
        typer.Option(help="The file that was fitted, if it is not where it was.", show_default=False),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write report.html of a fit again; the rows come from the file that was fitted."""
    from distreduce.cli._folder import REPORT, Folder
    from distreduce.cli._page import rebuild_page

    path = folder / REPORT
    rebuild_page(Folder.of(folder), path, data)
    if not quiet:
        typer.echo(f"Wrote {path}")
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def _apply(
    file: Path, recipe: ColumnRecipe, answer: Callable[[Any], pd.DataFrame], out: Path, overwrite: bool, quiet: bool
) -> None:
    from distreduce.cli._answers import write_answers
    from distreduce.tables.output import is_standard, whole_file

    with whole_file(out, overwrite=overwrite) as place:
        done = write_answers(file, recipe, answer, place)
    if quiet:
        return
    beside = is_standard(out)  # words must not get into the table
    if done.ignored:
        shown = ", ".join(done.ignored[:5]) + (", …" if len(done.ignored) > 5 else "")
        typer.echo(f"Ignored, as the fit did not know them: {shown}", err=beside)
    if done.incomplete:
        typer.echo(f"Left empty, as values are missing: {done.incomplete:,} rows", err=beside)
    typer.echo(f"Wrote {done.rows:,} rows to {out}", err=beside)
