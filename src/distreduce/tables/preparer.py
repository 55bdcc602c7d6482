"""TablePreparer: what ``distreduce fit`` does to the columns of a file, for data frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.files import replacing
from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array
from distreduce.exceptions import DataWarning, InvalidInputError, InvalidTypeError
from distreduce.tables.cells import empty_gaps
from distreduce.tables.columns import IN_PYTHON
from distreduce.tables.findings import Findings
from distreduce.tables.recipe import COLUMNS_BY_NAME, POLICIES, learn_recipe, read_recipe, write_recipe

WHERE = "X"


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a data frame of numbers, texts, dates and gaps into numbers, as the command ``distreduce fit`` does.

    Numbers and dates get mean 0 and standard deviation 1, texts one 0/1 column per level, dates also sine and cosine of
    the year, the week and the day. Columns that say nothing (constant, row numbers, free text) are left out.

    Parameters
    ----------
    missing : {"impute", "drop", "refuse"}, default="impute"
        What to do with missing cells: fill them and mark them in a column of their own, make their rows NaN, or raise
        an error.
    categories : sequence of str, default=()
        Columns to take as categories, whatever they hold.
    leave_out : sequence of str, default=()
        Columns to leave out.
    keep : sequence of str, default=()
        Columns to use although they number the rows: whole numbers that are all different and grow from row to row, or
        are called identifiers.

    Attributes
    ----------
    recipe_ : ColumnRecipe
        How each column is converted.
    feature_names_in_ : ndarray of str
        Columns of the data frame of the fit.
    n_features_in_ : int
        Number of these columns.

    See Also
    --------
    sklearn.compose.ColumnTransformer : The same by hand.

    Examples
    --------
    >>> import pandas as pd
    >>> from distreduce.tables import TablePreparer
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0, 8.0], "town": ["Oslo", "Bern", "Bern", "Oslo"]})
    >>> preparer = TablePreparer().fit(frame)
    >>> preparer.get_feature_names_out().tolist()
    ['size', 'size missing', 'town = Bern', 'town = Oslo']
    >>> preparer.transform(frame).shape
    (4, 4)
    """

    def __init__(
        self,
        *,
        missing: str = "impute",
        categories: Sequence[str] = (),
        leave_out: Sequence[str] = (),
        keep: Sequence[str] = (),
    ) -> None:
        self.missing = missing
        self.categories = categories
        self.leave_out = leave_out
        self.keep = keep

    def fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Learn how to convert each column of a DataFrame of pandas, or of a library with ``to_pandas``; ignore y."""
        if self.missing not in POLICIES:
            raise InvalidInputError(f"missing={self.missing!r} must be one of {', '.join(POLICIES)}.")
        named: dict[str, Any] = {}
        for name in COLUMNS_BY_NAME:
            if isinstance(columns := getattr(self, name), str):
                raise InvalidTypeError(f"{name}={columns!r} is a text; give a list of columns, such as [{columns!r}].")
            named[name] = list(columns)
        frame = read_frame(X)
        recipe = learn_recipe(frame, (), None, WHERE, missing=self.missing, advice=IN_PYTHON, **named)
        self.recipe_ = replace(recipe, given={name: columns for name, columns in named.items() if columns})
        self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        self.n_features_in_ = frame.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows as numbers (n, n_columns); columns may have any order, and others than the fit's are ignored.

        Warn of levels that the fit did not know and of columns of another scale. Rows with missing cells are NaN if
        `missing` is "drop".
        """
        check_is_fitted(self)
        findings = Findings()
        found, _ = self.recipe_.matrix(read_frame(X), WHERE, findings)
        for sentence in findings.describe_surprises():
            warn_user(f"Column {sentence}", DataWarning)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns; ignore `input_features`."""
        check_is_fitted(self)
        return np.array(self.recipe_.columns, dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted transformer as JSON, in the format of ``recipe.json``; an existing file is replaced."""
        check_is_fitted(self)
        with replacing(path) as hidden:
            write_recipe(self.recipe_, hidden)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TablePreparer:
        """Read what :meth:`save` or ``distreduce fit`` (``folder/recipe.json``) wrote; nothing in the file is run."""
        recipe = read_recipe(Path(path))
        preparer = cls(missing=recipe.missing, **{name: tuple(columns) for name, columns in recipe.given.items()})
        preparer.recipe_ = recipe
        preparer.feature_names_in_ = np.array([rule.name for rule in recipe.rules], dtype=object)
        preparer.n_features_in_ = len(recipe.rules)
        return preparer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # columns are found by name, which arrays do not have
        return tags


def read_frame(X: Any) -> pd.DataFrame:
    """Return a data frame of any library as one of pandas, with texts for names and rows numbered from 0.

    Texts such as ? and NA become missing cells, as in files.
    """
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(f"X is a {type(X).__name__}; give a DataFrame, whose columns have names.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InvalidInputError("X has two columns of the same name; rename one of them.")
    return empty_gaps(frame.set_axis(names, axis=1).reset_index(drop=True))
