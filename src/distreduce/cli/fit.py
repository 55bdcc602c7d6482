"""``distreduce fit``: a file of one's own in, a folder with models, tables and a report out."""

from __future__ import annotations

import json
import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer


class Missing(str, Enum):
    """What to do with missing values."""

    refuse = "refuse"
    impute = "impute"
    drop = "drop"


class Task(str, Enum):
    """How to read the target."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Unlabelled(str, Enum):
    """What to do with rows that have no target."""

    keep = "keep"
    drop = "drop"


def fit(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Table: .csv, .tsv, .parquet, .npz (arrays X and y) or .h5ad.")
    ],
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict; give it again for several numbers."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder to write; by default distreduce-FILE.", show_default=False
        ),
    ] = None,
    prototypes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Prototypes; by default a tenth of the rows, 10 to 50, at least two a class; one a row below 20 rows. "
            "0: one for every row.",
            show_default=False,
        ),
    ] = None,
    components: Annotated[int, typer.Option(min=1, help="Dimensions of the embedding.")] = 2,
    task: Annotated[
        Task, typer.Option(help="auto: texts, true/false and whole numbers that repeat are classes.")
    ] = Task.auto,
    missing: Annotated[
        Missing,
        typer.Option(help="impute: medians, and a column that says so; drop: leave such rows out."),
    ] = Missing.refuse,
    unlabelled: Annotated[
        Unlabelled, typer.Option(help="Rows without a target: keep them in the picture, or drop them.")
    ] = Unlabelled.keep,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to take as a category whatever it holds; repeatable."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; repeatable.")] = None,
    eta: Annotated[
        float | None, typer.Option(min=0, help="Weight of the target in the embedding.", show_default=False)
    ] = None,
    perplexity: Annotated[
        float | None, typer.Option(min=1, help="Neighbours that a row sees.", show_default=False)
    ] = None,
    test_size: Annotated[float, typer.Option(min=0, max=0.9, help="Share of rows held out for the scores.")] = 0.2,
    max_rows: Annotated[
        int,
        typer.Option(min=20, max=10_000, help="Rows that models are fitted to; of more, so many are drawn at random."),
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")] = 0,
    predict: Annotated[
        bool, typer.Option("--predict/--no-predict", help="Whether to fit and score a predictor as well.")
    ] = True,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the state of the picture's fit here; the same command goes on from it.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder of an earlier fit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print metrics.json instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Reduce a table of your own: a picture with prototypes, a predictor with uncertainty, and a report.

    What becomes of the columns:

    numbers: scaled to mean 0 and unit spread.
    texts: a 0/1 column a level; levels beyond the 30 most frequent are "other".
    true/false: 1 and 0.
    dates: days; sine and cosine of the year, the week, the day if they span it.
    left out: empty, constant, counting rows, another text in nearly every row.

    Writes models, prototypes.csv, embedding.csv, held_out.csv, metrics.json,
    recipe.json and report.html: all of them or, if anything fails, nothing.
    """
    from distreduce.cli import _folder, _screen
    from distreduce.cli._models import Choices
    from distreduce.cli._scores import show_scores
    from distreduce.cli._study import run_study, steps
    from distreduce.solver.checkpoint import check_kind, check_place
    from distreduce.tables.output import whole_folder
    from distreduce.tables.prepare import prepare

    if prototypes == 1:
        raise typer.BadParameter(
            "one prototype tells nothing apart; give two or more, or 0.", param_hint="--prototypes"
        )
    if checkpoint is not None:
        check_place(checkpoint, 0)
        check_kind(checkpoint)
    kept = None if checkpoint is None else str(checkpoint)
    choices = Choices(prototypes, components, eta, perplexity, test_size, max_rows, seed, predict, kept)
    asked = out or Path(f"distreduce-{file.stem}")
    loud = not (quiet or as_json)
    with whole_folder(asked, _folder.FILES, overwrite=overwrite) as folder:
        data = prepare(
            file, target or [], task=task.value, missing=missing.value, unlabelled=unlabelled.value,
            categories=category or [], leave_out=drop or [],
        )  # fmt: skip
        if loud:
            _screen.show_guesses(data, file.name)
        with _screen.progress(steps(choices) + 2, silent=not loud) as advance:
            study = run_study(data, choices, advance)
            advance("tables and report")
            command = shlex.join(["distreduce", *sys.argv[1:]])
            source = _folder.Source.of(file, target or [], command, task.value)
            metrics = _folder.collect_metrics(data, study, choices, source)
            _folder.write_results(folder, data, study, metrics)
            _write_page(folder, data, study, file.name, command)
    if as_json:
        typer.echo(json.dumps({"folder": str(asked), **metrics}, indent=2, ensure_ascii=False))
    elif loud:
        show_scores(metrics)
        _screen.show_notes(metrics["notes"])
        _screen.show_next(asked, metrics)


def _write_page(folder: Path, data: Any, study: Any, title: str, command: str) -> None:
    from distreduce.cli._folder import REPORT
    from distreduce.cli._page import write_page

    rows = study.fit_rows
    held_out = None if study.comparison is None else study.comparison.predictions()
    write_page(
        folder / REPORT, study.model, data.X[rows], data.target.rows(rows), data.table.iloc[rows], held_out,
        row_numbers=rows, image_shape=data.recipe.image_shape, title=title, command=command,
    )  # fmt: skip
