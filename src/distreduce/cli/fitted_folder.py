"""The models of a folder that ``distreduce fit`` wrote, for data frames in Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array
from distreduce.cli._folder import Folder
from distreduce.cli._tables import answer_rows, place_table, prediction_table
from distreduce.estimators import SDR
from distreduce.exceptions import DataWarning
from distreduce.tables.findings import Findings
from distreduce.tables.preparer import read_frame
from distreduce.tables.recipe import ColumnRecipe


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

    @cached_property
    def model(self) -> SDR:
        """The reduction behind the picture."""
        return Folder(self.path).model(self.recipe)

    @cached_property
    def predictor(self) -> Any:
        """The predictor, an SDRGPRegressor or SDRGPClassifier."""
        return Folder(self.path).predictor(self.recipe)

    def transform(self, frame: Any) -> pd.DataFrame:
        """Place rows in the picture: the nearest prototype and the place, one row per row of the frame."""
        model = self.model
        return self._answer(frame, lambda X: place_table(model, model.transform(X)))

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
        return self._answer(frame, lambda X: prediction_table(predictor, X, self.recipe, coverage))

    def _answer(self, frame: Any, answer: Callable[[Array], pd.DataFrame]) -> pd.DataFrame:
        table, findings = read_frame(frame), Findings()
        found, _ = answer_rows(self.recipe, table, "frame", findings, answer)
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
    folder = Folder.open(Path(path))
    return FittedFolder(folder.path, folder.recipe())
