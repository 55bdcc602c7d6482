"""The folder that ``distreduce fit`` writes and the other commands read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.hashing import file_sha256
from distreduce._utils.versions import library_versions
from distreduce.cli._models import FitOptions
from distreduce.cli._study import Study
from distreduce.cli._tables import CLASS, TRUTH, embedding_table, prototype_table
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError, ModelFileError
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.recipe import ColumnRecipe
from distreduce.tables.recipe_file import read_recipe, write_recipe
from distreduce.tables.text_file import EXACT

MODEL, PREDICTOR, RECIPE, METRICS = "model.safetensors", "predictor.safetensors", "recipe.json", "metrics.json"
PROTOTYPES, EMBEDDING, HELD_OUT, REPORT = "prototypes.csv", "embedding.csv", "held_out.csv", "report.html"
FILES = (MODEL, PREDICTOR, RECIPE, METRICS, PROTOTYPES, EMBEDDING, HELD_OUT, REPORT)
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Source:
    """The fitted file, the targets and the task as requested, and the command.

    The task is that of --task, which decides whether words among numbers are classes; None in older folders.
    """

    file: str
    sha256: str
    targets: tuple[str, ...]
    command: str
    task: str | None = None

    @classmethod
    def describe(cls, path: Path, targets: list[str], command: str, task: str) -> Source:
        """Describe an existing file."""
        return cls(str(path.resolve()), file_sha256(path), tuple(targets), command, task)


def write_results(folder: Path, data: PreparedTable, study: Study, metrics: dict[str, Any]) -> None:
    """Write all files but the report."""
    study.model.save(folder / MODEL)  # safetensors: reading it runs no code
    if study.predictor is not None:
        study.predictor.save(folder / PREDICTOR)
    write_recipe(data.recipe, folder / RECIPE)
    prototype_table(study.model, data, study.fit_rows).to_csv(folder / PROTOTYPES, index=False)
    embedding_table(study.model, data, study.fit_rows).to_csv(folder / EMBEDDING, index=False)
    if (held_out := study.held_out) is not None:
        held_out.to_csv(folder / HELD_OUT, index=False)
    (folder / METRICS).write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def collect_metrics(data: PreparedTable, study: Study, options: FitOptions, source: Source) -> dict[str, Any]:
    """Return the content of metrics.json."""
    model, comparison = study.model, study.comparison
    used = int(np.count_nonzero(model.prototype_weights_))
    classes = [str(label) for label in model.classes_] if data.target.task == "classification" else None
    return {
        "source": asdict(source),
        "task": data.target.task,
        "targets": data.target.names,
        "classes": classes,
        "rows": {
            "file": len(data.table),
            "usable": int(data.usable.sum()),
            "with_target": int((data.usable & data.target.known).sum()),
            "fit": len(study.fit_rows),
        },
        "columns": [{"name": rule.name, "taken_as": rule.describe()} for rule in data.recipe.rules],
        "columns_of_x": data.X.shape[1],
        "choices": asdict(options),
        "picture": {  # of the fit to all rows, which has seen its targets: only scores of left-out rows are honest
            "prototypes": len(model.prototypes_),
            "prototypes_used": used,
            "prototypes_dubious": int(model.prototype_evidence_["dubious"][model.prototype_weights_ > 0].sum()),
            "neighbor_scores": {name: _round(score) for name, score in model.neighbor_scores_.items()},
            "map_reg": float(model.map_reg_),
            "cka": _round(model.history_["cka"].iloc[-1]) if len(model.history_) else None,
            "converged": bool(model.converged_),
        },
        "held_out": None  # without a split there are no scores
        if comparison is None or not comparison.scores
        else {
            "train_rows": len(comparison.train),
            "test_rows": len(comparison.test),
            "scores": {
                name: {key: _round(value) for key, value in scores.items()}
                for name, scores in comparison.scores.items()
            },
        },
        "seconds": {name: round(spent, 3) for name, spent in study.seconds.items()},
        "versions": library_versions(LIBRARIES),
        "notes": [*data.notes, *study.notes],
    }


def _round(value: float) -> float | None:
    """Round to six digits; None for NaN and infinity, which JSON does not have."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


