"""Small charts as SVG that takes its colours from the page's style, so that they follow light, dark and print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from distreduce.report.encode import number_text

WIDTH, HEIGHT = 420, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 46


class Chart:
    """Two axes and what is drawn between them; every text is escaped."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str], title: str) -> None:
        self.x, self.y, self.title = _widened(*x), _widened(*y), title
        self.parts: list[Markup] = []
        self._axes(labels)

    def _axes(self, labels: tuple[str, str]) -> None:
        for value in ticks(*self.x):
            at = self._px(value)
            self._add('<line class="grid" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>', at, TOP, HEIGHT - BOTTOM)
            self._add(
                '<text x="{}" y="{}" text-anchor="middle">{}</text>', at, HEIGHT - BOTTOM + 17, number_text(value)
            )
        for value in ticks(*self.y):
            at = self._py(value)
            self._add('<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', LEFT, WIDTH - RIGHT, at)
            self._add('<text x="{}" y="{}" text-anchor="end">{}</text>', LEFT - 7, at + 4, number_text(value))
        middle = (LEFT + WIDTH - RIGHT) / 2
        self._add('<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>', middle, HEIGHT - 8, labels[0])
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = '<text class="label" transform="translate(13 {}) rotate(-90)" text-anchor="middle">{}</text>'
        self._add(turned, middle, labels[1])

    def line(self, x: ArrayLike, y: ArrayLike, css: str, *, dots: bool = False) -> None:
        """A line through the points, with a dot at each if asked for."""
        places = self._places(x, y)
        self._add('<polyline class="{}" points="{}"/>', css, " ".join(f"{a:.1f},{b:.1f}" for a, b in places))
        if dots:
            self.dots(x, y, css, radius=2.4)

    def dots(self, x: ArrayLike, y: ArrayLike, css: str, *, radius: float = 2.2, titles: Iterable[str] = ()) -> None:
        """A dot a point, each with the text that a pointer over it shows."""
        texts = list(titles) or [""] * np.size(x)
        for (a, b), text in zip(self._places(x, y), texts, strict=True):
            title = Markup("<title>{}</title>").format(text) if text else ""
            self._add('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>', css, a, b, radius, title)

    def bars(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, css: str) -> None:
        """A vertical stroke a point, from low to high: one path, because there may be many."""
        lows, highs = self._places(x, low), self._places(x, high)
        strokes = " ".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for (a, b), (_, c) in zip(lows, highs, strict=True))
        self._add('<path class="{}" d="{}"/>', css, strokes)

    def column(self, x: tuple[float, float], height: float, css: str, title: str) -> None:
        """A filled column from zero."""
        a, b = self._px(x[0]), self._px(x[1])
        top, foot = self._py(height), self._py(0.0)
        shape = '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
        self._add(shape, css, a + 1, top, max(b - a - 2, 1), max(foot - top, 0.5), title)

    def markup(self) -> Markup:
        """The whole drawing."""
        head = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">')
        return head.format(WIDTH, HEIGHT, self.title) + Markup("").join(self.parts) + Markup("</svg>")

    def _places(self, x: ArrayLike, y: ArrayLike) -> list[tuple[float, float]]:
        pairs = zip(np.ravel(np.asarray(x, float)), np.ravel(np.asarray(y, float)), strict=True)
        return [(self._px(float(a)), self._py(float(b))) for a, b in pairs]

    def _px(self, value: float) -> float:
        return round(LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT), 1)

    def _py(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM), 1)

    def _add(self, shape: str, *values: object) -> None:
        self.parts.append(Markup(shape).format(*values))  # noqa: S704  # the shapes are written in this file


def ticks(low: float, high: float) -> Sequence[float]:
    """About five round numbers inside the range, whole ones where it holds enough of them."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(5, integer=high - low >= 3).tick_values(low, high)
    return [float(value) for value in found if low <= value <= high]


def _widened(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2)
