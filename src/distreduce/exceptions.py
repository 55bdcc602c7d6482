"""Every error and warning of the package, in one place."""

from __future__ import annotations


class DistReduceError(Exception):
    """Base of all errors raised by distreduce."""


class InvalidInputError(DistReduceError, ValueError):
    """Data or a parameter cannot be used; the message names the argument, its value and what to do."""


class InvalidTypeError(DistReduceError, TypeError):
    """Data or a parameter is of a kind that cannot be used."""


class NumericalError(DistReduceError, ArithmeticError):
    """A computation left the range of finite numbers and could not be repaired."""


class MissingDependencyError(DistReduceError, ImportError):
    """An optional dependency is needed and not installed; the message names the extra that brings it."""


class DistReduceWarning(UserWarning):
    """Base of all warnings of distreduce."""
