"""The files of a folder that ``distreduce fit`` writes; commands that only look for a folder import nothing else."""

from __future__ import annotations

from pathlib import Path

import typer

from distreduce._utils.text import strip_control
from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import recover_folder

MODEL, PREDICTOR, RECIPE, METRICS = "model.safetensors", "predictor.safetensors", "recipe.json", "metrics.json"
PROTOTYPES, EMBEDDING, HELD_OUT, REPORT = "prototypes.csv", "embedding.csv", "held_out.csv", "report.html"
FILES = (MODEL, PREDICTOR, RECIPE, METRICS, PROTOTYPES, EMBEDDING, HELD_OUT, REPORT)


def find_folder(path: Path) -> None:
    """Raise InvalidInputError if there is no folder, unless a killed fit moved it away; say what was recovered."""
    recovered = recover_folder(path, FILES)
    if not path.is_dir():
        raise InvalidInputError(f"There is no folder {path}; name one that `distreduce fit` wrote.")
    for line in recovered:
        typer.echo(strip_control(line), err=True)
