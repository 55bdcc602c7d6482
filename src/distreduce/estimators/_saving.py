"""``save`` and ``load`` as methods of an estimator."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class SavingMixin:
    """For estimators whose class is in :data:`distreduce.persistence.REGISTRY`."""

    def save(self, path: str | PathLike[str], *, dtype: str = "float64") -> None:
        """Save the fitted model to one file (safetensors and JSON, no pickle), written atomically.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced once the new one is complete.
        dtype : {"float64", "float32"}, default="float64"
            Precision of training inputs and targets in the file; parameters, hyperparameters and sparse GPs stay exact.

        Raises
        ------
        UnsavableModelError
            A parameter is a RandomState, or labels have a type that cannot be stored.
        ModelSaveError
            The file could not be written; an existing one is unchanged.
        """
        from distreduce.persistence import save  # persistence is a layer above and imports the estimators

        save(self, path, dtype=dtype)

    @classmethod
    def load(cls, path: str | PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Load a model of this class from a file written by :meth:`save`. No code in the file is executed.

        Parameters
        ----------
        path : str or path-like
            File to read.
        max_bytes : int, optional
            Reject larger files (8 GiB by default).

        Returns
        -------
        estimator
            The fitted model. From a float64 file, predictions are equal to the last bit. Exact GPs are factorized
            again, which takes O(n³) operations.

        Raises
        ------
        ModelFileError
            The file is missing, damaged, too large, of a newer format, or holds another class.
        """
        from distreduce.persistence import load  # likewise

        model: Self = load(path, expected=cls, max_bytes=max_bytes)
        return model
