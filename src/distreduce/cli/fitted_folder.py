"""The folder that ``distreduce fit`` writes: what the other commands read, and its models for data frames in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.hashing import file_sha256
from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array, Self
from distreduce._utils.versions import library_versions
from distreduce.cli import _tables
from distreduce.cli._models import FitOptions
from distreduce.cli._names import EMBEDDING, HELD_OUT, METRICS, MODEL, PREDICTOR, PROTOTYPES, RECIPE, find_folder
from distreduce.cli._study import Study
from distreduce.estimators import SDR
from distreduce.exceptions import DataWarning, InvalidInputError, ModelFileError
from distreduce.tables.findings import Findings
from distreduce.tables.formats import TextLayout
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.preparer import read_frame
from distreduce.tables.recipe import ColumnRecipe, read_recipe, write_recipe
from distreduce.tables.text_file import EXACT


@dataclass(frozen=True)
class FittedFolder:
    """What ``distreduce fit`` learned from a file.

    Attributes
    ----------
    path : Path
        The folder.
    recipe : ColumnRecipe
        How each column of a table becomes columns of X.
    """

    path: Path
    recipe: ColumnRecipe

    @classmethod
    def _open(cls, path: Path) -> Self:
        """Open a folder, or the one that a killed fit moved away; raise InvalidInputError if there is none."""
        find_folder(path)
        return cls(path, read_recipe(path / RECIPE))

    @cached_property
    def model(self) -> SDR:
        """The reduction behind the picture."""
        return self._load(MODEL, SDR.load)

    @cached_property
    def predictor(self) -> Any:
        """The predictor, an SDRGPRegressor or SDRGPClassifier."""
        from distreduce.persistence import load

        if not self._has_predictor:
            raise InvalidInputError(f"{self.path} holds no predictor (the fit had --no-predict); fit again.")
        return self._load(PREDICTOR, load)

    @property
    def _has_predictor(self) -> bool:
        return (self.path / PREDICTOR).exists()

    def _load(self, name: str, load: Callable[[Path], Any]) -> Any:
        """Load a model; raise ModelFileError if the recipe was written with another file of this name."""
        path, recipe = self.path / name, self.recipe
        model = load(path)
        if recipe.files.get(name) != file_sha256(path) or model.n_features_in_ != len(recipe.columns):
            raise ModelFileError(f"{path} and {RECIPE} beside it do not belong together; restore them, or fit again.")
        return model

    def transform(self, frame: Any) -> pd.DataFrame:
        """Place rows in the picture: the nearest prototype and the place, one row per row of the frame."""
        model = self.model
        return self._answer(frame, lambda X: _tables.place_table(model, model.transform(X)))

    def predict(self, frame: Any, coverage: float | None = None) -> pd.DataFrame:
        """Predict rows: mean, standard deviation and quantiles, or class and probabilities, and `novelty`.

        Parameters
        ----------
        frame : DataFrame
            Rows with the columns of the file that was fitted, in any order; others are ignored.
        coverage : float, optional
            Adds conformal intervals, or sets of classes, that hold the truth with this probability.

        Returns
        -------
        DataFrame
            One row per row of the frame, with its index; empty cells where the fit leaves out rows with gaps.
        """
        predictor = self.predictor
        return self._answer(frame, lambda X: _tables.prediction_table(predictor, X, self.recipe, coverage))

    def _answer(self, frame: Any, answer: Callable[[Array], pd.DataFrame]) -> pd.DataFrame:
        table, findings = read_frame(frame), Findings()
        found, _ = _tables.answer_rows(self.recipe, table, "frame", findings, answer)
        for sentence in findings.describe_surprises():
            warn_user(sentence, DataWarning)
        index = frame.index if isinstance(frame, pd.DataFrame) else table.index
        return found.set_axis(index)


def load_folder(path: str | os.PathLike[str]) -> FittedFolder:
    """Open a folder that ``distreduce fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Returns
    -------
    FittedFolder
        Its models, which take data frames with the columns of the fitted file.

    Raises
    ------
    InvalidInputError
        If there is no such folder.
    ModelFileError
        If its files are damaged or do not belong together.
    """
    return FittedFolder._open(Path(path))


LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Source:
    """The fitted file, the targets and the task as requested, and the command.

    The task is that of --task, which decides whether words among numbers are classes.
    """

    file: str
    sha256: str
    targets: tuple[str, ...]
    command: str
    task: str
    separator: str | None
    named: bool

    @classmethod
    def describe(cls, path: Path, targets: list[str], command: str, task: str, layout: TextLayout) -> Source:
        file = str(path.resolve()), file_sha256(path)
        return cls(*file, tuple(targets), command, task, layout.separator, layout.named)


def write_results(folder: Path, data: PreparedTable, study: Study, metrics: dict[str, Any], *, raw: bool) -> None:
    """Write all files but the report; `raw` tables may hold formulas."""
    study.model.save(folder / MODEL)  # safetensors: reading it runs no code
    if study.predictor is not None:
        study.predictor.save(folder / PREDICTOR)
    # The recipe names the models that belong to it: files of two fits must not be used together.
    files = {name: file_sha256(folder / name) for name in (MODEL, PREDICTOR) if (folder / name).exists()}
    write_recipe(replace(data.recipe, files=files), folder / RECIPE)
    _tables.write_table(_tables.prototype_table(study.model, data, study.fit_rows), folder / PROTOTYPES, raw=raw)
    _tables.write_table(_tables.embedding_table(study.model, data, study.fit_rows), folder / EMBEDDING, raw=raw)
    if (held_out := study.held_out) is not None:
        _tables.write_table(_tables.name_rows(held_out, data.table, data.recipe.id_column), folder / HELD_OUT, raw=raw)
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
            "how": comparison.how,
            "scores": {
                name: {key: _round(value) for key, value in scores.items()}
                for name, scores in comparison.scores.items()
            },
        },
        "experts": {name: _round(weight) for name, weight in study.weights.items()},
        "seconds": {name: round(spent, 3) for name, spent in study.seconds.items()},
        "versions": library_versions(LIBRARIES),
        "notes": [*data.notes, *study.notes],
    }


def _round(value: float) -> float | None:
    """Round to six digits; None for NaN and infinity, which JSON does not have."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


