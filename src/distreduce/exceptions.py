"""Errors and warnings of distreduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    from distreduce.estimators import SDR
    from distreduce.solver.loop import Reduction


class DistReduceError(Exception):
    """Base class of all errors of distreduce; never raised itself."""


class InvalidInputError(DistReduceError, ValueError):
    """Raised if data or a parameter has an invalid value. The message names the argument, its value and what to do."""


class InvalidCellError(InvalidInputError):
    """Raised if a cell of a table cannot be read.

    Attributes
    ----------
    row : int
        Row of the first such cell, from 0.
    """

    def __init__(self, message: str = "", row: int = 0) -> None:
        super().__init__(message)
        self.row = row


class InvalidTypeError(DistReduceError, TypeError):
    """Raised if data or a parameter has the wrong type."""


class NumericalError(DistReduceError, ArithmeticError):
    """Raised if a computation gives NaN or infinite values, or a matrix cannot be factorised, beyond repair.

    Attributes
    ----------
    best : Reduction, SDR or None
        The best result before the failure: coupling, prototypes and history of a reduction (the history is empty if the
        first objective could not be computed), or the fitted reduction of a GP estimator. None if there was none.
    """

    def __init__(self, message: str = "", *, best: Reduction | SDR | None = None) -> None:
        super().__init__(message)
        self.best = best


class MissingDependencyError(DistReduceError, ImportError):
    """Raised if an optional dependency is needed but not installed. The message names the extra that installs it."""


class PersistenceError(DistReduceError):
    """Base class of errors when models and checkpoints are saved or loaded."""


class ModelFileError(PersistenceError, ValueError):
    """Raised by `load` if a file is missing, damaged, too large, too new or not a model. The message says which."""


class ModelSaveError(PersistenceError, OSError):
    """Raised by `save` if the file cannot be written. An existing file is unchanged."""


class UnsavableModelError(PersistenceError, ValueError):
    """Raised by `save` if a file cannot hold the model, such as a function. The message names the parameter."""


class CheckpointError(PersistenceError, ValueError):
    """Raised by `fit` if its checkpoint cannot be written, is damaged, or belongs to another fit."""

    advice = "Delete it to start afresh, or give another path as checkpoint."


class StoreError(DistReduceError):
    """Raised if stored results of experiments cannot be read or written. The message names the file."""


class FailedCellsError(DistReduceError):
    """Raised after a run in which cells of an experiment failed. The message names the files with their tracebacks."""


class DatasetError(DistReduceError):
    """Base class of errors when data sets are loaded."""


class DatasetFileError(DatasetError, ValueError):
    """Raised if a data file is missing, damaged or of the wrong kind. The message names it and says what to do."""


class DownloadError(DatasetError, OSError):
    """Raised if a data set cannot be downloaded. The message names the source and says what to do instead."""


class DistReduceWarning(UserWarning):
    """Base class of all warnings of distreduce; never issued itself."""


class IllConditionedWarning(DistReduceWarning):
    """Issued if a matrix is not positive definite and its diagonal was raised before the factorisation."""


class RolledBackWarning(DistReduceWarning):
    """Issued if a step of the fit gives NaN or infinite values. The result is the best one before that step."""


class CheckpointWarning(DistReduceWarning):
    """Issued if a checkpoint cannot be written during a fit, which continues without it."""


class InterruptedFitWarning(DistReduceWarning):
    """Issued if a fit is interrupted from the keyboard. The estimator keeps the best result so far."""


class DataWarning(DistReduceWarning):
    """Issued if data are used in another way than asked for. The message says how."""


class NoSignalWarning(DistReduceWarning):
    """Issued if X does not predict left-out targets clearly better than their mean does. The fit then leaves y out."""


class FewSamplesWarning(DistReduceWarning):
    """Issued if fewer than 30 samples have a target: left-out scores, intervals and probabilities are then rough."""


class OptimisticPictureWarning(DistReduceWarning):
    """Issued if neighbours predict targets much better in the plane as fitted than they do for left-out samples."""


if TYPE_CHECKING:

    class SolverConvergenceWarning(DistReduceWarning, ConvergenceWarning): ...

    class AffinityConvergenceWarning(DistReduceWarning, ConvergenceWarning): ...


# Made on first use: scikit-learn takes two seconds to import, and an error message should not wait for it.
CONVERGENCE_WARNINGS = {
    "SolverConvergenceWarning": "Issued if a fit stops at its iteration limit. The result is the best one found, but "
    "has not converged.",
    "AffinityConvergenceWarning": "Issued if the symmetric entropic affinity does not reach its tolerance. The message "
    "gives the residual.",
}


def __getattr__(name: str) -> Any:
    if name not in CONVERGENCE_WARNINGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    content = {"__doc__": CONVERGENCE_WARNINGS[name], "__module__": __name__}
    return globals().setdefault(name, type(name, (DistReduceWarning, ConvergenceWarning), content))


def __dir__() -> list[str]:
    return [*globals(), *CONVERGENCE_WARNINGS]
