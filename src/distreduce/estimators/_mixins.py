"""Mixins of the estimators: renamed parameters that keep working, ``save`` and ``load``, and a fit in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from scipy import sparse

from distreduce._utils.text import warn_user
from distreduce._utils.typing import Self

# From the old value and the current parameters to the new parameters.
Translation = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


class RenamedParametersMixin:
    """Translate old parameter names in the constructor and in `set_params`.

    A class lists its old names in `_renamed`. Its constructor need not know them: they are taken out of the keywords
    before it is called, and its signature stays that of the new names, for scikit-learn and for people.
    """

    _renamed: ClassVar[Mapping[str, Translation]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):  # an inherited constructor is wrapped already
            cls.__init__ = _take_renamed_first(cls.__init__)  # type: ignore[method-assign]

    def _take_renamed(self, given: Mapping[str, Any]) -> None:
        """Set the parameters that the old names `given` stand for."""
        name = type(self).__name__
        for old, value in given.items():
            new = self._renamed[old](value, vars(self))
            instead = ", ".join(f"{parameter}={setting!r}" for parameter, setting in new.items())
            advice = f"give {instead} instead" if new else "leave it out"
            warn_user(f"The parameter {old} of {name} is deprecated; {advice}.", FutureWarning)
            vars(self).update(new)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, old names included; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        old = {name: params.pop(name) for name in self._renamed if name in params}
        # First: translations depend on the other parameters.
        super().set_params(**params)  # type: ignore[misc]
        self._take_renamed(old)
        return self


def _take_renamed_first(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap a constructor: old names among the keywords are set after it, with a warning."""

    @wraps(init)
    def constructor(self: Any, *args: Any, **given: Any) -> None:
        old = {name: given.pop(name) for name in self._renamed if name in given}
        init(self, *args, **given)
        self._take_renamed(old)

    return constructor


def translate_renamed(cls: type, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a class with old names replaced by new ones, without a warning.

    Meant for files from earlier versions. Names that are neither old nor new stay as they are.
    """
    renamed: Mapping[str, Translation] = getattr(cls, "_renamed", {})
    found = {name: value for name, value in parameters.items() if name not in renamed}
    for old, translate in renamed.items():  # in the order of the class, not of the file
        if old in parameters:
            found |= translate(parameters[old], found)
    return found


def translate_checkpoint_every(value: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`checkpoint_every`: a checkpoint is written after every outer iteration now."""
    return {}


def translate_device(device: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`device` is part of `backend` now; other backends than torch never used it."""
    torch = str(parameters.get("backend")).partition(":")[0] == "torch"  # the backend may name a device already
    return {"backend": f"torch:{device}"} if torch and device is not None else {}


def translate_n_neighbors(n_neighbors: int | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`n_neighbors` is part of `affinity` now; it never had an effect where the affinity cannot be sparse."""
    sparse = parameters.get("affinity") != "dense" and parameters.get("n_prototypes") is not None
    possible = sparse and parameters.get("metric") != "precomputed"
    return {"affinity": n_neighbors} if possible and n_neighbors is not None else {}


# Of SDR and DistR.
OLD_NAMES: Mapping[str, Translation] = {
    "device": translate_device,
    "checkpoint_every": translate_checkpoint_every,
    "n_neighbors": translate_n_neighbors,
}


def translate_target_form(target_form: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`target_form` is part of `dependence` now."""
    name = str(parameters.get("dependence", "cka")).partition(":")[0]
    return {"dependence": name if target_form == "barycentric" else f"{name}:{target_form}"}


class SavingMixin:
    """For estimators whose class is in :data:`distreduce.persistence.REGISTRY`."""

    def save(self, path: str | PathLike[str], *, dtype: str = "float64") -> None:
        """Save the fitted model to one file (safetensors and JSON, no pickle), written atomically.

        Raises UnsavableModelError for a RandomState, or labels of a type that cannot be stored, and ModelSaveError if
        the file could not be written; an existing one is then unchanged.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced once the new one is complete.
        dtype : {"float64", "float32"}, default="float64"
            Precision of training inputs and targets in the file; parameters, hyperparameters and sparse GPs stay exact.
        """
        from distreduce.persistence import save  # persistence is a layer above and imports the estimators

        save(self, path, dtype=dtype)

    @classmethod
    def load(cls, path: str | PathLike[str], *, max_bytes: int | None = None) -> Self:
        """Load a model of this class from a file written by :meth:`save`. No code in the file is executed.

        From a float64 file, predictions are equal to the last bit. Exact GPs are factorized again, in O(n³) operations.
        Raises ModelFileError if the file is missing, damaged, too large, of a newer format, or holds another class.

        Parameters
        ----------
        path : str or path-like
            File to read.
        max_bytes : int, optional
            Reject larger files (8 GiB by default).
        """
        from distreduce.persistence import load  # likewise

        model: Self = load(path, expected=cls, max_bytes=max_bytes)
        return model


SIDE_BY_SIDE = (
    '<div style="display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start">{}'
    '<div style="background:white;max-width:100%" role="img" aria-label="Map of the fit">{}</div></div>'
)


class DisplayMixin:
    """Mixin of reductions: ``report``, and the map in notebooks after a fit. It must come before BaseEstimator."""

    def report(self, path: str | PathLike[str], X: Any, y: Any = None, **options: Any) -> Path:
        """Write the interactive page of the fit: one HTML file that needs no network.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples of the fit, in their order.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets.
        **options
            Those of :func:`distreduce.report.write_report`, such as ``table=``, ``predictor=`` and ``held_out=``.

        Returns
        -------
        pathlib.Path
            The file. ``webbrowser.open(model.report("map.html", X, y).resolve().as_uri())`` shows it.
        """
        from distreduce.report import write_report

        return write_report(path, self, X, y, **options)  # type: ignore[arg-type]  # a reduction

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        """Return the parameters for the display; a graph as its text: scikit-learn cannot compare it with "auto"."""
        shown = copy(self)
        for name, value in vars(self).items():
            if sparse.issparse(value) and not name.endswith("_"):
                setattr(shown, name, SimpleNamespace(**{type(value).__name__: f"shape {value.shape}"}))
        return super(DisplayMixin, shown)._get_params_html(*args, **options)  # type: ignore[misc]  # of BaseEstimator

    def _repr_html_inner(self) -> str:
        return self._beside_map(super()._repr_html_inner())  # type: ignore[misc]  # of BaseEstimator

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]  # of BaseEstimator
        if "text/html" in bundle:  # as scikit-learn's option display="diagram" asks for
            bundle["text/html"] = self._beside_map(bundle["text/html"])
        return bundle

    def _beside_map(self, html: str) -> str:
        """Return scikit-learn's HTML with the map beside it; as it is before a fit, or without matplotlib."""
        if not hasattr(self, "prototypes_"):
            return html
        try:
            from distreduce.plotting.embedding import embedding_svg

            drawing = embedding_svg(self)  # type: ignore[arg-type]  # a reduction
        except ImportError:
            return html
        return SIDE_BY_SIDE.format(html, drawing)