class Folder(FittedFolder):
    """A folder with all that the other commands read from it, on demand."""

    def source(self) -> Source:
        """Return which file was fitted, and how."""
        path = self.path / METRICS
        try:
            # metrics.json may have been edited: check everything that is used.
            content = json.loads(path.read_text(encoding="utf-8"))["source"]
            source = Source(**content | {"targets": tuple(content["targets"])})
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelFileError(f"{path} does not say which file was fitted ({error!r:.200}); fit again.") from error
        texts = (source.file, source.sha256, source.command, *source.targets)
        known = source.task in ("auto", "regression", "classification") and source.named in (True, False)
        known &= source.separator is None or len(str(source.separator)) == 1
        if not known or not all(isinstance(text, str) for text in texts) or "\0" in source.file:
            raise ModelFileError(f"{path} does not say which file was fitted; fit again.")
        return source

    def experts(self) -> dict[str, float]:
        """Return the weights of the experts of the predictor, without what is not a number."""
        found = self._metric("experts", dict)
        return {name: weight for name, weight in found.items() if isinstance(weight, float) and 0 <= weight <= 1}

    def notes(self) -> list[str]:
        """Return what the fit had to say about the data."""
        return [note for note in self._metric("notes", list) if isinstance(note, str)]

    def split(self) -> str:
        """Return the sentence about how rows were held out."""
        found = self._metric("held_out", dict).get("how")
        return found if isinstance(found, str) else ""

    def within(self) -> str:
        """Return the new rows that left-out places hold for."""
        return FitOptions(time=self.choice("time")).within

    def choice(self, name: str) -> str | None:
        """Return the column that an option of the fit named, such as "weights"."""
        found = self._metric("choices", dict).get(name)
        return found if isinstance(found, str) else None

    def _metric(self, name: str, kind: type) -> Any:
        """Return a part of metrics.json, empty if it is missing or of another kind: the file may have been edited."""
        found = json.loads((self.path / METRICS).read_text(encoding="utf-8")).get(name)
        return found if isinstance(found, kind) else kind()

    def fit_rows(self) -> NDArray[np.intp]:
        """Return the rows of the file that the picture was fitted to."""
        # Rows that were only placed do not belong to the fit.
        table = self._table(EMBEDDING, ["row", "part"])
        rows = table["row"][table["part"] == "fit"]
        whole = pd.to_numeric(rows, errors="coerce") % 1 == 0  # NaN is not whole either
        if not whole.all() or len(rows) != len(self.model.labels_):
            raise ModelFileError(f"{self.path / EMBEDDING} does not belong to the model beside it; fit again.")
        return pd.to_numeric(rows).to_numpy(dtype=np.intp)

    def held_out(self, task: str) -> pd.DataFrame | None:
        """Return the held-out predictions or None; classes are text: "01" is not a number, and "None" not missing."""
        as_text = [_tables.TRUTH, _tables.CLASS] if task == "classification" else []
        return self._table(HELD_OUT, as_text=as_text) if (self.path / HELD_OUT).exists() else None

    def _table(self, name: str, columns: list[str] | None = None, as_text: Sequence[str] = ()) -> pd.DataFrame:
        try:
            # EXACT: the page must show the numbers that the fit computed.
            table = pd.read_csv(self.path / name, usecols=columns, **EXACT)
            # Read separately as written: in the other columns, "None" is a missing cell.
            texts = pd.read_csv(self.path / name, usecols=lambda at: at in as_text, dtype=str, keep_default_na=False)
            return table.assign(
                **{str(at): texts[at].map(_tables.unescape_formula).astype(object) for at in texts.columns}
            )
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.path / name} cannot be read ({error}); fit again.") from error