@dataclass(frozen=True)
class Folder:
    """A folder of results; its parts are read on demand."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Open a folder; raise InvalidInputError if there is none."""
        if not path.is_dir():
            raise InvalidInputError(f"There is no folder {path}; name one that `distreduce fit` wrote.")
        return cls(path)

    def recipe(self) -> ColumnRecipe:
        """Return how each column becomes columns of X."""
        return read_recipe(self.path / RECIPE)

    def model(self, recipe: ColumnRecipe) -> SDR:
        """Return the model of the picture."""
        return self._check(SDR.load(self.path / MODEL), recipe)

    def predictor(self, recipe: ColumnRecipe) -> Any:
        """Return the predictor."""
        from distreduce.persistence import load

        if not (self.path / PREDICTOR).exists():
            raise InvalidInputError(f"{self.path} holds no predictor (the fit had --no-predict); fit again.")
        return self._check(load(self.path / PREDICTOR), recipe)

    def _check(self, model: Any, recipe: ColumnRecipe) -> Any:
        # Files of two fits in one folder: say so here, rather than by an error about shapes.
        if model.n_features_in_ != len(recipe.columns):
            raise ModelFileError(f"The recipe and the models in {self.path} do not belong together; fit again.")
        return model

    def source(self) -> Source:
        """Return which file was fitted, and how."""
        path = self.path / METRICS
        try:
            # metrics.json may have been edited: check everything that is used.
            content = json.loads(path.read_text(encoding="utf-8"))["source"]
            asked = tuple(content["targets"]), content["command"], content.get("task")
            source = Source(content["file"], content["sha256"], *asked)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelFileError(f"{path} does not say which file was fitted ({error!r:.200}); fit again.") from error
        texts = (source.file, source.sha256, source.command, *source.targets)
        known = source.task in (None, "auto", "regression", "classification")  # None: an older folder
        if not known or not all(isinstance(text, str) for text in texts) or "\0" in source.file:
            raise ModelFileError(f"{path} does not say which file was fitted; fit again.")
        return source

    def fit_rows(self, model: SDR) -> NDArray[np.intp]:
        """Return the rows of the file that the picture was fitted to."""
        # Rows that were only placed do not belong to the fit.
        table = self._table(EMBEDDING, ["row", "part"])
        rows = table["row"][table["part"] == "fit"]
        whole = pd.to_numeric(rows, errors="coerce") % 1 == 0  # NaN is not whole either
        if not whole.all() or len(rows) != len(model.labels_):
            raise ModelFileError(f"{self.path / EMBEDDING} does not belong to the model beside it; fit again.")
        return pd.to_numeric(rows).to_numpy(dtype=np.intp)

    def held_out(self, task: str) -> pd.DataFrame | None:
        """Return the held-out predictions or None; classes are text: "01" is not a number, and "None" not missing."""
        as_text = [TRUTH, CLASS] if task == "classification" else []
        return self._table(HELD_OUT, as_text=as_text) if (self.path / HELD_OUT).exists() else None

    def _table(self, name: str, columns: list[str] | None = None, as_text: Sequence[str] = ()) -> pd.DataFrame:
        try:
            # EXACT: the page must show the numbers that the fit computed.
            table = pd.read_csv(self.path / name, usecols=columns, **EXACT)
            # Read separately as written: in the other columns, "None" is a missing cell.
            texts = pd.read_csv(self.path / name, usecols=lambda at: at in as_text, dtype=str, keep_default_na=False)
            return table.assign(**{str(at): texts[at].astype(object) for at in texts.columns})
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.path / name} cannot be read ({error}); fit again.") from error
