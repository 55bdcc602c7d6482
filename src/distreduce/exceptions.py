"""Every error and warning of the package, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from distreduce.estimators import SDR
    from distreduce.solver.loop import Reduction


class DistReduceError(Exception):
    """Base of all errors raised by distreduce."""


class InvalidInputError(DistReduceError, ValueError):
    """Data or a parameter cannot be used; the message names the argument, its value and what to do."""


class InvalidTypeError(DistReduceError, TypeError):
    """Data or a parameter is of a kind that cannot be used."""


class NumericalError(DistReduceError, ArithmeticError):
    """A computation left the range of finite numbers and could not be repaired.

    `best` is the best there was when it failed: of a reduction the plan, embedding and history (empty where not even
    the first embedding could be computed), of a GP estimator its fitted reduction; None where there was nothing yet.
    """

    def __init__(self, message: str = "", *, best: Reduction | SDR | None = None) -> None:
        super().__init__(message)
        self.best = best


class MissingDependencyError(DistReduceError, ImportError):
    """An optional dependency is needed and not installed; the message names the extra that brings it."""


class PersistenceError(DistReduceError):
    """A model could not be saved or loaded."""


class ModelFileError(PersistenceError, ValueError):
    """A file cannot be loaded: missing, damaged, too large, too new or no model; the message names it and says why."""


class ModelSaveError(PersistenceError, OSError):
    """A file could not be written; one that was there before is untouched."""


class UnsavableModelError(PersistenceError, ValueError):
    """A model holds what a file cannot, such as a function; the message says which parameter and what to do."""


class CheckpointError(PersistenceError, ValueError):
    """A checkpoint cannot be written where it should be, is damaged, or of another fit; the message says what to do."""


class StoreError(DistReduceError):
    """The results of experiments cannot be read or written; the message names the file and says what to do."""


class FailedCellsError(DistReduceError):
    """Cells of an experiment have failed; the message says how many and which files hold their tracebacks."""


class DatasetError(DistReduceError):
    """A data set could not be loaded."""


class DatasetFileError(DatasetError, ValueError):
    """A file of data cannot be used: missing, damaged or of another kind; the message names it and says what to do."""


class DownloadError(DatasetError, OSError):
    """A data set could not be fetched; the message says what happened, from where, and what to do instead."""


class DistReduceWarning(UserWarning):
    """Base of all warnings of distreduce."""


class IllConditionedWarning(DistReduceWarning):
    """A matrix had to be repaired before it could be factorised; results are those of the repaired one."""


class RolledBackWarning(DistReduceWarning):
    """A step of the fit left the range of finite numbers; the result is the best found before it, and is finite."""


class CheckpointWarning(DistReduceWarning):
    """A checkpoint could not be written; the fit goes on without it."""


class InterruptedFitWarning(DistReduceWarning):
    """A fit was interrupted from the keyboard; the estimator is fitted with the best found until then."""


class DataWarning(DistReduceWarning):
    """The data can be used, though not quite as asked for; the message says what was done instead."""


class SolverConvergenceWarning(DistReduceWarning, ConvergenceWarning):
    """The fit stopped at its iteration limit; the result is the best found, not a converged one."""


class AffinityConvergenceWarning(DistReduceWarning, ConvergenceWarning):
    """The symmetric entropic affinity did not reach its tolerance; the message gives the residual."""
