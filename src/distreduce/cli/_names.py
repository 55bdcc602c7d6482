"""The files of a folder that ``distreduce fit`` writes; commands that only look for a folder import nothing else."""

from __future__ import annotations

from pathlib import Path

from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import recover_folder

MODEL, PREDICTOR, RECIPE, METRICS = "model.safetensors", "predictor.safetensors", "recipe.json", "metrics.json"
PROTOTYPES, EMBEDDING, HELD_OUT, REPORT = "prototypes.csv", "embedding.csv", "held_out.csv", "report.html"
FILES = (MODEL, PREDICTOR, RECIPE, METRICS, PROTOTYPES, EMBEDDING, HELD_OUT, REPORT)


def find_folder(path: Path) -> list[str]:
    """Raise InvalidInputError if there is no folder, unless a killed fit moved it away; return what was recovered."""
    recovered = recover_folder(path, FILES)
    if not path.is_dir():
        raise InvalidInputError(f"There is no folder {path}; name one that `distreduce fit` wrote.")
    return recovered
