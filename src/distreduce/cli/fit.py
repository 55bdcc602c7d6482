"""``distreduce fit``: reads a file, writes a folder with models, tables and a report."""

from __future__ import annotations

import json
import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from distreduce.cli._names import FILES, REPORT
from distreduce.cli.apply import NoHeader, Quiet, Raw, Separator, read_layout
from distreduce.tables.formats import check_file
from distreduce.tables.output import check_folder, whole_folder

TABLES = "tables and report"
Column = str | None
Columns = list[str] | None
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
MetricsJson = Annotated[bool, typer.Option("--json", help="Print metrics.json instead of tables.")]


# The values that an option can have; texts, because click 8.1 looks for a default among texts.
Missing = Enum("Missing", {"impute": "impute", "drop": "drop", "refuse": "refuse"}, type=str)
Task = Enum("Task", {"auto": "auto", "regression": "regression", "classification": "classification"}, type=str)
Expert = Enum("Expert", {"linear": "linear", "forest": "forest", "boosting": "boosting", "none": "none"}, type=str)
Unlabelled = Enum("Unlabelled", {"keep": "keep", "drop": "drop"}, type=str)


def _column(about: str, *names: str) -> Any:
    return typer.Option(*names, metavar="COLUMN", help=about)


def fit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Table: .csv, .tsv, .txt, .csv.gz, .xlsx, .parquet, .npz (X and y) or .h5ad."
        ),
    ],
    target: Annotated[
        Columns, _column("Column to predict; repeat it for more (numbers only).", "--target", "-t")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder to write. Default: distreduce-FILE.")
    ] = None,
    prototypes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="At most this many prototypes; 0 is one per row. Default: a tenth of the rows, from 10 to 50 and at "
            "least two per class; with fewer than 20 rows, one per row.",
        ),
    ] = None,
    components: Annotated[int, typer.Option(min=1, help="Dimensions of the picture.")] = 2,
    task: Annotated[
        Task, typer.Option(help="auto takes text, true/false and up to 20 whole numbers that repeat as classes.")
    ] = Task.auto,
    missing: Annotated[
        Missing,
        typer.Option(
            help="Missing cells. impute: fill in the median, and mark them in a column; drop: omit their rows; "
            "refuse: stop."
        ),
    ] = Missing.impute,
    unlabelled: Annotated[
        Unlabelled, typer.Option(help="Rows without a target: keep them in the picture, or drop them.")
    ] = Unlabelled.keep,
    category: Annotated[Columns, _column("Column to read as a category whatever it holds; repeatable.")] = None,
    drop: Annotated[Columns, _column("Column to omit; repeatable.")] = None,
    id_column: Annotated[Column, _column("Column of row names: not a feature, but in every table.", "--id")] = None,
    keep: Annotated[Columns, _column("Column to use as a feature although it numbers the rows; repeatable.")] = None,
    group: Annotated[Column, _column("Column of groups, such as patients, held out as a whole. Not a feature.")] = None,
    time: Annotated[Column, _column("Column of dates or numbers: the latest rows are held out.")] = None,
    weights: Annotated[
        Column,
        _column("Column of weights, not a feature: whole numbers count equal rows, others are scaled to a mean of 1."),
    ] = None,
    sep: Separator = None,
    no_header: NoHeader = False,
    eta: Annotated[
        float | None, typer.Option(min=0, help="Weight of the target in the picture. Default: the number of rows.")
    ] = None,
    perplexity: Annotated[
        float | None, typer.Option(min=1, help="Effective number of neighbours of a row. Default: 30 or fewer.")
    ] = None,
    test_size: Annotated[float, typer.Option(min=0, max=0.9, help="Share of rows held out for the scores.")] = 0.2,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=20,
            help="Most rows in the picture; of a longer file, so many are drawn at random. The predictor uses all. "
            "Default: 100,000; 3,000 with --group, --time or --prototypes 0.",
        ),
    ] = None,
    seed: Seed = 0,
    predict: Annotated[
        bool, typer.Option("--predict/--no-predict", help="Whether to fit and score a predictor besides the picture.")
    ] = True,
    expert: Annotated[
        list[Expert] | None,
        typer.Option(
            help="Model that joins the Gaussian processes in the predictor; repeatable. Default: all; none: no others."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save the state of the picture's fit here; the same command resumes from it."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder of an earlier fit.")] = False,
    raw: Raw = False,
    as_json: MetricsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reduce your table to a picture with prototypes, fit a predictor with uncertainty, and write a report.

    Example: distreduce fit houses.csv --target price

    How columns are read:

    number: scaled to mean 0 and standard deviation 1.
    text: one 0/1 column per level; levels beyond the 30 most frequent are "other".
    true/false: 1 and 0.
    date: days; sine and cosine of the year, the week and the day if the dates span them.
    omitted: empty or constant columns, row numbers, text that differs in nearly every row.

    Writes models, prototypes.csv, embedding.csv, held_out.csv, metrics.json,
    recipe.json and report.html. If anything fails, it writes nothing.
    """
    _check_usage(prototypes, expert, group, time, holds_out=predict and test_size > 0)
    out = out or Path(f"distreduce-{Path(file.name.removesuffix('.gz')).stem}")
    layout = read_layout(sep, no_header)
    target, category, drop, keep = (
        [layout.name_column(each) for each in names or []] for names in (target, category, drop, keep)
    )
    id_column, group, time, weights = (name and layout.name_column(name) for name in (id_column, group, time, weights))
    check_file(file)
    check_folder(out, FILES, overwrite=overwrite)
    # Only now what takes seconds to import.
    from distreduce.cli import _screen
    from distreduce.cli._models import FitOptions, take_weights
    from distreduce.cli._study import plan_steps, run_study
    from distreduce.cli.fitted_folder import Source, collect_metrics, write_results
    from distreduce.cli.report import write_page
    from distreduce.solver.checkpoint import check_kind, check_place
    from distreduce.tables.aside import Aside
    from distreduce.tables.prepare import prepare
    from distreduce.tables.reading import locate_cells

    if checkpoint is not None:
        check_place(checkpoint, 0)
        check_kind(checkpoint)
    experts = None if not expert else tuple(dict.fromkeys(each.value for each in expert if each is not Expert.none))
    options = FitOptions(
        prototypes, components, eta, perplexity, test_size, max_rows, seed, predict,
        None if checkpoint is None else str(checkpoint), group, time, weights, experts,
    )  # fmt: skip
    verbose = not (quiet or as_json)
    # Everything is written into a hidden folder that takes its place at the end.
    with whole_folder(out, FILES, overwrite=overwrite, say=_screen.say_beside) as folder:
        with locate_cells(file, layout), _screen.count_rows(silent=not verbose):
            data = prepare(
                file, target, task=task.value, missing=missing.value, unlabelled=unlabelled.value, layout=layout,
                categories=category, leave_out=drop, keep=keep, id_column=id_column, aside=Aside(group, time, weights),
            )  # fmt: skip
        if verbose:
            _screen.show_guesses(data, file.name)
            _screen.show_notes(data.notes)  # now, because the rest may take minutes
        steps = plan_steps(options) | {TABLES: 0.08}
        with _screen.progress(steps, silent=not verbose) as advance:
            study = run_study(data, options, advance)
            advance(TABLES)
            # Tables, then the page, which shows the command to repeat.
            command = shlex.join(["distreduce", *sys.argv[1:]])
            source = Source.describe(file, target, command, task.value, layout)
            metrics = collect_metrics(data, study, options, source)
            write_results(folder, data, study, metrics, raw=raw)
            rows = study.fit_rows
            write_page(
                folder / REPORT, study.model, data.X[rows], data.target.rows(rows), data.table.iloc[rows],
                study.held_out, recipe=data.recipe, predictor=study.predictor, experts=metrics["experts"],
                row_numbers=rows, title=file.name, command=command, notes=metrics["notes"],
                split=(metrics["held_out"] or {}).get("how", ""), within=options.within,
                sample_weight=take_weights(data, rows), n_rows=len(data.table),
            )  # fmt: skip
    # Only now is the folder in its place.
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **metrics}, indent=2, ensure_ascii=False))
    elif verbose:
        _screen.show_results(data, study, metrics, options.within)
        _screen.show_next_steps(out, metrics)


def _check_usage(
    prototypes: int | None, expert: list[Expert] | None, group: Column, time: Column, *, holds_out: bool
) -> None:
    """Raise for options that contradict each other, before any file is read."""
    if prototypes == 1:
        raise typer.BadParameter(
            "one prototype distinguishes nothing; give two or more, or 0.", param_hint="--prototypes"
        )
    if expert and Expert.none in expert and len(set(expert)) > 1:
        raise typer.BadParameter("none does not go with other experts; leave it out.", param_hint="--expert")
    if (group or time) and not holds_out:
        raise typer.BadParameter(
            "nothing is held out with --no-predict or --test-size 0; leave one of them out.",
            param_hint="--group" if group else "--time",
        )
