"""Renamed parameters: the old name keeps working, with a FutureWarning that names the new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from distreduce._utils.warnings import warn_user

if TYPE_CHECKING:
    from typing_extensions import Self

# From the old value and the current parameters to the new parameters.
Translation = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


class RenamedParametersMixin:
    """Translate old parameter names in the constructor and in `set_params`.

    A class lists its old names in `_renamed` and ends its constructor with ``self._take_renamed(renamed)``, where
    ``**renamed`` collects unknown keywords. scikit-learn does not count ``**renamed`` as a parameter, so `get_params`
    and `clone` know only the new names.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.base import BaseEstimator
    >>> class Model(RenamedParametersMixin, BaseEstimator):
    ...     _renamed = {"iterations": lambda value, parameters: {"max_iter": value}}
    ...     def __init__(self, max_iter=10, **renamed):
    ...         self.max_iter = max_iter
    ...         self._take_renamed(renamed)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = Model(iterations=3)
    >>> model.max_iter, caught[0].category.__name__, str(caught[0].message)
    (3, 'FutureWarning', 'The parameter iterations of Model is deprecated; give max_iter=3 instead.')
    """

    _renamed: ClassVar[Mapping[str, Translation]] = {}

    def _take_renamed(self, given: Mapping[str, Any]) -> None:
        """Set the parameters that the old names `given` stand for; raise TypeError for any other name."""
        name = type(self).__name__
        for old, value in given.items():
            if old not in self._renamed:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument {old!r}")
            new = self._renamed[old](value, vars(self))
            instead = ", ".join(f"{parameter}={setting!r}" for parameter, setting in new.items())
            advice = f"give {instead} instead" if new else "leave it out"
            warn_user(f"The parameter {old} of {name} is deprecated; {advice}.", FutureWarning)
            vars(self).update(new)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, old names included; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        old = {name: params.pop(name) for name in self._renamed if name in params}
        super().set_params(**params)  # type: ignore[misc]
        self._take_renamed(old)
        return self


def translate_renamed(cls: type, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a class with old names replaced by new ones, without a warning.

    For files that an earlier version wrote. Names that are neither old nor new stay as they are.

    Examples
    --------
    >>> class Model(RenamedParametersMixin):
    ...     _renamed = {"iterations": lambda value, parameters: {"max_iter": value}}
    >>> translate_renamed(Model, {"iterations": 3, "tol": 0.1})
    {'tol': 0.1, 'max_iter': 3}
    """
    renamed: Mapping[str, Translation] = getattr(cls, "_renamed", {})
    found = {name: value for name, value in parameters.items() if name not in renamed}
    for old, translate in renamed.items():
        if old in parameters:
            found |= translate(parameters[old], found)
    return found
