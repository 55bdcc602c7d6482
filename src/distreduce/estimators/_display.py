"""A fitted reduction in a notebook and as a page: its map beside scikit-learn's table of parameters, and ``report``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

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
